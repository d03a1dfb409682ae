"""Usage limits: what was heard, how long it is believed, and whoever can be asked."""

from __future__ import annotations

from ralph.core.agent import Limit
from ralph.core.events import LimitAnswered
from ralph.core.history import History
from ralph.core.moves import Reason, Stop, Wait, Work
from ralph.core.rules import Limits, OnLimit
from ralph.core.verdict import Kind
from ralph.engine.usage_limit import still_to_wait_for
from support.decisions import HOUR, NOW, Told, agent_start, ended, heard

DAY = 24 * HOUR
JITTER = Limits(jitter=30)


def wait_of(run: Told) -> Wait:
    move = run.decide()
    assert isinstance(move, Wait), move
    return move


def test_the_wait_is_a_little_longer_than_the_limit_and_the_same_each_time() -> None:
    run = Told(JITTER, run="one").say(ended(Kind.LIMIT, resets_at=NOW + HOUR))
    first = wait_of(run)
    assert NOW + HOUR <= first.until <= NOW + HOUR + 30
    assert wait_of(run.wait(600)) == first
    others = {wait_of(Told(JITTER, run=f"{n}").say(ended(Kind.LIMIT, resets_at=NOW + HOUR))).until for n in range(20)}
    assert len(others) > 10, "not everybody comes back in the same second"


def test_a_short_wait_is_not_made_much_longer() -> None:
    assert wait_of(Told(JITTER).say(ended(Kind.LIMIT, resets_at=NOW + 10))).until <= NOW + 10.5


def test_a_reset_that_is_absurdly_far_away_is_not_believed() -> None:
    limits = Limits(longest_wait=DAY)
    assert wait_of(Told(limits).say(ended(Kind.LIMIT, resets_at=NOW + 1e9))).until == NOW + DAY
    run = Told(limits).say(heard(rejected=True, resets_at=NOW + 1e9), ended(Kind.LIMIT, resets_at=NOW + 1e9))
    assert wait_of(run).until == NOW + DAY


def test_a_limit_that_says_it_has_been_reset_already_does_not_make_a_loop() -> None:
    run = Told()
    waits = []
    for _ in range(9):
        run.say(ended(Kind.LIMIT, resets_at=NOW - 60))
        move = run.decide()
        waits.append(move.until - run.now if isinstance(move, Wait) else 0)
        run.wait(waits[-1])
        assert isinstance(run.decide(), Work)
    assert waits == [0, 5, 15, 45, 135, 405, 900, 900, 900]


def test_a_broken_connection_in_between_does_not_start_it_anew() -> None:
    run = Told()
    for _ in range(3):
        run.say(ended(Kind.LIMIT, resets_at=NOW - 60)).wait(HOUR).say(ended(Kind.TRANSPORT)).wait(HOUR)
    assert run.history.limits_in_a_row == 3
    assert run.history.transport == 3
    assert run.say(ended(Kind.REJECTED)).history.limits_in_a_row == run.history.transport == 0


def test_an_agent_that_says_nothing_of_a_reset_is_waited_for_a_while() -> None:
    assert wait_of(Told().say(ended(Kind.LIMIT))).until == NOW + Limits().unknown_reset_wait


def test_a_limit_that_is_heard_of_after_finished_work_is_waited_for_too() -> None:
    run = Told().say(agent_start()).wait(30).say(heard(rejected=True, resets_at=NOW + 100)).wait(5)
    assert wait_of(run.say(ended(Kind.ACCEPTED))).until == NOW + 100


def test_an_agent_that_has_worked_since_shows_that_the_limit_has_gone() -> None:
    run = Told().say(heard(rejected=True, resets_at=NOW + HOUR)).wait(60).say(agent_start()).wait(60)
    assert isinstance(wait_of(run.say(ended(Kind.TRANSPORT))), Wait), "it came to nothing, which shows nothing"
    assert isinstance(run.say(ended(Kind.ACCEPTED)).decide(), Work)


def test_news_that_it_is_allowed_again_is_believed() -> None:
    run = Told().say(heard(rejected=True, resets_at=NOW + HOUR), heard(resets_at=NOW + HOUR, used=0.2))
    assert isinstance(run.decide(), Work)


def test_at_a_share_of_the_window_no_new_work_starts() -> None:
    used = [heard(resets_at=NOW + HOUR, used=0.85)]
    assert isinstance(Told(Limits(limit_share=1)).say(*used).decide(), Work)
    assert isinstance(Told(Limits(limit_share=0.9)).say(*used).decide(), Work)
    move = wait_of(Told(Limits(limit_share=0.8)).say(*used))
    assert (move.until, move.why) == (NOW + HOUR, "85% of the five-hour limit is used; no new work starts above 80%")
    stop = Told(Limits(limit_share=0.8, on_limit=OnLimit.EXIT)).say(*used).decide()
    assert isinstance(stop, Stop)
    assert stop.reason is Reason.USAGE_LIMIT


