"""`ralph record` over real runs: finished, killed, under way, copied and with several workers."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import sys
from pathlib import Path

import pytest

from ralph.core.events import RunStarted
from ralph.core.exit_codes import ExitCode
from ralph.host.process.tree import marked
from ralph.state.runs import journal_path, list_runs
from support.cli import ralph, ralph_here
from support.parallel_runs import Project, writes
from support.processes import wait_for
from support.proven import Proven, shell, write
from support.recordings import Animated, played, seen_svg

EVIL = "<img src=x onerror=alert(1)> & </svg><script>alert(2)</script>"
TOKEN = "sk-ant-" + "api03-" + "A1b2C3d4E5f6G7h8J9k0" * 4
PASSWORD = "blue-harbour-4711-lantern"
LIES = [{"say": f"It is done, all tests pass. {TOKEN} {PASSWORD}"}, "lie"]
DONE = [write("src/one.py", "ONE = 1\n"), "claim"]


def text_of(shown: Animated) -> str:
    return "\n".join(line for frame in shown.frames for line in frame)


@pytest.fixture
def made(tmp_path: Path) -> Proven:
    made = Proven(tmp_path, stories=[{"title": EVIL}, {"title": "Two"}])
    done = made.run(US_001=[LIES, DONE], US_002=[[write("src/two.py", "TWO = 2\n"), "claim"]])
    assert done.code == 0, done.out
    return made


def test_a_picture_of_the_last_run_shows_the_lie_and_the_end(made: Proven) -> None:
    done = made.ask("record", "--svg", "run.svg")
    assert (done.code, done.out) == (0, "")
    assert re.fullmatch(r"wrote run\.svg: \d+ s, \d+ kB\n", done.err)
    shown = seen_svg((made.root / "run.svg").read_text())
    assert shown.seconds <= 20
    assert "✗ rejected US-001: no files changed" in text_of(shown)
    assert "2/2 stories" in "\n".join(shown.frames[-1])
    assert EVIL in text_of(shown)
    assert "It is done, all tests pass." in text_of(shown)


def test_a_run_that_found_nothing_to_do_hides_no_picture(made: Proven) -> None:
    idle = made.run(US_001=[DONE])
    assert idle.code == 0, idle.err
    assert "no files changed" in made.ask("record", "--cast", "-").out
    last = json.loads(made.ask("report", "--json").out)["run"]
    assert "no files changed" not in made.ask("record", last, "--cast", "-").out


def test_a_cast_goes_to_stdout_and_nothing_else_does(made: Proven) -> None:
    done = made.ask("record", "--cast", "-", "--columns", "80", "--rows", "24")
    assert (done.code, done.err) == (0, "")
    shown = played(done.out)
    assert (shown.header["width"], shown.header["height"]) == (80, 24)
    assert shown.seconds <= 20
    assert any("finished" in line for line in shown.screens[-1])


def test_secrets_are_in_no_picture(made: Proven) -> None:
    """Not even one that the journal has, because it was no secret where it was written."""
    assert PASSWORD in made.ask("record", "--svg", "-").out
    for form in ("--svg", "--cast"):
        out = ralph("record", form, "-", cwd=made.root, env={"SHOP_API_TOKEN": PASSWORD}).out
        assert "It is done, all tests pass." in out
        assert TOKEN[:30] not in out
        assert PASSWORD not in out


def test_a_copied_journal_makes_the_same_picture_anywhere(made: Proven, tmp_path: Path) -> None:
    [run] = list_runs(made.state)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    shutil.copy(journal_path(made.state, run), elsewhere / "events.jsonl")
    here = made.ask("record", run[:12], "--svg", "-")
    made.root = elsewhere
    there = made.ask("record", "events.jsonl", "--svg", "-")
    assert (here.code, there.code) == (0, 0)
    assert here.out == there.out


def test_a_damaged_journal_is_shown_up_to_the_damage(made: Proven) -> None:
    journal = journal_path(made.state, list_runs(made.state)[-1])
    lines = journal.read_bytes().splitlines(keepends=True)
    middle = len(lines) // 2
    journal.write_bytes(b"".join([*lines[:middle], b"{\n", *lines[middle:]]))
    done = made.ask("record", "--svg", "-")
    assert done.code == 0
    assert "warning:" in done.err
    assert any("no end is recorded" in line for line in seen_svg(done.out).frames[-1])


def test_a_run_under_way_and_one_that_was_killed(tmp_path: Path) -> None:
    made = Proven(tmp_path, stories=[{}, {}])
    gate = shell("touch ../at-work; while ! test -e ../go; do sleep 0.02; done")
    process = made.start(US_001=[DONE], US_002=[[gate, "claim"]])
    try:
        wait_for((tmp_path / "at-work").exists)
        running = made.ask("record", "--svg", "-")
        assert running.code == 0, running.err
        assert "▶ US-002" in text_of(seen_svg(running.out))
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        (tmp_path / "go").touch()
    [run] = {event.run for event in made.events() if isinstance(event, RunStarted)}
    wait_for(lambda: not marked("RALPH_RUN", run))
    killed = seen_svg(made.ask("record", "--svg", "-").out)
    assert "no end is recorded: the run was killed, or it is still running" in killed.frames[-1]
    assert any("1/2 stories" in line for line in killed.frames[-1])


def test_workers_and_their_queue_are_in_the_picture(tmp_path: Path) -> None:
    made = Project(tmp_path, {f"US-00{n}": [writes(f"src/{n}.txt", "x\n")] for n in (1, 2, 3)})
    made.run()
    shown = text_of(seen_svg(ralph_here("record", "--svg", "-", cwd=made.root).out))
    assert "3/3 stories" in shown
    assert re.search(r"\[[12] US-00[123]\]", shown)


WRONG = (
    ((), ExitCode.USAGE, "one of the arguments --svg --cast --gif is required"),
    (("--svg", "a", "--gif", "b"), ExitCode.USAGE, "not allowed with"),
    (("nope", "--svg", "a"), ExitCode.USAGE, "no run matches 'nope'"),
    (("nope.jsonl", "--svg", "a"), ExitCode.BAD_DATA, "journal not found"),
    (("empty.jsonl", "--svg", "a"), ExitCode.USAGE, "is empty"),
    (("--svg", "gone/a.svg"), ExitCode.USAGE, "name a file in an existing folder"),
    (("--svg", "src"), ExitCode.USAGE, "name a file in an existing folder"),
    (("--svg", ""), ExitCode.USAGE, "name a file in an existing folder"),
    (("--svg", "a", "--seconds", "4"), ExitCode.USAGE, "--seconds must be between 5 and 120, not 4"),
    (("--svg", "a", "--columns", "500"), ExitCode.USAGE, "--columns must be between 40 and 240, not 500"),
    (("--svg", "a", "--rows", "2"), ExitCode.USAGE, "--rows must be between 12 and 60, not 2"),
)


def test_what_cannot_be_done_says_why(made: Proven) -> None:
    made.write("empty.jsonl", "")
    for arguments, code, message in WRONG:
        done = made.ask("record", *arguments)
        assert (done.code, done.out) == (code, ""), arguments
        assert message in done.err, arguments
        assert not (made.root / "a").exists()


def test_without_runs_there_is_nothing_to_show(tmp_path: Path) -> None:
    done = Proven(tmp_path).ask("record", "--svg", "a.svg")
    assert done.code == ExitCode.USAGE
    assert "no runs" in done.err


def test_a_gif_needs_a_program_and_says_which(made: Proven, tmp_path: Path) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "git").symlink_to(shutil.which("git") or sys.exit("git"))
    done = made.ask("record", "--gif", "a.gif", env={"PATH": str(folder)})
    assert done.code == ExitCode.ENVIRONMENT
    assert "no program here can make a GIF" in done.err
    assert "install agg, or rsvg-convert (librsvg2-bin) and ImageMagick" in done.err
