from __future__ import annotations

from pathlib import Path

import pytest

from ralph.core.agent import Limit, Retry, Text
from ralph.core.events import (
    AgentSaid,
    Noted,
    Proved,
    Recovered,
    RescueSaved,
    RolledBack,
    StepEnded,
    WaitEnded,
    WaitStarted,
)
from ralph.core.evidence import CheckResult
from ralph.core.moves import Reason
from ralph.core.verdict import Kind
from ralph.journal.sinks.logs import RunLog, describe
from ralph.journal.sinks.sink import Sinks
from ralph.journal.sinks.workspace_files import WorkspaceFiles
from support.told_runs import FAILED, RUN, START, ToldRun, seen


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


def sinks_in(root: Path) -> Sinks:
    files = WorkspaceFiles(root)
    return Sinks(files, [RunLog(files, root / "runs")])


@pytest.fixture
def run(root: Path, tmp_path: Path) -> ToldRun:
    return ToldRun(tmp_path / "state" / "events.jsonl", sinks_in(root))


def log(root: Path) -> str:
    return (root / "runs" / f"run-{RUN}.log").read_text()


def test_a_run_reads_like_a_story(run: ToldRun, root: Path) -> None:
    run.start(seen())
    run.begin()
    run.say(AgentSaid(1, Text("I will\nbegin")))
    run.judge(1, Kind.REJECTED, FAILED)
    run.say(RescueSaved(1, "refs/ralph/rescue/r/1", "c"), RolledBack(iteration=1, removed=2, rewritten=1))
    run.end(1, Kind.REJECTED, notices=("the plan was put back",))
    run.say(WaitStarted(START + 3600, "usage limit"), WaitEnded())
    run.iterate(2)
    run.say(Proved(tree="t1", passed=True, results=(CheckResult("tests", "pytest", passed=True),)))
    run.stop()
    assert (
        log(root)
        == """2023-11-14T22:13:20Z run 20231114-221320-ab12 of Shop: 0 of 1 stories done
2023-11-14T22:13:20Z   ralph 1.2.3, agent claude sonnet, branch main
2023-11-14T22:13:20Z   checks: tests
2023-11-14T22:13:23Z iteration 1: implement US-001 - Add a cart (attempt 1)
2023-11-14T22:13:24Z   agent started: agent, pid 99
2023-11-14T22:13:25Z   says: I will begin
2023-11-14T22:13:26Z   model sonnet-4
2023-11-14T22:13:27Z   uses Edit cart.py
2023-11-14T22:13:28Z   agent ended: exited, exit code 0, 1m 01s, 127 tokens, $0.2500
2023-11-14T22:13:28Z   output: /s/raw.log
2023-11-14T22:13:29Z   step agent: ok
2023-11-14T22:13:30Z   check tests: failed (exit 1, 1s)
2023-11-14T22:13:31Z   verdict: rejected
2023-11-14T22:13:32Z   the work is kept in refs/ralph/rescue/r/1
2023-11-14T22:13:33Z   rolled back: 2 removed, 1 restored
2023-11-14T22:13:34Z iteration 1: rejected US-001 - Add a cart: check 'tests' failed with exit code 1 (1m 05s)
2023-11-14T22:13:34Z   note: the plan was put back
2023-11-14T22:13:35Z waiting until 2023-11-14T23:13:20Z: usage limit
2023-11-14T22:13:36Z continuing
2023-11-14T22:13:38Z iteration 2: implement US-001 - Add a cart (attempt 1)
2023-11-14T22:13:39Z   agent started: agent, pid 99
2023-11-14T22:13:40Z   model sonnet-4
2023-11-14T22:13:41Z   uses Edit cart.py
2023-11-14T22:13:42Z   agent ended: exited, exit code 0, 1m 01s, 127 tokens, $0.2500
2023-11-14T22:13:42Z   output: /s/raw.log
2023-11-14T22:13:43Z   step agent: ok
2023-11-14T22:13:44Z   check tests: passed (exit 0, 1s)
2023-11-14T22:13:45Z   verdict: accepted
2023-11-14T22:13:46Z   commit abc123 feat(US-001): Add a cart
2023-11-14T22:13:47Z iteration 2: accepted US-001 - Add a cart: done (1m 05s)
2023-11-14T22:13:48Z final checks passed on tree t1
2023-11-14T22:13:49Z run ended: complete
"""
    )


def test_the_log_does_not_grow_while_an_iteration_is_open(run: ToldRun, root: Path) -> None:
    """It would become part of the story's commit, or be rolled back with it."""
    run.start(seen())
    before = log(root)
    run.begin()
    run.judge(1, Kind.ACCEPTED)
    run.say(Noted("in between"))
    assert log(root) == before
    run.end()
    assert "in between" in log(root)


def test_an_iteration_that_ends_with_the_run_is_told_too(run: ToldRun, root: Path) -> None:
    run.start(seen())
    run.begin()
    run.stop(Reason.REPOSITORY, "the repository was\nreplaced")
    assert "iteration 1: implement" in log(root)
    assert log(root).endswith("run ended: repository (the repository was replaced)\n")


def test_a_killed_iteration_is_told_by_the_run_that_closes_it(run: ToldRun, root: Path) -> None:
    run.start(seen())
    run.begin()
    killed_at = len(run.records)
    before = log(root)
    run.judge(1, Kind.INTERRUPTED)
    run.end(1, Kind.INTERRUPTED, headline="stopped before it finished")
    run.stop(Reason.INTERRUPTED)
    undisturbed = log(root)
    (root / "runs" / f"run-{RUN}.log").write_text(before)
    sinks = sinks_in(root)
    sinks.catch_up(run.records[:killed_at])
    assert log(root) == before
    for record in run.records[killed_at:]:
        sinks(record)
    assert log(root) == undisturbed


def test_a_run_id_that_is_no_name_is_no_path(run: ToldRun, root: Path) -> None:
    run.start(seen(), run="../../evil")
    run.stop()
    assert not list(root.parent.rglob("*evil*"))


@pytest.mark.parametrize(
    ("event", "lines"),
    [
        (AgentSaid(1, Limit(rejected=True)), ["  usage limit reached"]),
        (AgentSaid(1, Limit(rejected=False)), []),
        (AgentSaid(1, Retry(2, 529)), ["  the client retries (attempt 2, status 529)"]),
        (Recovered("r1", 1, "undid iteration 1"), ["recovered run r1: undid iteration 1"]),
        (Noted("no check", warning=True), ["warning: no check"]),
        (
            StepEnded(iteration=1, step="lint", kind="command", ok=False, tries=3, detail="bad\nnews"),
            ["  step lint: failed after 3 tries: bad news"],
        ),
        (
            StepEnded(iteration=1, step="lint", kind="command", ok=False, skipped="its circuit breaker is open"),
            ["  step lint: skipped, its circuit breaker is open"],
        ),
    ],
)
def test_what_happens_has_a_line(event: object, lines: list[str]) -> None:
    assert describe(event) == lines  # type: ignore[arg-type]
