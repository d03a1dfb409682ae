"""`ralph report` over real runs: finished, killed and under way."""

from __future__ import annotations

import json
import os
import re
import signal
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from ralph.core.events import RunStarted
from ralph.host.process.tree import marked
from ralph.views.charts import CHARTS, TITLES
from support.cli import Completed
from support.processes import wait_for
from support.proven import Proven, shell, write

EVIL = "<img src=x onerror=alert(1)> & </style><script>alert(2)</script> [link](javascript:x) `code`"
STORIES: list[dict[str, Any]] = [
    {"title": EVIL, "verify": ["test -f src/one.py"]},
    {"title": "Two"},
    {"title": "Three"},
    {"title": "Four", "dependsOn": ["US-002"]},
]
ONE = [
    write("src/one.py", "ONE = 1\n"),
    shell("git add src && git -c user.name=a -c user.email=a@b.test commit -qm 'by <b>the</b> agent'"),
    write("src/more.py", "MORE = 1\nLESS = 2\n"),
    "claim",
]
BROKEN = [write("tests/test_shop.py", "raise SystemExit(3)\n"), "claim"]
ASKS = [{"ask": {"question": "Which <database>?"}}]


@pytest.fixture
def made(tmp_path: Path) -> Proven:
    """Done with a commit of the agent's own, failed after two attempts, blocked by a question, and one that depends."""
    made = Proven(tmp_path, stories=STORIES)
    done = made.run("--max-loops-per-task", "2", US_001=[ONE], US_002=[BROKEN, BROKEN], US_003=[ASKS])
    assert done.code in (1, 3), done.out
    return made


def section(text: str, title: str) -> str:
    """From a heading of the screen to the next empty line."""
    return text.partition(f"{title}")[2].partition("\n\n")[0]


def test_the_screen_says_what_happened_and_what_to_do(made: Proven) -> None:
    told = made.ask("report")
    assert (told.code, told.err) == (0, "")
    assert re.match(r"Run \d{8}-\d{6}-[0-9a-f]{4} on shop: ", told.out)
    assert "1/4" in told.out
    first = section(told.out, "Look at first").strip().splitlines()
    assert first[0] == "- US-003 asks: Which <database>?"
    assert first[1].strip().startswith("- US-002 failed: ")
    assert 'ralph answer US-003 "…"' in section(told.out, "Questions for you")
    done = section(told.out, "Done (1)")
    assert "US-001 <img src=x" in done
    assert "1 iteration, " in done
    assert "+3 −0 in 2 files" in done
    assert "by <b>the</b> agent (by the agent)" in done
    assert "feat(US-001)" in done
    assert "check 'tests' failed with exit code 1" in section(told.out, "Failed (1)")
    assert "US-004" in section(told.out, "Open (1)")
    kept = section(told.out, "Rejected attempts")
    run = re.search(r"Run (\S+) on", told.out)
    assert run
    assert kept.count("rejected: check 'tests' failed with exit code 1") >= 2
    assert f"ralph rescue show {run[1]}/2" in kept
    assert made.ask("rescue", "show", f"{run[1]}/2").code == 0
    assert "branch     main, 2 commits (1 by the agent)" in told.out
    assert re.search(r"^next +\S", told.out, re.MULTILINE)


