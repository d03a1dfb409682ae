"""Tokens by what agents have counted, and by a stated estimate before."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ralph.run.context_size import Sample, TokenEstimate, calibrate


def test_without_counts_it_is_four_characters_a_token() -> None:
    assert calibrate([]) == TokenEstimate() == TokenEstimate(4.0, None, 0, False)
    assert TokenEstimate().tokens("x" * 9) == 3
    assert calibrate([Sample(100, 0), Sample(0, 50)]) == TokenEstimate()


def test_the_client_is_told_apart_from_the_prompt() -> None:
    estimate = calibrate([Sample(chars, 14_000 + chars // 3) for chars in (3000, 6000, 9000, 12_000)])
    assert estimate.is_measured
    assert abs(estimate.chars_per_token - 3) < 0.01
    assert estimate.overhead is not None
    assert abs(estimate.overhead - 14_000) <= 2


def test_prompts_of_one_length_say_nothing_about_the_ratio() -> None:
    estimate = calibrate([Sample(4000, 15_000)] * 5)
    assert (estimate.chars_per_token, estimate.is_measured, estimate.overhead, estimate.samples) == (
        4.0,
        False,
        14_000,
        5,
    )


@given(st.lists(st.builds(Sample, st.integers(-10, 10**7), st.integers(-10, 10**7)), max_size=12))
def test_nonsense_is_not_believed(samples: list[Sample]) -> None:
    estimate = calibrate(samples)
    assert 2 <= estimate.chars_per_token <= 8
    assert estimate.overhead is None or estimate.overhead >= 0
    assert 0 <= estimate.tokens("x" * 100) <= 50
