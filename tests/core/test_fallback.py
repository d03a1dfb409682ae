"""Who steps in, and who has to rest: no choice is lost, and nobody rests for ever."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralph.core.agent import Limit, Outcome, Trouble
from ralph.core.complexity import Level, complexity
from ralph.core.events import AgentSaid, AnyEvent, IterationEnded, IterationStarted, Judged, RunStarted
from ralph.core.evidence import Ended, Evidence, How
from ralph.core.fallback import (
    Bench,
    choose,
    explain,
    first_choice,
    is_anybody_left,
    note,
    parts,
    paused_until,
    rests_until,
    reviewer_parts,
)
from ralph.core.history import History, fold
from ralph.core.moves import Stop, Wait
from ralph.core.plan import Mode, Plan, Story
from ralph.core.review import Ledger, Review, ReviewStatus
from ralph.core.rules import Limits
from ralph.core.verdict import Kind, Verdict
from ralph.engine.decide import decide
from ralph.engine.limits import transport
from ralph.engine.usage_limit import still_to_wait_for, usage

LIMITS = Limits(fallback=("sonnet", "other"), fallback_after=2, fallback_cooldown=600)


def iteration(kind: Kind, choice: str = "", story: str = "A", resets_at: float | None = None) -> list[AnyEvent]:
    return [
        IterationStarted(iteration=1, story=story, title="t", mode=Mode.IMPLEMENT, attempt=1, choice=choice),
        IterationEnded(iteration=1, story=story, mode=Mode.IMPLEMENT, kind=kind, resets_at=resets_at),
    ]


def after(*events: AnyEvent, at: float = 1000.0) -> Bench:
    bench = Bench()
    for event in events:
        bench = note(bench, event, at)
    return bench


def test_the_first_choice_works_until_something_is_in_its_way() -> None:
    assert choose(Bench(), LIMITS, "A", 0) == ""


def test_at_a_limit_the_next_one_works_until_it_resets() -> None:
    bench = after(*iteration(Kind.LIMIT, resets_at=5000))
    assert [choose(bench, LIMITS, "A", now) for now in (1000, 4999, 5001)] == ["sonnet", "sonnet", ""]
    bench = after(*iteration(Kind.LIMIT, resets_at=5000), *iteration(Kind.LIMIT, "sonnet"))
    assert [choose(bench, LIMITS, "A", now) for now in (1000, 1599, 1601)] == ["other", "other", "sonnet"]


def test_when_everybody_is_at_a_limit_the_run_waits() -> None:
    history = History()
    for choice in ("", "sonnet", "other"):
        for event in iteration(Kind.LIMIT, choice, resets_at=5000):
            history = fold(history, event, 1000)
            limited = history.bench
        if choice != "other":
            assert usage(history, LIMITS, 1000) is None
    assert not is_anybody_left(limited, LIMITS, 1000)
    assert isinstance(usage(history, LIMITS, 1000), Wait)


def test_when_everybody_is_at_a_limit_the_first_who_may_work_again_is_waited_for() -> None:
    history = History()
    for choice, reset in (("", 9000), ("sonnet", 3000), ("other", 5000)):
        said = AgentSaid(1, Limit(True, reset, "five_hour"))
        begun, ended = iteration(Kind.LIMIT, choice, resets_at=reset)
        for event in (begun, said, ended):
            history = fold(history, event, 1000)
    move = usage(history, LIMITS, 1000)
    assert isinstance(move, Wait)
    assert move.until == 3000
    assert usage(history, LIMITS, 3001) is None
    assert choose(history.bench, LIMITS, "A", 3001) == "sonnet"


def test_a_limit_that_an_earlier_run_has_met_lets_the_fallback_work() -> None:
    begun = RunStarted(run="r", workspace="w", layout="l", plan="p", pid=1, heard=(Limit(True, 5000, "five_hour"),))
    history = fold(History(), begun, 1000)
    assert isinstance(usage(history, Limits(), 1000), Wait)
    assert usage(history, LIMITS, 1000) is None
    assert [choose(history.bench, LIMITS, "A", now) for now in (1000, 5001)] == ["sonnet", ""]


def test_at_a_share_of_the_limit_the_fallback_works_until_it_says_the_same() -> None:
    limits = msgspec.structs.replace(LIMITS, limit_share=0.8, fallback=("sonnet",))
    history = History()
    for choice, used in (("", 0.85), ("sonnet", 0.5)):
        begun, ended = iteration(Kind.ACCEPTED, choice)
        for event in (begun, AgentSaid(1, Limit(False, 5000, f"{choice}_hour", used)), ended):
            history = fold(history, event, 1000)
    assert usage(history, limits, 1000) is None
    assert choose(history.bench, limits, "A", 1000) == "sonnet"
    assert dict(explain(history.bench, limits, "A", 1000))[""] == "80% of a usage limit is used"
    assert choose(history.bench, LIMITS, "A", 1000) == "", "without such a share it may use all of it"
    history = fold(history, AgentSaid(1, Limit(False, 5000, "sonnet_hour", 0.9)), 1000)
    move = usage(history, limits, 1000)
    assert isinstance(move, Wait)
    assert move.until == 5000


def test_without_a_fallback_a_limit_is_waited_for() -> None:
    history = History()
    for event in iteration(Kind.LIMIT, resets_at=5000):
        history = fold(history, event, 1000)
    assert isinstance(usage(history, Limits(), 1000), Wait)


def test_repeated_failure_at_one_story_lets_somebody_else_try_it() -> None:
    bench = after(*iteration(Kind.REJECTED), *iteration(Kind.TIMED_OUT))
    assert (choose(bench, LIMITS, "A", 1000), choose(bench, LIMITS, "B", 1000)) == ("sonnet", "")
    assert choose(bench, LIMITS, "A", 1700) == "", "after a while it may try again"
    bench = after(*iteration(Kind.REJECTED), *iteration(Kind.REJECTED), *iteration(Kind.ACCEPTED, "sonnet"))
    assert choose(bench, LIMITS, "A", 1000) == ""


def test_where_everybody_fails_all_are_tried_in_turn() -> None:
    bench = Bench()
    tried = []
    for _ in range(9):
        tried.append(choose(bench, LIMITS, "A", 1000))
        for event in iteration(Kind.REJECTED, tried[-1]):
            bench = note(bench, event, 1000)
    assert tried == ["", "", "sonnet", "sonnet", "other", "other", "", "sonnet", "other"]


def test_a_spent_budget_lets_somebody_cheaper_go_on() -> None:
    evidence = Evidence(
        mode=Mode.IMPLEMENT, story=None, ended=Ended(How.EXITED, code=1), outcome=Outcome(trouble=Trouble.BUDGET)
    )
    started = iteration(Kind.CRASHED)[0]
    bench = after(started, Judged(1, evidence, Verdict(Kind.CRASHED)))
    assert choose(bench, LIMITS, "A", 1000) == "sonnet"


def test_a_clock_that_is_set_back_makes_nobody_rest_longer() -> None:
    history = History()
    for event in iteration(Kind.LIMIT):
        history = fold(history, event, 100_000)
    history = fold(history, iteration(Kind.ACCEPTED, "sonnet")[0], 1000)
    assert 0 < rests_until(history.bench, LIMITS, "", 1000) <= 1600


@pytest.mark.parametrize(
    ("choice", "expected"),
    [("sonnet", ("", "sonnet")), ("claude", ("claude", "")), ("claude/opus", ("claude", "opus")), ("a/b", ("", "a/b"))],
)
def test_a_choice_is_an_agent_a_model_or_both(choice: str, expected: tuple[str, str]) -> None:
    assert parts(choice, ["claude", "command"]) == expected


@given(
    st.lists(
        st.tuples(
            st.sampled_from(sorted(Kind)),
            st.sampled_from(["", "sonnet", "other"]),
            st.sampled_from(["A", "B"]),
            st.none() | st.floats(0, 5000),
        ),
        max_size=12,
    ),
    st.floats(0, 10_000),
)
def test_somebody_is_always_chosen_and_nobody_rests_for_ever(
    told: list[tuple[Kind, str, str, float | None]], now: float
) -> None:
    bench = Bench()
    for kind, choice, story, resets_at in told:
        for event in iteration(kind, choice, story, resets_at):
            bench = note(bench, event, 1000)
    assert choose(bench, LIMITS, "A", now) in ("", "sonnet", "other")
    assert all(not rests_until(bench, LIMITS, choice, 5001) for choice in ("", "sonnet", "other"))


# How hard a story looks.

SMALL = Story(id="A", title="Fix a typo in the readme")
LARGE = Story(
    id="B",
    title="Migrate sessions to encrypted storage",
    criteria=("a", "b", "c", "d"),
    description="It has to be backwards compatible, and concurrent requests must not race.",
)


def test_words_criteria_and_failures_make_a_story_complex() -> None:
    assert complexity(SMALL).level is Level.SIMPLE
    assert complexity(LARGE).level is Level.COMPLEX
    medium = Story(id="C", title="Add a list of orders", criteria=("a", "b", "c", "d", "e", "f"))
    assert complexity(medium).level is Level.MEDIUM
    again = msgspec.structs.replace(medium, attempts=2, review=Review(ReviewStatus.NEEDS_REVIEW, 1))
    assert complexity(again).level is Level.COMPLEX


@given(st.text(max_size=300), st.lists(st.text(max_size=40), max_size=20), st.integers(0, 50))
def test_every_story_has_a_level_and_failures_never_lower_it(title: str, criteria: list[str], attempts: int) -> None:
    story = Story(id="A", title=title, criteria=tuple(criteria))
    harder = msgspec.structs.replace(story, attempts=attempts)
    assert complexity(harder).points >= complexity(story).points


OWN = Limits(fallback=("sonnet",), reviewer="review", worker="claude/opus")


def begun(limits: Limits) -> RunStarted:
    return RunStarted(run="r", workspace="/w", layout="feature", plan="p", pid=1, limits=limits)


def reviewed(kind: Kind, choice: str = "", resets_at: float | None = None) -> list[AnyEvent]:
    return [
        IterationStarted(iteration=1, story="A", title="t", mode=Mode.REVIEW, attempt=1, choice=choice),
        IterationEnded(iteration=1, story="A", mode=Mode.REVIEW, kind=kind, resets_at=resets_at),
    ]


def test_a_fallback_replaces_only_the_agent_that_met_the_limit() -> None:
    limited = after(begun(OWN), *iteration(Kind.LIMIT, resets_at=5000))
    assert choose(limited, OWN, "A", 1000) == "sonnet"
    assert choose(limited, OWN, "A", 1000, Mode.REVIEW) == "", "the reviewer met no limit and still reviews"
    other = after(begun(OWN), *reviewed(Kind.LIMIT, resets_at=5000))
    assert choose(other, OWN, "A", 1000) == "", "the one that works met no limit"
    assert choose(other, OWN, "A", 1000, Mode.REVIEW) == "sonnet"


def test_a_reviewer_stays_somebody_else_than_the_author() -> None:
    by_fallback = after(begun(OWN), *iteration(Kind.ACCEPTED, "sonnet"), *reviewed(Kind.LIMIT, resets_at=5000))
    assert choose(by_fallback, OWN, "A", 1000, Mode.REVIEW) == "claude/opus", "sonnet wrote it"
    alone = Limits(reviewer="review", worker="claude")
    limited = after(begun(alone), *iteration(Kind.ACCEPTED), *reviewed(Kind.LIMIT, resets_at=5000))
    assert paused_until(limited, alone, "A", Mode.REVIEW, 1000) == 5000, "the author does not review its own work"
    assert paused_until(limited, alone, "A", Mode.IMPLEMENT, 1000) == 0
    same = Limits(fallback=("codex",), reviewer="codex", worker="claude")
    bench = after(begun(same), *iteration(Kind.LIMIT, resets_at=5000), *iteration(Kind.ACCEPTED, "codex"))
    assert paused_until(bench, same, "A", Mode.REVIEW, 1000) == 5000, "codex is the reviewer, but wrote this one"
    assert choose(bench, same, "A", 6000, Mode.REVIEW) == "claude"


# Several vendors.

VENDORS = Limits(fallback=("bob",), fallback_after=2, fallback_cooldown=600, agents={"": "ada", "bob": "bob"})


def test_a_service_that_cannot_be_reached_is_left_alone_for_a_while() -> None:
    once = after(*iteration(Kind.TRANSPORT))
    assert choose(once, VENDORS, "A", 1000) == "", "one failure is bad luck"
    twice = after(*iteration(Kind.TRANSPORT), *iteration(Kind.TRANSPORT))
    assert [choose(twice, VENDORS, "A", now) for now in (1000, 1599, 1601)] == ["bob", "bob", ""]
    assert dict(explain(twice, VENDORS, "A", 1000))[""] == "its service cannot be reached"
    answered = after(*iteration(Kind.TRANSPORT), *iteration(Kind.ACCEPTED), *iteration(Kind.TRANSPORT))
    assert choose(answered, VENDORS, "A", 1000) == "", "it answered in between"


def test_two_workers_that_lose_one_connection_are_one_failure() -> None:
    bench = Bench()
    for number in (1, 2):
        bench = note(bench, msgspec.structs.replace(iteration(Kind.TRANSPORT)[0], iteration=number), 900)
    for number in (1, 2):
        bench = note(bench, msgspec.structs.replace(iteration(Kind.TRANSPORT)[1], iteration=number), 1000 + number)
    assert choose(bench, VENDORS, "A", 1002) == ""


def test_no_pause_before_another_service_and_the_usual_ones_if_all_fail() -> None:
    history, moves = History(), []
    for choice in ("", "", "bob", "bob"):
        for event in iteration(Kind.TRANSPORT, choice):
            history = fold(history, event, 1000)
        moves.append(transport(history, VENDORS, 1000))
    assert [isinstance(move, Wait) for move in moves] == [True, False, True, True]
    assert choose(history.bench, VENDORS, "A", 1000) == "", "all of them fail: the first is tried again"


def test_work_that_nobody_else_may_do_waits_for_its_service() -> None:
    """The reviewer can be reached, but it does not implement."""
    limits = Limits(reviewer="review", worker="ada", fallback_after=2, agents={"": "ada", "review": "bob"})
    history, plan = History(), Plan(name="p", stories=(SMALL,))
    moves = []
    for _ in range(7):
        for event in iteration(Kind.TRANSPORT):
            history = fold(history, event, 1000)
        moves.append(decide(plan, history, limits, 1000, review=True))
    assert [type(move) for move in moves] == [Wait] * 5 + [Stop] * 2


def test_a_limit_told_by_one_agent_is_no_limit_of_the_next_run_of_another() -> None:
    history = fold(History(), begun(VENDORS), 900)
    for event in (iteration(Kind.LIMIT, "bob", resets_at=5000)[0], AgentSaid(1, Limit(True, 5000, "weekly"))):
        history = fold(history, event, 1000)
    history = fold(history, iteration(Kind.LIMIT, "bob", resets_at=5000)[1], 1001)
    assert list(still_to_wait_for(history, VENDORS, 1002)) == []
    assert choose(history.bench, VENDORS, "A", 1002) == ""
    assert rests_until(history.bench, VENDORS, "bob", 1002) == 5000


def test_routing_and_named_reviewers_decide_who_is_first() -> None:
    limits = Limits(
        routes={"complex": "bob"}, reviewers={"quality": "", "tests@bob": "bob"}, agents={"": "ada", "bob": "bob"}
    )
    assert [first_choice(limits, story, Mode.IMPLEMENT) for story in (SMALL, LARGE)] == ["", "bob"]
    waits = msgspec.structs.replace(SMALL, ledger=Ledger(heard=("quality",)))
    assert [first_choice(limits, story, Mode.REVIEW) for story in (SMALL, waits)] == ["", "bob"]
    bench = after(*iteration(Kind.LIMIT, "bob", resets_at=5000))
    assert paused_until(bench, limits, "B", Mode.IMPLEMENT, 1000, "bob") == 5000
    assert paused_until(bench, limits, "A", Mode.IMPLEMENT, 1000) == 0


def test_another_vendor_reviews_whoever_did_the_work() -> None:
    agents = {"": "ada", "small": "ada", "bob": "bob"}
    limits = Limits(fallback=("small", "bob"), reviewed_by_other=True, worker="ada", agents=agents)
    start = begun(limits)
    for author, reviewer in (("", "bob"), ("small", "bob"), ("bob", "ada")):
        assert choose(after(start, *iteration(Kind.ACCEPTED, author)), limits, "A", 1000, Mode.REVIEW) == reviewer
    earlier = after(msgspec.structs.replace(start, authors={"A": "bob"}))
    assert choose(earlier, limits, "A", 1000, Mode.REVIEW) == "ada", "the work of an earlier run"


@pytest.mark.parametrize(
    ("reviewer", "expected"),
    [
        ("security@ada", ("security", "ada")),
        ("a@b.md@ada/large", ("a@b.md", "ada/large")),
        ("a@b.md", ("a@b.md", "")),
        ("quality", ("quality", "")),
    ],
)
def test_a_reviewer_may_end_with_an_agent(reviewer: str, expected: tuple[str, str]) -> None:
    assert reviewer_parts(reviewer, ["ada", "bob"]) == expected
