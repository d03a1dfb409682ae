"""The baseline: a failure that was there before is told apart from one that an agent made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ralph.config.checks import ChosenCheck
from ralph.config.schema import Check, Config
from ralph.core.events import Baseline, CheckEnded, CheckStarted, IterationEnded, Record
from ralph.core.moves import Reason
from ralph.core.plan import Mode, Plan, Story
from ralph.core.verdict import Kind
from ralph.host.git.swap import Keep, keep_nothing
from ralph.host.process.signals import StopSignal
from ralph.proof.checks import Checks
from ralph.proof.place import Ran, Runner, Tell, silent

STORY = Story(id="A", title="", verify=("test -f a",))
PLAN = Plan(name="p", stories=(STORY,))


class Here:
    """A folder that holds whatever tree is asked for."""

    where = "in-place"
    note = ""
    limits: tuple[str, ...] = ()

    def __init__(self, runner: Runner, root: Path, env: dict[str, str], reports: Path) -> None:
        self.runner, self.root, self.env, self.reports = runner, root, env, reports

    def compose(self, base: str, files: Mapping[str, bytes | None]) -> str:
        return base

    def begin(self, candidate: str, snapshot: str, keep: Keep = keep_nothing) -> None:
        pass

    def run(self, tree: str, checks: Sequence[ChosenCheck], *, label: str = "", tell: Tell = silent) -> tuple[Ran, ...]:
        return tuple(self.runner.run(checks, self.root, self.env, self.reports, label, tell))


@pytest.fixture
def stop() -> Iterator[StopSignal]:
    with StopSignal() as signal:
        yield signal


def checks(root: Path, stop: StopSignal, told: list[Any], policy: str = "strict") -> Checks:
    config = Config(
        checks=(Check(name="old", command="echo ran >> ../runs; test -f fixed"), Check(name="good", command="true")),
        baseline=policy,  # type: ignore[arg-type]
    )
    workspace = root / "ws"
    workspace.mkdir(exist_ok=True)
    env = {"PATH": "/usr/bin:/bin"}
    here = Here(Runner(ceiling=100, stop=stop), workspace, env, root / "reports")
    return Checks(config, workspace, env, told.append, stop, "run", root / "baseline.json", place=here)


def test_a_failure_that_was_there_before_is_marked_and_still_rejects_when_strict(
    tmp_path: Path, stop: StopSignal
) -> None:
    told: list[Any] = []
    run = checks(tmp_path, stop, told)
    stop_here = run.baseline(PLAN, lambda: "tree-1")
    assert [type(event) for event in told] == [CheckStarted, CheckStarted, Baseline]
    assert stop_here is not None
    assert stop_here.reason is Reason.RED_BASELINE
    own, old, good = run(PLAN, STORY, "story", 1, "tree-2")
    assert (own.name, own.failed_before, own.required) == ("A: test -f a", False, True)
    assert (old.failed_before, old.required) == (True, True)
    assert good.passed
    assert isinstance(told[-1], CheckEnded)


def test_with_no_worse_it_is_no_reason_but_the_storys_own_check_is(tmp_path: Path, stop: StopSignal) -> None:
    run = checks(tmp_path, stop, [], "no-worse")
    run.baseline(PLAN, lambda: "tree-1")
    own, old, _ = run(PLAN, STORY, "story", 1, "tree-2")
    assert (own.required, old.required) == (True, False)


def test_what_was_accepted_is_what_later_failures_are_compared_with(tmp_path: Path, stop: StopSignal) -> None:
    run = checks(tmp_path, stop, [], "no-worse")
    run.baseline(PLAN, lambda: "tree-1")
    fixed = tmp_path / "ws" / "fixed"
    fixed.write_text("")
    run(PLAN, STORY, "story", 1, "tree-2")
    run.listen(Record(1, 0, IterationEnded(iteration=1, story="A", mode=Mode.IMPLEMENT, kind=Kind.ACCEPTED)))
    fixed.unlink()
    _, old, _ = run(PLAN, STORY, "story", 2, "tree-3")
    assert (old.passed, old.failed_before, old.required) == (False, False, True)


def test_a_baseline_is_found_out_once_for_a_tree(tmp_path: Path, stop: StopSignal) -> None:
    (tmp_path / "ws").mkdir()
    (tmp_path / "ws" / "fixed").touch()
    for tree, runs in (("tree-1", 1), ("tree-1", 1), ("tree-2", 2)):
        checks(tmp_path, stop, []).baseline(PLAN, partial(str, tree))
        assert len((tmp_path / "runs").read_text().splitlines()) == runs
    (tmp_path / "baseline.json").write_text("{damaged")
    checks(tmp_path, stop, []).baseline(PLAN, lambda: "tree-2")
    assert len((tmp_path / "runs").read_text().splitlines()) == 3


def test_what_is_accepted_is_the_baseline_of_the_next_checkpoint(tmp_path: Path, stop: StopSignal) -> None:
    run = checks(tmp_path, stop, [])
    run.baseline(PLAN, lambda: "tree-1")
    (tmp_path / "ws" / "fixed").write_text("")
    run(PLAN, STORY, "story", 1, "tree-2")
    run.listen(Record(1, 0, IterationEnded(iteration=1, story="A", mode=Mode.IMPLEMENT, kind=Kind.ACCEPTED)))
    told: list[Any] = []
    checks(tmp_path, stop, told).baseline(PLAN, lambda: "tree-2")
    assert [[result.passed for result in event.results] for event in told] == [[True, True]]
    assert len((tmp_path / "runs").read_text().splitlines()) == 2, "the third time it was known"


def test_a_rejected_attempt_says_nothing_about_the_checkpoint(tmp_path: Path, stop: StopSignal) -> None:
    run = checks(tmp_path, stop, [])
    run.baseline(PLAN, lambda: "tree-1")
    (tmp_path / "ws" / "fixed").write_text("")
    run(PLAN, STORY, "story", 1, "tree-2")
    run.listen(Record(1, 0, IterationEnded(iteration=1, story="A", mode=Mode.IMPLEMENT, kind=Kind.REJECTED)))
    (tmp_path / "ws" / "fixed").unlink()
    told: list[Any] = []
    checks(tmp_path, stop, told).baseline(PLAN, lambda: "tree-1")
    assert [result.passed for result in told[-1].results] == [False, True]