def test_json_has_the_same_and_names_files(made: Proven) -> None:
    told = made.ask("report", "--json").json
    states = {story["id"]: story["state"] for story in told["stories"]}
    assert states == {"US-001": "done", "US-002": "failed", "US-003": "blocked", "US-004": "open"}
    first = told["stories"][0]
    assert sorted(first["files"]) == ["src/more.py", "src/one.py"]
    assert first["commits"][0]["subject"] == "by <b>the</b> agent"
    assert [commit["by_agent"] for commit in first["commits"]] == [True, False]
    assert {commit["id"] for commit in first["commits"]} <= set(made.git("log", "--format=%H").split())
    assert told["questions"] == [{"story": "US-003", "text": "Which <database>?"}]
    assert (told["state"], told["done"], told["total"], told["commits"]) == ("ended", 1, 4, 2)


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_page_is_one_file_and_everything_in_it_is_inert(made: Proven, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    told = made.ask("report", "--html", str(page))
    assert (told.code, told.out, told.err) == (0, "", f"wrote {page}\n")
    text = page.read_text()
    tags = Tags()
    tags.feed(text)
    assert tags.seen.isdisjoint({"img", "script", "a", "b", "link", "iframe"})
    assert not [name for name in tags.attributes if name.startswith("on") or name in ("href", "src", "xlink:href")]
    assert EVIL in tags.text
    assert "Which <database>?" in tags.text
    assert set(re.findall(r"https?://[^\"\s]*", text)) == {"http://www.w3.org/2000/svg"}
    assert {name for name in CHARTS if f">{TITLES[name]}</h3>" not in text} == set()
    assert text.count("<svg") == text.count("<desc") == text.count("aria-labelledby=") == len(CHARTS) + 2
    identifiers = re.findall(r' id="([^"]+)"', text)
    assert len(identifiers) == len(set(identifiers))
    assert set(re.findall(r"url\(#([^)]+)\)", text)) <= set(identifiers)
    assert text.count("</style>") == 1
    assert "prefers-color-scheme:dark" in text
    assert "@media print" in text


def test_markdown_goes_to_a_file_or_to_stdout(made: Proven, tmp_path: Path) -> None:
    told = made.ask("report", "--markdown", "-").out
    assert told.startswith("# Run ")
    assert "## Done (1)" in told
    assert "<img" not in told
    assert "\\[link\\](javascript:x) \\`code\\`" in told
    made.ask("report", "--markdown", str(tmp_path / "r.md"))
    assert (tmp_path / "r.md").read_text() == told


def test_bad_input_is_an_error_that_says_what_to_do(made: Proven) -> None:
    for name in ("", "nowhere/r.html", "."):
        told = made.ask("report", "--html", name)
        assert told.code == 64
        assert "cannot write the report to" in told.err
    assert made.ask("report", "--html", "x", "--json").code == 64
    told = made.ask("report", "19990101")
    assert told.code == 64
    assert "`ralph runs`" in told.err


def test_the_end_of_a_run_is_its_short_form(tmp_path: Path) -> None:
    made = Proven(tmp_path, stories=STORIES)
    out = made.run("--max-loops-per-task", "1", US_001=[ONE], US_002=[BROKEN], US_003=[ASKS]).out
    summary = out[out.rindex("[") :]
    assert re.search(r"^  failed +US-002: check 'tests' failed with exit code 1", summary, re.MULTILINE)
    assert re.search(r"^  blocked +US-003: Which <database>\?", summary, re.MULTILINE)
    assert "2 commits" in summary
    assert "`ralph report`" in summary


def test_a_run_in_a_worktree_shows_the_states_it_left(tmp_path: Path) -> None:
    made = Proven(tmp_path, stories=STORIES)
    made.run("--worktree", "--max-loops-per-task", "2", US_001=[ONE], US_002=[BROKEN] * 6, US_003=[ASKS])
    told = report(made.ask("report", "--json"))
    states = {story["id"]: story["state"] for story in told["stories"]}
    assert states == {"US-001": "done", "US-002": "failed", "US-003": "blocked", "US-004": "open"}
    for form in ((), ("--markdown", "-"), ("--html", "-")):
        shown = made.ask("report", *form).out
        assert "depends on US-002 (failed)" in shown
        assert "iterations, " in shown
        assert "sessions" not in shown


def test_a_finished_story_lists_its_commits_of_earlier_runs(tmp_path: Path) -> None:
    made = Proven(tmp_path, stories=[{}, {}])
    made.write("README", "US-001\n")
    made.git("add", "README")
    made.git("commit", "-qm", "other plan\n\nRalph-Run: 1\nRalph-Story: US-001\nRalph-Plan: .ralph/other/prd.json")
    made.run("--once", US_001=[ONE])
    first = report(made.ask("report", "--json"))
    made.run(US_001=[ONE], US_002=[[write("src/two.py", "TWO = 2\n"), "claim"]])
    for form in ((), ("--markdown", "-"), ("--html", "-")):
        shown = made.ask("report", *form).out
        assert f"(run {first['run']})" in shown
        assert "other plan" not in shown
    one, two = report(made.ask("report", "--json"))["stories"]
    assert [commit["earlier_run"] for commit in one["commits"]] == [first["run"]]
    assert [commit["id"] for commit in one["commits"]] == [first["stories"][0]["commits"][-1]["id"]]
    assert one["files"] == []
    assert [commit["earlier_run"] for commit in two["commits"]] == [""]


def test_an_answered_question_waits_no_longer(tmp_path: Path) -> None:
    made = Proven(tmp_path, stories=[{}])
    made.run(US_001=[ASKS])
    assert made.ask("report", "--json").json["questions"]
    assert made.ask("answer", "US-001", "PostgreSQL").code == 0
    assert made.ask("report", "--json").json["questions"] == []


def test_a_run_under_way_and_one_that_was_killed(tmp_path: Path) -> None:
    made = Proven(tmp_path, stories=[{}, {}])
    gate = shell("touch ../at-work; while ! test -e ../go; do sleep 0.02; done")
    process = made.start(US_001=[ONE], US_002=[[gate, "claim"]])
    try:
        wait_for((tmp_path / "at-work").exists)
        told = report(made.ask("report", "--json"))
        assert (told["state"], told["reason"]) == ("running", "")
        assert [story["state"] for story in told["stories"]] == ["done", "in progress"]
        assert "In progress (1)" in made.ask("report").out
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        (tmp_path / "go").touch()
    [run] = {event.run for event in made.events() if isinstance(event, RunStarted)}
    wait_for(lambda: not marked("RALPH_RUN", run))
    told = report(made.ask("report", "--json"))
    assert told["state"] == "killed"
    assert told["next"].startswith("`ralph run`")
    assert told["stories"][0]["commits"]


def test_commits_that_are_gone_are_said_to_be(tmp_path: Path) -> None:
    made = Proven(tmp_path, stories=[{}])
    made.run(US_001=[ONE])
    made.git("checkout", "-q", "--orphan", "other")
    made.git("commit", "-qm", "other")
    made.git("branch", "-D", "main")
    for ref in made.git("for-each-ref", "--format=%(refname)", "refs/ralph").split():
        made.git("update-ref", "-d", ref)
    made.git("reflog", "expire", "--expire=now", "--all")
    made.git("gc", "-q", "--prune=now")
    told = made.ask("report")
    assert told.code == 0
    assert "no longer in the repository" in told.out


def test_without_the_repository_the_journal_is_enough(tmp_path: Path) -> None:
    made = Proven(tmp_path, stories=[{}])
    made.run(US_001=[ONE])
    (made.root / ".git").rename(tmp_path / "git")
    told = made.ask("report")
    assert told.code == 0
    assert "repository not found" in told.out
    assert "US-001" in told.out


def test_a_damaged_journal_is_reported_up_to_its_damage(tmp_path: Path) -> None:
    made = Proven(tmp_path, stories=[{}])
    made.run(US_001=[ONE])
    [journal] = made.state.glob("runs/*/events.jsonl")
    *lines, last = journal.read_text().splitlines()
    journal.write_text("\n".join([*lines, "{damaged", last]) + "\n")
    told = made.ask("report")
    assert told.code == 0
    assert "warning: " in told.err
    assert "Done (1)" in told.out


def report(done: Completed) -> dict[str, Any]:
    assert done.code == 0, done.err
    found: dict[str, Any] = json.loads(done.out)
    return found
