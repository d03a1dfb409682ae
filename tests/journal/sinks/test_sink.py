from __future__ import annotations

from pathlib import Path

import pytest

from ralph.core.agent import Outcome
from ralph.core.events import AgentStarted, CheckEnded, IterationEnded, Judged, Noted, Record
from ralph.core.evidence import Ended, Evidence, How
from ralph.core.plan import Mode
from ralph.core.verdict import Kind, Verdict
from ralph.journal.sinks.sink import Account, Sink, Sinks
from ralph.journal.sinks.workspace_files import WorkspaceFiles
from support.told_runs import FAILED, PASSED, ToldRun, seen


class Broken(Sink):
    def __call__(self, record: Record, account: Account) -> None:
        raise ValueError(f"record\n{record.seq}")


class Lines(Sink):
    """A line for each record, outside of iterations only."""

    def __call__(self, record: Record, account: Account) -> None:
        if not account.is_open:
            self.files.append(self.path, f"{record.seq} {type(record.event).__name__}\n")


@pytest.fixture
def files(tmp_path: Path) -> WorkspaceFiles:
    return WorkspaceFiles(tmp_path)


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log"


def sinks(files: WorkspaceFiles, log: Path) -> Sinks:
    return Sinks(files, [Lines(files, log)])


def test_a_sink_that_breaks_disturbs_neither_the_run_nor_the_others(
    files: WorkspaceFiles, log: Path, tmp_path: Path
) -> None:
    both = Sinks(files, [Broken(files, tmp_path / "broken"), Lines(files, log)])
    ToldRun(tmp_path / "j" / "events.jsonl", both).say(Noted("a"), Noted("b"))
    assert both.failures == ("broken could not be written: ValueError: record 1",)
    assert log.read_text() == "1 Noted\n2 Noted\n"


def test_an_iteration_is_open_from_its_start_to_its_end_or_the_runs(tmp_path: Path) -> None:
    account = Account()
    is_open: list[bool] = []

    def listen(record: Record) -> None:
        account.add(record)
        is_open.append(account.is_open)

    run = ToldRun(tmp_path / "j" / "events.jsonl", listen)
    run.start(seen())
    run.iterate(1)
    kinds = [type(record.event).__name__ for record in run.records]
    start, end = kinds.index("IterationStarted"), kinds.index("IterationEnded")
    assert is_open == [False] * start + [True] * (end - start) + [False]
    run.begin(2)
    run.stop()
    assert is_open[-2:] == [True, False]


def test_an_account_has_the_checks_that_were_run_and_then_those_that_were_judged(tmp_path: Path) -> None:
    """A step's check and a hook's refusal are in the evidence only; a killed iteration has no evidence."""
    account = Account()
    run = ToldRun(tmp_path / "j" / "events.jsonl", account.add)
    run.start(seen())
    run.begin()
    run.say(CheckEnded(iteration=1, tree="t", check_set="s", result=PASSED))
    assert list(account.checks) == [PASSED]
    evidence = Evidence(
        mode=Mode.IMPLEMENT, story=None, ended=Ended(How.EXITED), outcome=Outcome(), checks=(PASSED, FAILED)
    )
    run.say(Judged(1, evidence, Verdict(Kind.REJECTED)))
    run.end(1, Kind.REJECTED)
    assert list(account.checks) == [PASSED, FAILED]
    run.say(CheckEnded(iteration=1, tree="t", check_set="s", result=PASSED))  # one of the final checks
    assert list(account.checks) == [PASSED, FAILED]
    run.begin(2)
    assert (list(account.checks), len(account.agents)) == ([], 1)


@pytest.mark.parametrize("killed_after", range(1, 15))
def test_catching_up_writes_what_the_last_record_may_have_missed_and_nothing_twice(
    killed_after: int, files: WorkspaceFiles, log: Path, tmp_path: Path
) -> None:
    run = ToldRun(tmp_path / "j" / "events.jsonl")
    run.start(seen())
    run.iterate(1)
    run.say(Noted("between"))
    records = run.records[:killed_after]
    for told in (killed_after - 1, killed_after):  # the sinks had not, or had, seen the last record
        log.unlink(missing_ok=True)
        before = sinks(files, log)
        for record in records[:told]:
            before(record)
        after = sinks(files, log)
        after.catch_up(records)
        for record in run.records[killed_after:]:
            after(record)
        undisturbed = [r for r in run.records if not 4 <= r.seq < run.records[-1].seq - 1]
        assert log.read_text() == "".join(f"{r.seq} {type(r.event).__name__}\n" for r in undisturbed)


def test_the_records_of_the_test_above_are_the_ones_it_means(tmp_path: Path) -> None:
    run = ToldRun(tmp_path / "j" / "events.jsonl")
    run.start(seen())
    run.iterate(1)
    run.say(Noted("between"))
    assert isinstance(run.records[-2].event, IterationEnded)
    assert isinstance(run.records[4].event, AgentStarted)
    assert len(run.records) == 14


def test_catching_up_with_nothing_is_nothing(files: WorkspaceFiles, log: Path) -> None:
    sinks(files, log).catch_up([])
    assert not log.exists()
