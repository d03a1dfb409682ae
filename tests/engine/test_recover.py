"""How far an open iteration came, by its records."""

from __future__ import annotations

from ralph.core.agent import Outcome
from ralph.core.events import AnyEvent, Committed, IterationEnded, IterationStarted, Judged, Settling
from ralph.core.evidence import Ended, Evidence, How
from ralph.core.plan import Mode
from ralph.core.verdict import Kind, Verdict
from ralph.engine.recover import find_open

STARTED = IterationStarted(iteration=1, story="US-001", title="t", mode=Mode.IMPLEMENT, attempt=1)
ENDED = IterationEnded(iteration=1, story="US-001", mode=Mode.IMPLEMENT, kind=Kind.ACCEPTED)
KEEPS = Settling(iteration=1, keep=True, commit=True)
COMMITTED = Committed(iteration=1, commit="c0ffee")


def judged(kind: Kind) -> Judged:
    evidence = Evidence(mode=Mode.IMPLEMENT, story=None, ended=Ended(How.EXITED, code=0), outcome=Outcome())
    return Judged(1, evidence, Verdict(kind))


def test_an_iteration_with_an_end_is_not_open() -> None:
    assert find_open([STARTED, judged(Kind.ACCEPTED), KEEPS, COMMITTED, ENDED]) is None


def test_an_open_iteration_is_known_by_its_last_announcement() -> None:
    records: list[AnyEvent] = [STARTED, judged(Kind.ACCEPTED), KEEPS, COMMITTED]
    found = find_open(records)
    assert found is not None
    assert (found.settling, found.committed) == (KEEPS, COMMITTED)


def test_what_a_hook_refused_is_not_kept_any_more() -> None:
    found = find_open([STARTED, judged(Kind.ACCEPTED), KEEPS, judged(Kind.REJECTED)])
    assert found is not None
    assert found.settling is None
    assert found.judged == judged(Kind.REJECTED)


def test_an_earlier_iteration_does_not_count() -> None:
    later = IterationStarted(iteration=2, story="US-002", title="t", mode=Mode.IMPLEMENT, attempt=1)
    found = find_open([STARTED, judged(Kind.ACCEPTED), KEEPS, ENDED, later])
    assert found is not None
    assert (found.started, found.judged, found.settling) == (later, None, None)
