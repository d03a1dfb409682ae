"""What the lines of a ledger come to: in whatever order runs wrote them, and whatever was lost."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from ralph.core.money import Amount, Basis
from ralph.journal.ledger import Book, Day, Finished, Foretold, Iterated, Kept, Reserve, Reset, Sample, Settle


def by_hundred(t: float) -> Day:
    return (2026, 1, 1 + int(t // 100))


def settle(name: str, t: float = 0, micros: int | None = 10, tokens: int = 1, **fields: Any) -> Settle:
    return Settle(id=name, t=t, run="r", plan="p", micros=micros, tokens=tokens, **fields)


def reserve(name: str, t: float = 0, micros: int = 50) -> Reserve:
    return Reserve(id=name, t=t, run="r", plan="p", micros=micros)


def book(*lines: Any) -> Book:
    made = Book(by_hundred)
    for line in lines:
        made.add(line)
    return made


@given(st.permutations([settle(str(n), n * 40, n * 7, n, story=f"S{n % 3}") for n in range(9)]))
def test_the_order_of_the_lines_makes_no_difference(lines: list[Settle]) -> None:
    made = book(*lines)
    assert made.ever == Amount(7 * 36, 36)
    assert made.since((2026, 1, 1)) == made.ever
    assert made.since((2026, 1, 3)) == Amount(7 * (5 + 6 + 7 + 8), 26)
    assert made.of_plan("p")["S0"] == Amount(7 * 9, 9)


def test_what_was_set_aside_is_open_until_it_is_settled_once() -> None:
    made = book(reserve("a"), reserve("b"), settle("a"), settle("a", micros=999))
    assert [line.id for line in made.open] == ["b"]
    assert made.ever == Amount(10, 1)


def test_a_settlement_that_came_before_its_reservation_closes_it_too() -> None:
    assert book(settle("a"), reserve("a")).open == ()


def test_unknown_costs_are_told_apart_from_nothing() -> None:
    made = book(settle("a", micros=None, tokens=5), settle("b", micros=0))
    assert made.ever == Amount(0, 6, 1)


def test_a_new_start_forgets_workspace_and_stories_but_not_the_day() -> None:
    made = book(settle("a", story="S"), Reset(5), settle("b", micros=3, story="S"))
    assert made.ever.micros == 3
    assert made.of_plan("p") == {"S": Amount(3, 1)}
    assert made.since((2026, 1, 1)).micros == 13


def test_days_to_come_count_as_today_for_a_clock_that_was_set_back() -> None:
    made = book(settle("a", t=950), settle("b", t=10))
    assert made.since(by_hundred(10)).micros == 20
    assert made.since(by_hundred(950)).micros == 10


def test_a_finished_story_is_one_sample_over_all_its_sessions() -> None:
    spot: dict[str, Any] = {"t": 0.0, "run": "r", "plan": "p", "story": "S"}
    made = book(
        settle("a", story="S", micros=5, tokens=2),
        Iterated(**spot, seconds=10),
        settle("b", story="S", micros=6, tokens=3),
        Iterated(**spot, seconds=20, over=True),
        settle("c", story="T", micros=None),
        Iterated(**(spot | {"story": "T"}), seconds=7, over=True),
        Iterated(**(spot | {"story": "open"}), seconds=7),
    )
    assert list(made.samples) == [Sample(2, 30, 11, 5), Sample(1, 7, None, 1)]
    assert (made.costliest, made.largest) == (6, 3)


def test_what_is_only_assumed_makes_no_session_the_dearest() -> None:
    assert book(settle("a", micros=10**9, story="S", basis=Basis.RESERVED)).costliest == 0


def test_only_runs_that_finished_show_whether_a_forecast_held() -> None:
    made = book(
        Foretold(t=0, run="a", iterations=(2, 3), seconds=(1, 2)),
        Foretold(t=0, run="b", iterations=(2, 3), seconds=(1, 2)),
        Finished(t=9, run="a", iterations=3, seconds=2),
        Finished(t=9, run="c", iterations=3, seconds=2),
    )
    assert [held.foretold.run for held in made.held] == ["a"]


def test_the_book_stays_small_however_long_the_ledger_is() -> None:
    spot: dict[str, Any] = {"t": 0.0, "run": "r", "plan": "p"}
    made = book(*(Iterated(**spot, story=f"S{n}", over=True) for n in range(1000)))
    assert len(made.samples) == 200


lines = st.lists(
    st.builds(
        settle,
        st.sampled_from("abcdefgh"),
        st.floats(0, 900),
        st.none() | st.integers(0, 99),
        story=st.sampled_from(["S", "T", ""]),
    )
    | st.builds(reserve, st.sampled_from("abcdefgh"))
    | st.builds(
        Iterated, t=st.just(0.0), run=st.just("r"), plan=st.just("p"), story=st.sampled_from("ST"), over=st.booleans()
    )
    | st.builds(
        Foretold, t=st.just(0.0), run=st.sampled_from("rq"), iterations=st.just((1, 2)), seconds=st.just((1, 2))
    )
    | st.builds(Finished, t=st.just(0.0), run=st.sampled_from("rq"), iterations=st.just(1), seconds=st.just(1.0))
    | st.builds(Reset, st.just(0.0)),
    max_size=20,
)


@given(lines, lines)
def test_a_book_that_was_put_away_goes_on_as_if_it_had_not_been(before: list[Any], after: list[Any]) -> None:
    put_away = msgspec.json.decode(msgspec.json.encode(book(*before).keep()), type=Kept)
    taken_up = book()
    taken_up.take_up(put_away)
    for line in after:
        taken_up.add(line)
    assert taken_up.keep() == book(*before, *after).keep()