def test_each_window_counts_for_itself_and_the_longest_wait_wins() -> None:
    week = heard("seven_day", resets_at=NOW + DAY, used=0.9)
    run = Told(Limits(limit_share=0.8)).say(week, heard(resets_at=NOW + HOUR, used=0.95))
    assert wait_of(run).until == NOW + DAY
    assert "seven-day" in wait_of(run).why


def test_a_window_that_has_been_reset_is_forgotten() -> None:
    run = Told(Limits(limit_share=0.8)).say(heard(resets_at=NOW + HOUR, used=0.95)).wait(HOUR)
    assert isinstance(run.decide(), Work)


def test_whoever_is_asked_is_asked_once() -> None:
    run = Told(Limits(on_limit=OnLimit.ASK)).say(ended(Kind.LIMIT, resets_at=NOW + HOUR))
    assert wait_of(run).ask
    assert not wait_of(run.say(LimitAnswered("wait"))).ask
    assert not wait_of(run.say(LimitAnswered("nobody"))).ask
    stop = run.say(LimitAnswered("exit")).decide()
    assert isinstance(stop, Stop)
    assert stop.reason.exit_code == 2


def test_an_answer_is_about_one_limit_only() -> None:
    run = Told(Limits(on_limit=OnLimit.ASK)).say(ended(Kind.LIMIT, resets_at=NOW + 10), LimitAnswered("wait")).wait(10)
    assert wait_of(run.say(ended(Kind.LIMIT, resets_at=NOW + HOUR))).ask


def test_a_new_run_waits_for_what_the_one_before_has_heard() -> None:
    run = Told(heard=(Limit(True, NOW + HOUR, "five_hour"),))
    assert wait_of(run).until == NOW + HOUR
    assert isinstance(run.wait(HOUR).decide(), Work)


def test_what_is_left_to_wait_for_is_handed_on_until_it_is_over() -> None:
    run = Told().say(heard(rejected=True, resets_at=NOW + HOUR), ended(Kind.LIMIT, resets_at=NOW + HOUR))
    assert {limit.resets_at for limit in still_to_wait_for(run.history, Limits(), NOW + 60)} == {NOW + HOUR}
    assert not list(still_to_wait_for(run.history, Limits(), NOW + HOUR))
    worked = run.wait(HOUR / 2).say(agent_start(), ended(Kind.ACCEPTED)).history
    assert not [limit for limit in still_to_wait_for(worked, Limits(), run.now) if limit.rejected]
    assert not list(still_to_wait_for(History(), Limits(), NOW))


def test_a_run_after_another_does_not_wait_a_little_longer_each_time() -> None:
    limits = Limits(jitter=30.0)
    limit = Told(limits).say(ended(Kind.LIMIT, resets_at=NOW + HOUR))
    assert [one.resets_at for one in still_to_wait_for(limit.history, limits, NOW + 60)] == [NOW + HOUR]
    absurd = Told(limits).say(ended(Kind.LIMIT, resets_at=NOW + 1e9))
    assert [one.resets_at for one in still_to_wait_for(absurd.history, limits, NOW)] == [NOW + limits.longest_wait]


def test_a_wait_that_the_run_would_not_live_to_see_is_not_begun() -> None:
    stop = Told(Limits(max_time=HOUR)).say(ended(Kind.LIMIT, resets_at=NOW + 2 * HOUR)).decide()
    assert isinstance(stop, Stop)
    assert stop.reason is Reason.TIME_CAP


DOUBT = Limits(doubtful_wait=HOUR)


def test_a_reset_many_days_away_is_doubtful_and_tried_earlier() -> None:
    wait = wait_of(Told(DOUBT).say(ended(Kind.LIMIT, resets_at=NOW + 30 * DAY)))
    assert wait.until == NOW + HOUR
    assert wait.why.endswith("a reset 30 days from now is doubtful, so the run tries again after 60 minutes")
    weekly = heard(rejected=True, resets_at=NOW + 6 * DAY, kind="seven_day")
    assert wait_of(Told(DOUBT).say(weekly, ended(Kind.LIMIT, resets_at=NOW + 6 * DAY))).until == NOW + 6 * DAY
    short = heard(rejected=True, resets_at=NOW + 6 * DAY, kind="five_hour")
    assert wait_of(Told(DOUBT).say(short, ended(Kind.LIMIT, resets_at=NOW + 6 * DAY))).until == NOW + HOUR, (
        "a window of five hours does not reset in six days"
    )


def test_a_doubtful_reset_does_not_hold_up_the_next_run() -> None:
    history = Told(DOUBT).say(heard(rejected=True, resets_at=NOW + 30 * DAY)).history
    assert list(still_to_wait_for(history, DOUBT, NOW)) == []


def test_a_reset_in_the_past_is_tried_after_a_short_pause() -> None:
    run = Told(DOUBT)
    waits = []
    for _ in range(4):
        run.say(ended(Kind.LIMIT, resets_at=NOW - 60))
        waits.append(wait_of(run).until - run.now)
        run.wait(waits[-1])
        assert isinstance(run.decide(), Work)
    assert waits == [5, 15, 45, 135]
