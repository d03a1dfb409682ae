"""A learning is one line that says where it comes from; the same one is not kept twice."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralph.core.learning import LONGEST, Learning, distinct, is_same, learned, news, read_line, written

DAY = "2026-11-15T10:00:00Z"
texts = st.text(min_size=1, max_size=80).map(lambda text: learned(text, day=DAY).text).filter(bool)
stories = st.sampled_from(["", "US-001", "1.2", "an odd (story), 2", "ÄÖ-7"])
commits = st.sampled_from(["", "0123456789abcdef0123456789abcdef01234567"])


@given(texts, stories, commits, st.booleans())
def test_what_is_written_is_read_again(text: str, story: str, commit: str, accepted: bool) -> None:
    one = learned(text, day=DAY, story=story, commit=commit, accepted=accepted)
    assert read_line(written(one)) == one


def test_a_line_says_story_day_commit_and_that_it_was_not_accepted() -> None:
    one = learned("The\nclock \x1b[31mis frozen", day=DAY, story="US-003", commit="1a2b3c4d5e6f", accepted=False)
    assert written(one) == "The clock is frozen (US-003, 2026-11-15, 1a2b3c4d5, not accepted)"
    assert len(learned("x" * 5000, day=DAY).text) == LONGEST


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("The tests need a running Redis.", "the tests need a running redis", True),
        ("The tests need Redis", "Tests need the Redis", True),
        ("Use bun", "Do not use bun", False),
        ("Migrate before seeding", "Seed before migrating", False),
        ("The server listens on port 8080", "The server listens on port 8081", False),
        ("Run `make a` before `make b`", "Run `make b` before `make a`", False),
        (
            "The importer of orders in src/orders.py reads dates with the old parser and loses the time zone",
            "The importer of all orders in src/orders.py reads dates with the old parser, and loses the time zone",
            True,
        ),
        (
            "The importer of orders in src/orders.py reads dates with the old parser and loses the time zone",
            "The importer of orders in src/orders.py never reads dates with the old parser and loses the time zone",
            False,
        ),
    ],
)
def test_the_same_is_recognised_and_the_opposite_is_not_taken_for_it(first: str, second: str, same: bool) -> None:
    assert is_same(first, second) is same
    assert is_same(second, first) is same


@given(texts)
def test_everything_is_the_same_as_itself(text: str) -> None:
    assert is_same(text, text)


def test_what_is_known_is_no_news_but_an_accepted_word_is_after_a_doubtful_one() -> None:
    doubtful = learned("Redis first", day=DAY, accepted=False)
    sure = learned("redis first!", day=DAY)
    assert news([doubtful, doubtful], []) == (doubtful,)
    assert news([sure], [doubtful]) == (sure,)
    assert news([doubtful], [sure]) == ()
    assert distinct([doubtful, sure]) == (sure,)
    curated = Learning(text="REDIS FIRST", curated=True)
    assert distinct([sure, curated, doubtful]) == (curated,)


@given(st.lists(st.builds(learned, texts, day=st.just(DAY), accepted=st.booleans()), max_size=10))
def test_news_of_anything_twice_is_nothing(given: list[Learning]) -> None:
    new = news(given, [])
    assert news(given, new) == ()
    assert set(new) <= set(given)
