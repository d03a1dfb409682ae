"""What a run remembers of its iterations."""

from __future__ import annotations

import pytest

from ralph.core.events import IterationEnded, RunStarted
from ralph.core.history import History, fold, to_be_told
from ralph.core.plan import Mode
from ralph.core.verdict import Kind


def ended(kind: Kind, feedback: str = "", *, completes: bool = False) -> IterationEnded:
    return IterationEnded(
        iteration=1, story="US-001", mode=Mode.IMPLEMENT, kind=kind, feedback=feedback, completes=completes
    )


def after(*events: IterationEnded, history: History | None = None) -> History:
    history = history or History()
    for event in events:
        history = fold(history, event, 1.0)
    return history


@pytest.mark.parametrize("kind", [kind for kind in Kind if not kind.uses_attempt])
def test_why_an_attempt_was_rejected_outlives_what_cost_no_attempt(kind: Kind) -> None:
    history = after(ended(Kind.REJECTED, "a test failed"), ended(kind, "something else"))
    assert history.feedback == {"US-001": "a test failed"}


@pytest.mark.parametrize("kind", [Kind.REJECTED, Kind.CRASHED, Kind.TIMED_OUT, Kind.PARTIAL])
def test_the_last_attempt_is_the_one_that_is_told(kind: Kind) -> None:
    history = after(ended(Kind.REJECTED, "a test failed"), ended(kind, "another one failed"))
    assert history.feedback == {"US-001": "another one failed"}


def test_what_was_put_back_as_a_story_was_done_is_told_to_the_next_session_whatever_it_is_about() -> None:
    history = after(ended(Kind.REJECTED, "a test failed"), ended(Kind.ACCEPTED, "a notice", completes=True))
    assert to_be_told(history.feedback, "US-001") == to_be_told(history.feedback, "US-002") == "a notice"
    assert to_be_told(after(ended(Kind.LIMIT), history=history).feedback, "US-002") == "a notice", (
        "nobody has heard it yet"
    )
    assert to_be_told(after(ended(Kind.REJECTED, "why"), history=history).feedback, "US-002") == ""


def test_a_story_that_is_done_needs_no_telling() -> None:
    assert after(ended(Kind.REJECTED, "a test failed"), ended(Kind.ACCEPTED, completes=True)).feedback == {}


def test_an_interrupted_attempt_is_told_when_there_is_nothing_else_to_tell() -> None:
    assert after(ended(Kind.INTERRUPTED, "cut short")).feedback == {"US-001": "cut short"}


def test_a_run_takes_over_what_earlier_runs_ran_into() -> None:
    started = RunStarted(run="r", workspace="w", layout="l", plan="p", pid=1, feedback={"US-002": "a test failed"})
    assert fold(History(), started, 1.0).feedback == {"US-002": "a test failed"}
