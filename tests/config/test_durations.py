from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralph.config.durations import format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90),
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
    "text", ["", "m", "1:30", "20 m", "-5", "20x", "30m1h", "1e3", "9999999h", "0x10", "0777", "٣m"]
)
def test_what_is_no_duration_is_refused(text: str) -> None:
    assert parse_duration(text) is None


def test_a_bare_number_takes_the_unit_it_is_given() -> None:
    assert parse_duration("15", bare=60) == 900
    assert parse_duration("15s", bare=60) == 15


@given(st.integers(0, 30_000_000))
def test_a_formatted_duration_reads_back_the_same(seconds: int) -> None:
    assert parse_duration(format_duration(seconds)) == seconds
