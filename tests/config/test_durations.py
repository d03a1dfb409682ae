from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralph.config.durations import format_duration, parse_duration, unit_hint


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("0", 0),
        ("20m", 1200),
        ("1h30m", 5400),
        ("90s", 90),
        ("1.5h", 5400),
        ("500ms", 0.5),
        ("1h0m5s", 3605),
        ("1h05m", 3900),
        (" 15m ", 900),
    ],
)
def test_durations_read_as_people_write_them(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "m", "1:30", "20 m", "-5", "20x", "30m1h", "1e3", "9999999h", "0x10", "0777", "٣m", "90", "1.5"]
)
def test_what_is_no_duration_is_refused(text: str) -> None:
    assert parse_duration(text) is None


def test_a_bare_number_takes_the_unit_it_is_given() -> None:
    assert parse_duration("15", bare=60) == 900
    assert parse_duration("15s", bare=60) == 15


def test_a_bare_number_is_told_both_ways_to_write_it() -> None:
    assert unit_hint("90") == "use 90s for seconds or 90m for minutes"
    assert unit_hint("soon") == ""


@given(st.integers(0, 30_000_000) | st.integers(1, 99_999).map(lambda n: n / 100))
def test_a_formatted_duration_reads_back_the_same(seconds: float) -> None:
    assert parse_duration(format_duration(seconds)) == seconds
