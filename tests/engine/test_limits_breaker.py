"""Progress is what is proven; a story has a breaker of its own; the run's trips when it is not one story's trouble."""

from __future__ import annotations

from ralph.core.events import PlanSeen, Recovered, SeenStory, StorySetAside
from ralph.core.moves import Reason, SetAside, Stop, Work
from ralph.core.plan import Mode, State
from ralph.core.rules import Limits, OnStuck
from ralph.core.verdict import Kind
from support.decisions import Told, attempt, baseline, checked, ended, plan

NEXT = Limits(on_stuck=OnStuck.NEXT)


def rejected(results: dict[str, bool], story: str = "S0", error: str = "") -> list:  # type: ignore[type-arg]
    return attempt(results, story=story, fingerprint=error)


def test_one_more_check_than_any_attempt_before_is_progress() -> None:
    run = Told().say(*rejected({"unit": False, "lint": False}), *rejected({"unit": False, "lint": False}))
    assert run.history.stories["S0"].no_progress == 2
    run.say(*rejected({"unit": False, "lint": True}))
    assert run.history.stories["S0"].no_progress == run.history.streak.no_progress == 0


def test_the_same_check_again_or_another_one_instead_is_no_progress() -> None:
    run = Told().say(*rejected({"unit": False, "lint": True}))
    run.say(*rejected({"unit": False, "lint": True}), *rejected({"unit": True, "lint": False}))
    assert run.history.stories["S0"].no_progress == 2


def test_what_passes_without_the_story_proves_nothing_about_it() -> None:
    run = Told().say(baseline({"unit": False, "lint": True}), *rejected({"unit": False, "lint": True}))
    assert run.history.stories["S0"].no_progress == 1
    run.say(*rejected({"unit": True, "lint": False}))
    assert run.history.stories["S0"].no_progress == 0


def test_what_a_kept_attempt_has_proven_is_not_proven_again_by_the_next_story() -> None:
    run = Told().say(baseline({"unit": False}), *attempt({"unit": True}, Kind.ACCEPTED))
    assert run.say(*rejected({"unit": True, "own": False}, "S1")).history.stories["S1"].no_progress == 1


def test_sound_work_without_a_claim_is_progress_once() -> None:
    run = Told().say(baseline({"unit": False}), *attempt({"unit": True}, Kind.PARTIAL))
    assert run.history.streak.no_progress == 0
    assert run.say(*attempt({"unit": True}, Kind.PARTIAL)).history.streak.no_progress == 1


def test_text_that_was_written_is_no_progress() -> None:
    run = Told()
    for _ in range(3):
        run.say(*attempt({}, Kind.PARTIAL))
    assert isinstance(run.decide(), Stop)


def test_checks_of_a_tree_that_nothing_was_changed_in_prove_nothing() -> None:
    run = Told().say(checked({"unit": True}, changed=False), ended(Kind.REJECTED))
    assert run.history.stories["S0"].no_progress == 1


def test_an_iteration_that_was_never_judged_does_not_inherit_the_proof_of_the_one_before() -> None:
    run = Told().say(*rejected({"unit": True}), Recovered("r", 1, "undone"))
    begun = attempt({"unit": True})
    run.say(begun[0], ended(Kind.CRASHED))
    assert run.history.stories["S0"].no_progress == 1


def test_a_story_set_aside_is_not_taken_again_whatever_the_plan_says() -> None:
    run = Told(NEXT).say(StorySetAside("S0", "", "stuck"))
    assert run.decide() == Work("S1", Mode.IMPLEMENT)


def test_the_attempts_at_one_story_do_not_count_for_another() -> None:
    run = Told(NEXT)
    for number in range(3):
        run.say(*rejected({"unit": False}, "S0", str(number)))
    assert isinstance(run.decide(), SetAside)
    run.say(StorySetAside("S0", "", "stuck"), *rejected({"unit": False}, "S1", "x"))
    assert run.decide() == Work("S1", Mode.IMPLEMENT)


def test_three_stories_set_aside_in_a_row_stop_the_run() -> None:
    run = Told(NEXT).say(*[StorySetAside(f"S{n}", "", "stuck") for n in range(2)])
    assert isinstance(run.decide(plan(*[State.TODO] * 9)), Work)
    stop = run.say(StorySetAside("S2", "", "stuck")).decide(plan(*[State.TODO] * 9))
    assert stop == Stop(Reason.NO_PROGRESS, "3 stories in a row were set aside")


