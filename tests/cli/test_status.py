"""`ralph status` in every layout: stories, progress, why something is stuck, the last run."""

from __future__ import annotations

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

from ralph.core.events import AnyEvent, RunEnded, RunStarted
from ralph.core.exit_codes import ExitCode
from ralph.core.moves import Reason
from ralph.core.ports import PlanRef
from ralph.journal.records import Journal
from ralph.plans.registry import LAYOUTS
from ralph.state.locks import claim
from ralph.state.places import plan_state, workspace_state
from ralph.state.runs import journal_path
from ralph.views.columns import cells
from support.cli import Completed, ralph, ralph_here
from support.workspaces import story_id, workspace

RUN = "20261115-120000-abcd"
NOON = 1_794_744_000.0


@pytest.fixture(params=LAYOUTS.built_in())
def ref(request: pytest.FixtureRequest, tmp_path: Path) -> PlanRef:
    return workspace(tmp_path / "w", request.param)


def status(ref: PlanRef, *arguments: str) -> Completed:
    return ralph_here("status", *arguments, cwd=ref.root)


def on_a_terminal(ref: PlanRef, columns: int, *arguments: str) -> list[str]:
    """The lines of a status on a terminal of this width, without colours."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    environment = {**os.environ, "NO_COLOR": "1", "COLUMNS": ""}
    done = subprocess.Popen(
        [sys.executable, "-m", "ralph", "status", *arguments],
        cwd=ref.root,
        env=environment,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    data = b""
    try:
        while more := os.read(ours, 65536):
            data += more
    except OSError:  # how Linux says that the other side is closed
        pass
    os.close(ours)
    assert done.wait() == 0
    return data.decode().replace("\r\n", "\n").splitlines()


# --- the stories -----------------------------------------------------------------------------------------------------


def test_status_shows_progress_stories_and_what_is_next(ref: PlanRef) -> None:
    done = status(ref)
    assert (done.code, done.err) == (0, "")
    head, bar, empty, *stories, blank, counts, following = done.out.splitlines()
    assert "reports" in head or "login" in head
    assert head.endswith(str(ref.path.relative_to(ref.root)))
    assert bar == "[██████████░░░░░░░░░░] 3/6 Export report 4 as a file"
    assert (empty, blank) == ("", "")
    assert [line.split()[1] for line in stories] == [story_id(ref.layout, n) for n in range(1, 7)]
    assert counts == "3 done, 3 todo"
    assert following == f"Next: {story_id(ref.layout, 4)}"


def test_status_for_programs(ref: PlanRef) -> None:
    found = status(ref, "--json").json
    stories = found.pop("stories")
    assert [story["id"] for story in stories] == [story_id(ref.layout, n) for n in range(1, 7)]
    assert found.pop("name") in ("reports", "login", "Plan: reports", "Spec: reports")
    assert found == {
        "workspace": str(ref.root),
        "grades": {},
        "unproven": [],
        "layout": ref.layout,
        "plan": str(ref.path),
        "branch": found["branch"],
        "total": 6,
        "counts": {"todo": 3, "in_progress": 0, "done": 3, "failed": 0, "blocked": 0},
        "finished": False,
        "next": story_id(ref.layout, 4),
        "next_mode": "implement",
        "last_run": None,
        "running": None,
    }


def test_a_finished_plan_says_so(ref: PlanRef) -> None:
    ref.path.write_bytes(workspace(ref.root, ref.layout, 1).path.read_bytes())
    identifier = story_id(ref.layout, 1)
    assert ralph_here("task", "done", identifier, "--note", "n", cwd=ref.root).code == 0
    assert status(ref).out.endswith("\n\nEvery story is done.\n")
    found = status(ref, "--json").json
    assert (found["finished"], found["next"], found["total"]) == (True, None, 1)


def test_a_stuck_story_says_why(ref: PlanRef) -> None:
    four = story_id(ref.layout, 4)
    ralph_here("task", "set", four, "--state", "failed", "--why", "3 attempts: \x1b[31mred", cwd=ref.root)
    assert ralph_here("task", "set", four, "--state", "failed", "--why", "3 attempts", cwd=ref.root).code == 0
    for number in (5, 6):
        ralph_here("task", "set", story_id(ref.layout, number), "--state", "blocked", cwd=ref.root)
    out = status(ref).out
    assert f"✗ {four} Export report 4 as a file  failed\n{' ' * (len(four) + 3)}3 attempts\n" in out
    assert "3 done, 1 failed, 2 blocked\n" in out
    assert f"Nothing is ready: {four} failed; " in out
    assert out.endswith(f"`ralph retry {four}` gives a failed story another chance\n")
    found = status(ref, "--json").json
    assert [story["why"] for story in found["stories"]] == ["", "", "", "3 attempts", "", ""]
    assert found["next"] is None


def test_what_waits_for_review_is_next(tmp_path: Path) -> None:
    ref = workspace(tmp_path, "tasks.json")
    ralph_here("task", "done", "US-004", cwd=tmp_path, env={"RALPH_LOOP": "1"})
    assert status(ref).out.endswith("Next: US-004 (review)\n")
    assert "US-004 Export report 4 as a file  needs review" in status(ref).out
    assert status(ref, "--json").json["next_mode"] == "review"


@pytest.mark.parametrize(("stories", "first"), [(45, 6), (1000, 498)])
def test_a_long_list_is_cut_around_where_the_work_is(ref: PlanRef, stories: int, first: int) -> None:
    workspace(ref.root, ref.layout, stories)
    every = [story["id"] for story in status(ref, "--json").json["stories"]]
    lines = status(ref).out.splitlines()
    shown = [line.split()[1] for line in lines if line.startswith(("✓", "·"))]
    assert shown == every[first - 1 : first + 39]
    assert f"… {first - 1} done" in lines
    rest = f"… and {stories - first - 39} more (`ralph status --all`)"
    assert (rest in lines) == (stories == 1000)
    everything = status(ref, "--all").out.splitlines()
    assert len([line for line in everything if line.startswith(("✓", "·"))]) == stories
    assert not any(line.startswith("…") for line in everything)


def test_forty_stories_are_not_cut(ref: PlanRef) -> None:
    workspace(ref.root, ref.layout, 40)
    assert status(ref).out == status(ref, "--all").out


def test_a_plan_without_stories_is_no_plan(tmp_path: Path) -> None:
    for name, source in (("plan.md", "# Plan\n"), ("spec.md", "# Spec\n")):
        ref = workspace(tmp_path / name, name, source=source)
        done = status(ref)
        assert (done.code, done.out) == (ExitCode.BAD_DATA, "")


# --- terminals -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_no_line_is_wider_than_the_terminal(columns: int, tmp_path: Path) -> None:
    ref = workspace(tmp_path, "tasks.json")
    for number, title in ((4, "日本語のタイトル" * 12), (5, "🚀 " * 90), (6, "words and words " * 12)):
        done = ralph_here("task", "set", f"US-00{number}", "--title", title, cwd=tmp_path)
        assert done.code == 0, done.err
    ralph_here("task", "set", "US-006", "--state", "blocked", "--why", "because " * 60, cwd=tmp_path)
    lines = on_a_terminal(ref, columns)
    assert any("US-004 日本" in line for line in lines)
    assert max(map(cells, lines)) <= columns
    assert "because because" not in " ".join(line for line in lines if cells(line) > columns)


def test_a_file_gets_the_whole_titles(tmp_path: Path) -> None:
    ref = workspace(tmp_path, "tasks.json")
    title = "words and words " * 12
    ralph_here("task", "set", "US-006", "--title", title, cwd=tmp_path)
    assert title.strip() in status(ref).out


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
@pytest.mark.parametrize("arguments", [["status"], ["task", "show", "US-004"], ["check"], ["paths"]], ids=" ".join)
def test_any_encoding_will_do(arguments: list[str], encoding: str, tmp_path: Path) -> None:
    ref = workspace(tmp_path / "Zoë", "tasks.json", odd=True)
    ralph_here("task", "set", "US-004", "--title", "Zoë's 日本 🚀", "--notes", "— “x”", cwd=ref.root)
    done = ralph(*arguments, cwd=ref.root, env={"PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"})
    assert done.code == 0, done.err
    assert "Traceback" not in done.err


def test_a_plain_locale_gets_signs_that_it_can_show(tmp_path: Path) -> None:
    ref = workspace(tmp_path / "w", "tasks.json")
    plain = {"LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = ralph("status", cwd=ref.root, env=plain)
    assert done.code == 0
    assert "\\u" not in done.out
    marks = {line[:2].strip() for line in done.out.splitlines() if "US-0" in line and line[1:2] == " "}
    assert "+" in marks, "done"
    assert "x" not in marks
    assert "[##########----------] 3/6" in done.out


def test_a_workspace_whose_name_is_not_utf8_can_be_looked_at(tmp_path: Path) -> None:
    root = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))
    try:
        root.mkdir()
    except OSError:
        pytest.skip("file names are UTF-8 here")
    workspace(root, "tasks.json")
    assert ralph("status", cwd=root).code == 0
    for arguments in (["status"], ["check"], ["paths"], ["task", "list"]):
        assert ralph_here(*arguments, cwd=root).code == 0
        done = ralph_here(*arguments, "--json", cwd=root)
        assert done.code == 0, done.err
        assert done.json
    assert ralph_here("paths", "--json", cwd=root).json["workspace"] == str(root)


# --- the last run ----------------------------------------------------------------------------------------------------


def record(ref: PlanRef, *events: AnyEvent) -> Path:
    path = journal_path(workspace_state(ref.root, os.environ), RUN)
    clock = iter((NOON, NOON + 90, NOON + 91))
    journal = Journal(path, lambda: next(clock))
    journal.write(RunStarted(run=RUN, workspace=str(ref.root), layout=ref.layout, plan=str(ref.path), pid=1))
    for event in events:
        journal.write(event)
    journal.close()
    state = plan_state(ref, os.environ)
    state.mkdir(parents=True, exist_ok=True)
    (state / "last-run").write_text(f"{RUN}\n")
    return path


def last_line(ref: PlanRef) -> str:
    done = status(ref)
    assert (done.code, done.err) == (0, "")
    return done.out.splitlines()[-1]


def local(t: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(t))


def test_the_last_run_is_told_in_one_line(ref: PlanRef) -> None:
    record(ref, RunEnded(Reason.COMPLETE))
    assert last_line(ref) == f"Last run: {RUN}, complete, {local(NOON + 90)}"
    assert status(ref, "--json").json["last_run"] == {
        "run": RUN,
        "state": "ended",
        "started": "2026-11-15T12:00:00Z",
        "ended": "2026-11-15T12:01:30Z",
        "reason": "complete",
        "detail": "",
        "until": None,
    }


def test_a_run_that_stopped_says_why(ref: PlanRef) -> None:
    record(ref, RunEnded(Reason.ITERATION_CAP, "20 iterations \x1b[31m"))
    assert last_line(ref) == f"Last run: {RUN}, stopped: iteration cap, {local(NOON + 90)} (20 iterations )"


def test_a_run_at_work_is_running(ref: PlanRef) -> None:
    record(ref)
    with claim(ref, os.environ, RUN):
        lines = status(ref).out.splitlines()
        document = status(ref, "--json").json
    assert f"Run: {RUN}, running since {local(NOON)}" in lines
    assert "`ralph watch` shows it live" in lines[-1]
    assert (document["last_run"]["state"], document["last_run"]["ended"]) == ("running", None)
    assert (document["running"]["iterations_done"], document["running"]["story"]) == (0, None)


def test_a_killed_run_is_told_apart_from_a_running_one(ref: PlanRef) -> None:
    record(ref)
    assert last_line(ref) == f"Last run: {RUN}, killed after {local(NOON)}; `ralph run` continues from there"
    assert status(ref, "--json").json["last_run"]["state"] == "unfinished"


def test_a_damaged_journal_does_not_hide_the_plan(ref: PlanRef) -> None:
    record(ref, RunEnded(Reason.COMPLETE)).write_bytes(b"\0\xff{}\n")
    assert last_line(ref).startswith(f"Last run: {RUN}, its journal could not be read: ")
    assert status(ref, "--json").json["last_run"]["state"] == "unreadable"
