"""What holds for the stories of any plan."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralph.core.errors import PlanError
from ralph.core.plan import Story
from ralph.core.problems import Place
from ralph.plans.integrity import decode_utf8, problems_of


def story(story_id: str, *depends_on: str, line: int = 0) -> Story:
    return Story(id=story_id, title="t", depends_on=depends_on, line=line)


def codes(*stories: Story) -> list[tuple[str, str]]:
    return [(problem.code, problem.story) for problem in problems_of(stories, "f")]


def test_a_sound_plan_has_no_problems() -> None:
    assert codes() == []
    assert codes(story("a"), story("b", "a"), story("c", "a", "b")) == []
    assert codes(story("a", "c"), story("b", "a"), story("c")) == [], "a dependency may come later"


def test_bad_ids_are_found() -> None:
    assert codes(
        story(""), story(" "), story("x" * 101), story("a\nb"), story("a\u202eb"), story("x" * 100), story("é")
    ) == [
        ("bad-id", ""),
        ("bad-id", ""),
        ("bad-id", "x" * 99 + "…"),
        ("bad-id", "a b"),
        ("bad-id", "ab"),
    ]


def test_each_repetition_is_found_and_points_to_the_first() -> None:
    found = problems_of([story("a", line=3), story("b", line=5), story("a", line=7), story("a", line=9)], "f")
    assert [str(problem.where) for problem in found] == ["f:7", "f:9"]
    assert all("line 3" in problem.message for problem in found)


def test_dependencies_that_cannot_be_met_are_found() -> None:
    assert codes(story("a", "a"), story("b", "nope", "a")) == [("self-dependency", "a"), ("unknown-dependency", "b")]


def test_each_cycle_is_named_once() -> None:
    found = problems_of(
        [story("a", "b"), story("b", "c"), story("c", "a"), story("x", "y"), story("y", "x"), story("z", "a", "x")], "f"
    )
    assert [problem.message.partition(": ")[2] for problem in found] == ["a → b → c → a", "x → y → x"]


def test_a_place_can_be_given() -> None:
    [problem] = problems_of([story("a", "a")], "f", lambda index: Place(path=f"stories[{index}]"))
    assert problem.where.path == "stories[0]"


def test_a_very_long_cycle_is_no_trouble() -> None:
    count = 50_000
    [problem] = problems_of([story(str(n), str((n + 1) % count)) for n in range(count)], "f")
    assert problem.message.endswith("0 → 1 → 2 → 3 → 4 → 5 → … 49993 more … → 49999 → 0")


@given(st.lists(st.lists(st.integers(0, 7), max_size=3), min_size=1, max_size=8))
def test_a_plan_without_problems_can_be_worked_off(wanted: list[list[int]]) -> None:
    stories = [story(str(n), *map(str, needs)) for n, needs in enumerate(wanted)]
    done: set[str] = set()
    while ready := [s.id for s in stories if s.id not in done and done.issuperset(s.depends_on)]:
        done.update(ready)
    assert (problems_of(stories, "f") == []) is (len(done) == len(stories))


@pytest.mark.parametrize(
    ("source", "line", "words"),
    [
        (b"a\n\nb\0", 3, "NUL"),
        (b"\xff", 1, "0xff at offset 0"),
        (b"a\r\n\xc3", 2, "0xc3 at offset 3"),
        (b"\xed\xa0\x80", 1, "UTF-8"),
    ],
)
def test_bytes_that_are_no_text_are_refused(source: bytes, line: int, words: str) -> None:
    with pytest.raises(PlanError, match=words) as caught:
        decode_utf8(source, "f")
    assert caught.value.where == Place(file="f", line=line)


def test_a_byte_order_mark_stays() -> None:
    assert decode_utf8("\ufeffé".encode(), "f") == "\ufeffé"