def test_progress_between_them_lets_it_go_on() -> None:
    run = Told(NEXT).say(StorySetAside("S0", "", "stuck"), StorySetAside("S1", "", "stuck"))
    run.say(*attempt({"unit": True}, Kind.ACCEPTED, "S2"), StorySetAside("S3", "", "stuck"))
    assert isinstance(run.decide(plan(*[State.TODO] * 9)), Work)


def test_the_same_error_in_several_stories_is_the_runs_trouble() -> None:
    run = Told(NEXT)
    for _ in range(3):
        run.say(*rejected({"unit": False}, "S0", "e"))
    run.say(StorySetAside("S0", "", "stuck"), *rejected({"unit": False}, "S1", "e"))
    assert isinstance(run.decide(), Work)
    stop = run.say(*rejected({"unit": False}, "S1", "e")).decide()
    assert isinstance(stop, Stop)
    assert stop.reason is Reason.SAME_ERROR


def test_the_same_error_in_one_story_is_that_storys_trouble() -> None:
    run = Told(Limits(on_stuck=OnStuck.NEXT, no_progress=0))
    for _ in range(5):
        run.say(*rejected({"unit": False}, "S0", "e"))
    move = run.decide()
    assert isinstance(move, SetAside)
    assert move.why.startswith("the same error 5 times in a row")


def test_an_error_without_a_name_is_not_the_same_twice() -> None:
    run = Told(Limits(on_stuck=OnStuck.STOP, no_progress=0)).say(*[ended(Kind.REJECTED)] * 9)
    assert isinstance(run.decide(), Work)


def test_setting_up_cannot_be_set_aside() -> None:
    run = Told(Limits(on_stuck=OnStuck.NEXT, max_attempts=0))
    run.say(*[ended(Kind.REJECTED, "", mode=Mode.SETUP)] * 3)
    stop = run.decide(needs_setup=True)
    assert isinstance(stop, Stop)
    assert stop.reason is Reason.NO_PROGRESS


def test_thresholds_of_zero_never_trip() -> None:
    limits = Limits(no_progress=0, same_error=0, max_iterations=10**6)
    assert isinstance(Told(limits).say(*[ended(Kind.REJECTED, fingerprint="e")] * 50).decide(), Work)


def seen(story: str, state: State, attempts: int = 0) -> PlanSeen:
    return PlanSeen(whole=False, stories=(SeenStory(story, "", state, attempts=attempts),))


def test_a_story_that_is_failed_by_its_last_attempt_counts_as_given_up() -> None:
    run = Told(Limits(on_stuck=OnStuck.NEXT, same_error=0))
    for story in ("S0", "S1", "S2"):
        run.say(*attempt({}, story=story), *attempt({}, story=story, story_state=State.FAILED))
    stop = run.decide(plan(*[State.FAILED] * 3, State.TODO))
    assert stop == Stop(Reason.NO_PROGRESS, "3 stories in a row were set aside")


def test_a_story_that_somebody_opens_again_gets_its_chance() -> None:
    run = Told(NEXT).say(*[ended(Kind.REJECTED)] * 3, StorySetAside("S0", "", "stuck"), seen("S0", State.FAILED))
    assert run.decide() == Work("S1", Mode.IMPLEMENT)
    assert run.say(seen("S0", State.TODO)).decide() == Work("S0", Mode.IMPLEMENT)


def test_a_story_that_was_answered_gets_its_chance() -> None:
    run = Told(NEXT).say(ended(Kind.BLOCKED, question="Which?"), seen("S0", State.BLOCKED))
    assert run.decide() == Work("S1", Mode.IMPLEMENT)
    assert run.say(seen("S0", State.TODO)).decide() == Work("S0", Mode.IMPLEMENT)


def test_an_attempt_that_is_counted_in_the_plan_is_nobody_opening_it() -> None:
    run = Told(NEXT)
    for number in range(1, 4):
        run.say(*rejected({}, error=str(number)), seen("S0", State.IN_PROGRESS, attempts=number))
    assert isinstance(run.decide(), SetAside)
