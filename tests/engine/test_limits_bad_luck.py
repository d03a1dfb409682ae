"""Bad luck is not being stuck: failures of different kinds trip nothing, and what was given up comes back."""

from __future__ import annotations

import msgspec
import pytest

from ralph.core.events import PlanSeen, Proved, SeenStory, StoriesRetried, StorySetAside
from ralph.core.moves import Move, Prove, Reason, Retry, SetAside, Stop, Work
from ralph.core.plan import Mode, Plan, State
from ralph.core.proof import Suspicion
from ralph.core.rules import Limits, OnStuck
from ralph.core.verdict import Kind
from support.decisions import Told, attempt, checked, ended, plan

LUCK = Limits(max_iterations=0, per_story=5, on_stuck=OnStuck.NEXT, same_only=True, retry_rounds=2)
FILES = ("src/a.py",)


def told(limits: Limits = LUCK) -> Told:
    return Told(limits)


def failing(*errors: str, story: str = "S0", files: tuple[str, ...] = FILES) -> list:  # type: ignore[type-arg]
    return [event for error in errors for event in attempt({}, story=story, fingerprint=error, files=files)]


def seen(*states: State, whole: bool = True) -> PlanSeen:
    return PlanSeen(whole=whole, stories=tuple(SeenStory(f"S{n}", "", state) for n, state in enumerate(states)))


def open_plan(count: int) -> tuple[PlanSeen, Plan]:
    return seen(*[State.TODO] * count), plan(*[State.TODO] * count)


def is_set_aside(move: Move) -> bool:
    return isinstance(move, SetAside)


def test_failures_of_different_kinds_do_not_trip() -> None:
    run = told().say(seen(*[State.TODO] * 3), *failing("a", "b", "c", "a"))
    assert run.decide() == Work("S0", Mode.IMPLEMENT)


def test_the_same_failure_trips() -> None:
    run = told().say(seen(*[State.TODO] * 3), *failing("x", "a", "a"))
    assert run.decide() == Work("S0", Mode.IMPLEMENT)
    assert is_set_aside(run.say(*failing("a")).decide())


def test_no_activity_trips_whatever_is_said_about_it() -> None:
    run = told().say(seen(*[State.TODO] * 3), *failing("a", "b", files=()))
    assert run.decide() == Work("S0", Mode.IMPLEMENT)
    assert is_set_aside(run.say(*failing("c", files=())).decide())


def test_a_review_changes_no_file_and_is_not_idle_for_that() -> None:
    run = told().say(seen(*[State.TODO] * 3))
    for error in "abc":
        run.say(ended(Kind.REJECTED, mode=Mode.REVIEW, fingerprint=error))
    assert isinstance(run.decide(), Work)


def test_where_the_run_stops_it_is_for_the_same_failure_only() -> None:
    limits = msgspec.structs.replace(LUCK, on_stuck=OnStuck.STOP)
    run = told(limits).say(seen(*[State.TODO] * 3), *failing("a", "b", "c", "d"))
    assert isinstance(run.decide(), Work)
    stop = run.say(*failing("d", "d")).decide()
    assert isinstance(stop, Stop)
    assert stop.reason is Reason.NO_PROGRESS


@pytest.mark.parametrize("kind", [Kind.TRANSPORT, Kind.LIMIT])
def test_empty_answers_and_limits_feed_no_breaker_and_no_cap(kind: Kind) -> None:
    run = told().say(seen(*[State.TODO] * 3), *[ended(kind)] * 9)
    assert (run.history.iterations, run.history.stories) == (0, {})


def test_weakened_tests_that_pass_are_no_progress() -> None:
    run = told().say(seen(*[State.TODO] * 3), *failing("a"))
    before = run.history.stories["S0"].no_progress
    judged = checked({"unit": True})
    doubt = Suspicion("assertions", "tests/test_a.py", "3 fewer")
    evidence = msgspec.structs.replace(judged.evidence, suspicions=(doubt,))
    begun = attempt({})[0]
    run.say(begun, msgspec.structs.replace(judged, evidence=evidence))
    run.say(ended(Kind.REJECTED, fingerprint="a", files=FILES))
    assert run.history.stories["S0"].no_progress == before + 1


