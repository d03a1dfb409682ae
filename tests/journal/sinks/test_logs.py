"""The small logs of seed 000: sessions, activity, failing checks."""

from __future__ import annotations

from pathlib import Path

import pytest

from ralph.core.events import AgentStarted, Proved
from ralph.core.evidence import CheckResult
from ralph.core.moves import Reason
from ralph.core.plan import Mode
from ralph.core.verdict import Kind
from ralph.journal.sinks.logs import LIMIT, activity, context, failures, sessions
from ralph.journal.sinks.sink import Log, Sinks
from ralph.journal.sinks.workspace_files import WorkspaceFiles
from support.told_runs import FAILED, PASSED, ToldRun, seen


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


@pytest.fixture
def run(root: Path, tmp_path: Path) -> ToldRun:
    files = WorkspaceFiles(root)
    logs = [
        Log(files, root / "sessions.log", sessions),
        Log(files, root / "activity.log", activity),
        Log(files, root / "failure-context.log", failures, LIMIT),
    ]
    run = ToldRun(tmp_path / "state" / "events.jsonl", Sinks(files, logs))
    run.start(seen())
    return run


def test_iterations_that_do_not_finish_their_story_are_listed(run: ToldRun, root: Path) -> None:
    run.iterate(1, Kind.REJECTED)
    run.iterate(2, Kind.TIMED_OUT, story="US-003")
    run.iterate(3)
    run.iterate(4, completes=False, headline="ready for review")
    run.iterate(5, story="", mode=Mode.SETUP, completes=False)
    assert (root / "sessions.log").read_text() == (
        "incomplete:US-001:1700000011:rejected\n"
        "incomplete:US-003:1700000021:timed-out\n"
        "incomplete:US-001:1700000043:in-review\n"
    )


def test_a_story_id_cannot_break_the_fields_of_a_session(run: ToldRun, root: Path) -> None:
    run.iterate(1, Kind.REJECTED, story="US-1:2\nincomplete:US-9:1:done")
    assert (root / "sessions.log").read_text() == "incomplete:US-1-2 incomplete-US-9-1-done:1700000011:rejected\n"


def test_each_prompt_is_listed_with_its_length_and_without_its_text(run: ToldRun, root: Path) -> None:
    run.begin()
    run.say(AgentStarted(iteration=1, step="again", pid=3, start="1", argv=("claude", "-p", "secret")))
    assert not (root / "activity.log").exists()
    run.judge()
    run.end()
    assert (root / "activity.log").read_text() == (
        "2023-11-14T22:13:24Z US-001 iteration=1 prompt_length=1234\n2023-11-14T22:13:25Z US-001 iteration=1 prompt\n"
    )


def test_failing_checks_leave_the_end_of_their_output(run: ToldRun, root: Path) -> None:
    lint = CheckResult("lint", "ruff check", False, None, timed_out=True, tail="slow", required=False)
    run.begin()
    run.judge(1, Kind.REJECTED, PASSED, FAILED, lint)
    assert not (root / "failure-context.log").exists()
    run.end(1, Kind.REJECTED)
    assert (
        (root / "failure-context.log").read_text()
        == """=== 2023-11-14T22:13:33Z US-001, iteration 1: tests failed (exit 1)
    $ pytest -q
    1 failed
    2 passed

=== 2023-11-14T22:13:33Z US-001, iteration 1: lint failed (timed out)
    $ ruff check
    slow

"""
    )


def test_final_checks_that_fail_are_there_too(run: ToldRun, root: Path) -> None:
    run.say(Proved(tree="t", passed=False, results=(PASSED, FAILED)))
    run.stop(Reason.FINAL_CHECKS)
    text = (root / "failure-context.log").read_text()
    assert text.startswith("=== 2023-11-14T22:13:22Z final checks: tests failed (exit 1)\n")
    assert text.count("===") == 1


def test_output_is_cut_to_its_last_hundred_lines_and_cannot_fake_a_header() -> None:
    tail = "\n".join(["=== fake header", *(f"line {number}" for number in range(300)), "=== another \x1b[31mfake"])
    lines = context(CheckResult("t", "t", False, 1, tail=tail), "now").splitlines()
    assert lines[:3] == ["=== now: t failed (exit 1)", "    $ t", "    line 201"]
    assert lines[-2:] == ["    === another fake", ""]
    assert len(lines) == 2 + 100 + 1


def test_the_longest_possible_output_is_still_smaller_than_the_file_may_be() -> None:
    wide = "\n".join(["\U0001f600" * 2000] * 200)
    assert 10_000 < len(context(CheckResult("t", "t", False, 1, tail=wide), "now").encode()) < LIMIT


def test_the_failure_log_is_rotated_and_stays_small(run: ToldRun, root: Path) -> None:
    for number in range(1, 25):
        run.begin(number)
        output = "\n".join(f"{number} {'x' * 90}" for _ in range(100))
        run.judge(number, Kind.REJECTED, CheckResult("t", "t", False, 1, tail=output))
        run.end(number, Kind.REJECTED)
    sizes = {path.name: path.stat().st_size for path in root.glob("failure-context.log*")}
    assert sizes.keys() == {"failure-context.log", "failure-context.log.1"}
    assert 90_000 < sizes["failure-context.log.1"] <= LIMIT
    assert 0 < sizes["failure-context.log"] <= LIMIT
    assert "iteration 24:" in (root / "failure-context.log").read_text()
