"""Why runs end, told from their journals; every reason has its words, its line and its exit code."""

from __future__ import annotations

from pathlib import Path

import pytest

from ralph.cli.plain_view import describe
from ralph.cli.summary import summary
from ralph.core.control import Verb
from ralph.core.events import (
    AnyEvent,
    Asked,
    Paused,
    Record,
    Resumed,
    RunEnded,
    StoriesRetried,
    StorySetAside,
    WaitStarted,
)
from ralph.core.exit_codes import ExitCode
from ralph.core.moves import Reason
from ralph.core.plan import Mode, Plan, State, Story
from ralph.core.review import LOST_REVIEWS, Review, ReviewStatus
from ralph.core.transitions import MOVES, illegal_transitions
from ralph.core.verdict import Kind
from ralph.journal.run_state import RunState
from ralph.report.advice import ADVICE
from ralph.report.explain import Explanation, explain
from ralph.report.transition_table import PEOPLE, table
from support.told_runs import ToldRun, seen


def told(
    path: Path, reason: Reason | None, *, is_alive: bool = False, middle: tuple[AnyEvent, ...] = ()
) -> Explanation:
    run = ToldRun(path)
    run.start(seen(), seen("US-002", State.FAILED))
    run.iterate(1)
    run.iterate(2, Kind.REJECTED, story="US-002", rescue="refs/ralph/rescue/r/2", story_state=State.FAILED)
    run.say(*middle)
    if reason:
        run.stop(reason, "what was special")
    run.journal.close()
    return explain(run.records, is_alive=is_alive)


def test_every_reason_is_explained() -> None:
    assert set(ADVICE) == set(Reason)
    for advice in ADVICE.values():
        assert advice.why.endswith(".")
        assert advice.next


@pytest.mark.parametrize("reason", Reason)
def test_an_explanation_has_the_reason_the_evidence_and_what_to_do(reason: Reason, tmp_path: Path) -> None:
    found = told(tmp_path / "events.jsonl", reason)
    assert (found.state, found.reason, found.exit_code) == ("ended", reason.value, reason.exit_code)
    by_file = '`ralph answer - "…"`, then `ralph run`'  # no story is blocked, so the question is in WAITING
    rejected = " 1 of 2 attempts was rejected: check 'tests' failed with exit code 1."
    assert found.why in (ADVICE[reason].why, ADVICE[reason].why + rejected)
    assert found.why.endswith(rejected) or reason is not Reason.ITERATION_CAP
    special = {Reason.WAITING: by_file}
    special[Reason.FAILED_STORIES] = ADVICE[Reason.FAILED_STORIES].next.replace(" ID", " US-002")
    assert found.next == special.get(reason, ADVICE[reason].next)
    assert found.detail == "what was special"
    assert [(past.iteration, past.verdict) for past in found.last] == [(1, Kind.ACCEPTED), (2, Kind.REJECTED)]
    assert [check.tail for check in found.failing] == ["1 failed\n2 passed"]
    assert found.stuck == {"US-002": "check 'tests' failed with exit code 1"}
    assert found.rescues == ("refs/ralph/rescue/r/2",)
    assert {counter.what: counter.count for counter in found.counters}["iterations"] == 2


def test_a_story_that_only_its_reviewer_failed_is_not_blamed(tmp_path: Path) -> None:
    aside = StorySetAside("US-001", "t", f"3 {LOST_REVIEWS}")
    found = told(tmp_path / "events.jsonl", Reason.FAILED_STORIES, middle=(aside,))
    assert "`review.agent`" in found.next
    assert "`ralph explain`" in found.next
    assert "`ralph retry US-001`" in found.next, "of two failed stories, the one whose reviewer failed"
    assert " ID" not in found.next


def test_a_run_that_has_not_ended_is_explained_too(tmp_path: Path) -> None:
    assert told(tmp_path / "1", None).state == "killed"
    assert told(tmp_path / "2", None, is_alive=True).state == "running"
    assert told(tmp_path / "3", None, is_alive=True, middle=(Paused(),)).state == "paused"
    waits = told(
        tmp_path / "4", None, is_alive=True, middle=(WaitStarted(1_800_000_000, "the usage limit is reached"),)
    )
    assert ". the usage limit is reached" in waits.why
    assert "it is waiting until 20" in waits.why
    assert explain([], is_alive=False).state == "killed"


def test_every_wait_and_every_stop_is_one_line_and_has_one_exit_code() -> None:
    waits: list[AnyEvent] = [WaitStarted(1_800_000_000, "w"), Paused(), Resumed(3), StorySetAside("US-001", "t", "why")]
    for event in (*waits, *(RunEnded(reason) for reason in Reason)):
        state = RunState()
        record = Record(1, 1_700_000_000, event)
        state.add(record)
        line = describe(record, state)
        assert line
        assert "\n" not in line
        if isinstance(event, RunEnded):
            assert isinstance(event.reason.exit_code, ExitCode)
            assert sum("next " in each for each in summary(state)) == 1


def test_a_story_that_was_set_aside_has_failed_even_if_the_run_was_killed_right_after(tmp_path: Path) -> None:
    state = RunState()
    run = ToldRun(tmp_path / "events.jsonl", state.add)
    run.start(seen())
    [first, *_] = state.stories
    state.add(Record(98, run.now, StorySetAside(first, "t", "stuck")))
    assert state.stories[first].state is State.FAILED
    state.add(Record(99, run.now, StoriesRetried((first,))))
    assert state.stories[first].state is State.TODO


@pytest.mark.parametrize("verb", Verb)
def test_what_is_asked_while_an_agent_works_is_a_line_at_once(verb: Verb, tmp_path: Path) -> None:
    state = RunState()
    run = ToldRun(tmp_path / "events.jsonl", state.add)
    run.start(seen())
    asked = Record(99, run.now, Asked(verb, "ralph"))
    if verb is not Verb.STOP_NOW:  # a signal is acknowledged at once
        assert describe(asked, state) == "", "at a safe point it happens at once, and that is a line"
    run.begin()
    run.journal.close()
    assert describe(asked, state)


def test_the_table_of_transitions_says_what_the_rules_say() -> None:
    changes = table()
    assert {change.by for change in changes} == {"implement", "review", "fix", PEOPLE}
    of_people = {(c.old, c.new): c.legal for c in changes if c.by == PEOPLE}
    assert of_people == {(old, new): new in MOVES[old] for old in State for new in State if old is not new}
    legal = {(c.by, c.old, c.new): c.condition for c in changes if c.legal and c.by != PEOPLE and c.old != c.new}
    assert legal == {
        ("implement", "null", "needs_review"): "reviewCount stays, without feedback",
        ("review", "needs_review", "approved"): "reviewCount + 1",
        ("review", "needs_review", "changes_requested"): "reviewCount + 1, with feedback",
        ("fix", "changes_requested", "needs_review"): "reviewCount stays, without feedback",
    }
    assert all(change.why for change in changes if not change.legal)


def test_a_condition_of_the_table_is_one_of_the_rules() -> None:
    old = Story(id="a", title="", review=Review(ReviewStatus.NEEDS_REVIEW, 1))
    new = Story(id="a", title="", state=State.DONE, review=Review(ReviewStatus.APPROVED, 1))
    before, after = (Plan(name="", stories=(story,), reviewed=True) for story in (old, new))
    assert illegal_transitions(before, after, Mode.REVIEW)