def test_three_stories_given_up_for_different_reasons_do_not_stop_the_run() -> None:
    run = told().say(seen(*[State.TODO] * 5))
    for number, error in enumerate("abc"):
        run.say(*failing(*error * 3, story=f"S{number}"), StorySetAside(f"S{number}", "", "stuck"))
    assert run.decide(plan(*[State.FAILED] * 3, State.TODO, State.TODO)) == Work("S3", Mode.IMPLEMENT)


def test_what_was_given_up_comes_back_when_nothing_else_is_left() -> None:
    run = told().say(seen(*[State.TODO] * 2), *failing("a", "a", "a"), StorySetAside("S0", "", "stuck"))
    assert run.decide(plan(State.FAILED, State.TODO)) == Work("S1", Mode.IMPLEMENT), "the others come first"
    run.say(ended(Kind.ACCEPTED, "S1"))
    assert run.decide(plan(State.FAILED, State.DONE)) == Retry(("S0",))
    run.say(StoriesRetried(("S0",)))
    assert run.decide(plan(State.TODO, State.DONE)) == Work("S0", Mode.IMPLEMENT)


def test_back_again_the_same_failure_is_enough_and_another_one_is_not() -> None:
    run = told().say(seen(*[State.TODO] * 9), *failing("a", "a", "a"), StorySetAside("S0", "", "stuck"))
    run.say(StoriesRetried(("S0",)))
    again = plan(State.TODO, *[State.DONE] * 8)
    assert run.decide(again) == Work("S0", Mode.IMPLEMENT)
    assert is_set_aside(told_on(run, "a").decide(again))
    assert told_on(run, "b", "c").decide(again) == Work("S0", Mode.IMPLEMENT)


def told_on(run: Told, *errors: str) -> Told:
    other = told()
    other.history = run.history
    return other.say(*failing(*errors))


def test_a_story_that_used_its_attempts_comes_back_too_but_not_for_ever() -> None:
    run = told().say(seen(*[State.TODO] * 9))
    for _ in range(LUCK.retry_rounds):
        run.say(*failing("a", "b", "c", "d"), ended(Kind.REJECTED, fingerprint="e", story_state=State.FAILED))
        assert run.decide(plan(State.FAILED, *[State.DONE] * 8)) == Retry(("S0",))
        run.say(StoriesRetried(("S0",)))
    run.say(ended(Kind.REJECTED, fingerprint="e", files=FILES, story_state=State.FAILED))
    stop = run.decide(plan(State.FAILED, *[State.DONE] * 8))
    assert isinstance(stop, Stop)
    assert stop.reason is Reason.FAILED_STORIES


def test_what_an_earlier_run_gave_up_stays_failed() -> None:
    stop = told().say(seen(State.FAILED, State.DONE)).decide(plan(State.FAILED, State.DONE))
    assert isinstance(stop, Stop)
    assert stop.reason is Reason.FAILED_STORIES


def test_nothing_comes_back_without_iterations_left() -> None:
    run = told().say(seen(State.TODO), *failing("a", "b", "c", "d"))
    run.say(ended(Kind.REJECTED, fingerprint="e", story_state=State.FAILED))
    stop = run.decide(plan(State.FAILED))
    assert isinstance(stop, Stop)
    assert stop.reason is Reason.FAILED_STORIES, "not the cap: nothing was left to do"


def test_a_story_that_came_back_is_failed_again_when_the_iterations_run_out() -> None:
    run = told().say(seen(State.TODO), *failing("a", "a", "a"), StorySetAside("S0", "", "stuck"))
    run.say(StoriesRetried(("S0",)), *failing("b", "c"))
    move = run.decide(plan(State.TODO))
    assert is_set_aside(move)
    run.say(StorySetAside("S0", "", "no iterations left"))
    stop = run.decide(plan(State.FAILED))
    assert isinstance(stop, Stop)
    assert stop.reason is Reason.FAILED_STORIES


# The cap that follows from the plan


def test_the_cap_follows_from_the_plan() -> None:
    run = told(msgspec.structs.replace(LUCK, per_story=1)).say(seen(State.TODO, State.DONE))
    assert run.decide(plan(State.TODO, State.DONE)) == Work("S0", Mode.IMPLEMENT)
    stop = run.say(*failing("a")).decide(plan(State.TODO, State.DONE))
    assert stop == Stop(Reason.ITERATION_CAP, "1 iteration; the cap is 1 (attempts and reviews of the stories)")


def test_stories_that_are_added_raise_it() -> None:
    run = told(msgspec.structs.replace(LUCK, per_story=1)).say(seen(State.TODO), ended(Kind.ACCEPTED))
    added = PlanSeen(whole=False, stories=(SeenStory("S1", "", State.TODO),))
    assert run.say(added).decide(plan(State.DONE, State.TODO)) == Work("S1", Mode.IMPLEMENT)


def test_what_a_user_allows_at_most_holds_for_it_too() -> None:
    limits = msgspec.structs.replace(LUCK, max_allowed=2)
    run = told(limits).say(seen(*[State.TODO] * 9), *failing("a", "b"))
    stop = run.decide()
    assert stop == Stop(Reason.ITERATION_CAP, "2 iterations; the cap is 2 (max_allowed_iterations)")
    stop = told(limits).say(seen(*[State.TODO] * 9), ended(Kind.LIMIT), *failing("a", "b")).decide()
    assert isinstance(stop, Stop)
    assert stop.detail.endswith(
        "(max_allowed_iterations); 1 more ended by a usage limit or a lost connection, not counted"
    )


@pytest.mark.parametrize("limits", [msgspec.structs.replace(LUCK, max_iterations=2), Limits(max_iterations=2)])
def test_the_stop_says_which_iterations_were_not_counted(limits: Limits) -> None:
    run = told(limits).say(seen(*[State.TODO] * 9), *failing("a"), ended(Kind.LIMIT), *failing("b"))
    detail = "2 iterations; the cap is 2; 1 more ended by a usage limit or a lost connection, not counted"
    assert run.decide() == Stop(Reason.ITERATION_CAP, detail)


def test_without_a_bound_on_attempts_there_is_no_cap() -> None:
    run = told(msgspec.structs.replace(LUCK, per_story=0)).say(seen(*[State.TODO] * 3))
    for error in range(300):
        run.say(*failing(str(error)))
    assert isinstance(run.decide(), Work)


# Only the stories that were named


def named(*stories: str) -> Limits:
    return msgspec.structs.replace(LUCK, stories=stories)


def test_only_the_named_stories_are_taken_in_the_order_of_the_plan() -> None:
    run = told(named("S2", "S1")).say(seen(*[State.TODO] * 3))
    assert run.decide() == Work("S1", Mode.IMPLEMENT)


def test_it_ends_when_they_are_done_and_is_not_complete() -> None:
    run, now = told(named("S1")).say(seen(*[State.TODO] * 3)), plan(State.TODO, State.DONE, State.TODO)
    assert run.decide(now) == Prove(), "the last act is one full pass of the checks"
    failed = run.say(Proved(tree="t", passed=False)).decide(now)
    assert isinstance(failed, Stop)
    assert failed.reason is Reason.FINAL_CHECKS
    stop = run.say(Proved(tree="t", passed=True)).decide(now)
    assert stop == Stop(Reason.NAMED_STORIES, "the stories you named are done")
    assert stop.reason.exit_code == 0


def test_of_the_others_nothing_is_said() -> None:
    stop = told(named("S1")).say(seen(*[State.TODO] * 3)).decide(plan(State.BLOCKED, State.FAILED, State.TODO))
    assert stop == Stop(Reason.FAILED_STORIES, "S1 failed")
