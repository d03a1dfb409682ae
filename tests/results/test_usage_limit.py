"""Limits recognised in the words of a client's error, and when they end."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ralph.results.reset_time import FARTHEST, reset_time
from ralph.results.usage_limit import NO_LIMIT, FoundLimit, detect_limit

Case = dict[str, Any]

CORPUS = Path(__file__).parent / "corpus"
CASES: list[Case] = [
    json.loads(line)
    for name in ("limits.jsonl", "limits_unseen.jsonl", "limits_unseen_2.jsonl", "limits_public.jsonl")
    for line in (CORPUS / name).read_text().split("\n")
    if line
]
NOW = datetime(2026, 11, 15, 9, 49, tzinfo=UTC).timestamp()
ZONES = ["Europe/Rome", "America/New_York", "Asia/Kolkata", "Pacific/Auckland", "America/St_Johns", "UTC", "Asia/Tokyo"]


def at(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["text"][:50])
def test_the_corpus_is_read_right(case: Case) -> None:
    found = detect_limit(case["text"], agent=case.get("agent", ""), now=at(case["now"]), tz=case.get("tz", ""))
    assert (found.limit, found.kind) == (case["limit"], case["kind"])
    wanted = case["resets_at"] and at(case["resets_at"])
    assert found.resets_at == (pytest.approx(wanted, abs=0.01) if wanted else None)


def test_the_corpus_is_large_and_has_both_sides() -> None:
    assert len(CASES) >= 220
    assert sum(not case["limit"] for case in CASES) >= 80
    for kind in ("usage", "rate", "quota", "billing"):
        assert sum(case["kind"] == kind for case in CASES) >= 15, kind


def test_what_is_no_limit_has_no_kind_and_no_end() -> None:
    assert detect_limit("Done. It resets at 3pm (Europe/Rome).", now=NOW) == NO_LIMIT == FoundLimit(False, None, None)


@pytest.mark.parametrize("wrap", ["Error: {}", "\x1b[31m{}\x1b[0m", "{}\n\n", '{{"error": "{}"}}', "[API Error: {}]"])
def test_an_envelope_changes_nothing(wrap: str) -> None:
    for case in CASES[:80]:
        if not case["limit"] or '"' in case["text"] or "\n" in case["text"]:
            continue
        found = detect_limit(wrap.format(case["text"]), now=at(case["now"]), tz=case.get("tz", ""))
        assert found.limit, case["text"]


moments = st.integers(int(at("2024-01-01T00:00:00Z")), int(at("2034-01-01T00:00:00Z"))).map(float)
hours = st.integers(1, 12)
minutes = st.integers(0, 59)
zones = st.sampled_from(ZONES)


@settings(max_examples=200)
@given(moments, hours, minutes, st.sampled_from(["am", "pm"]), zones)
def test_a_time_of_day_is_its_next_occurrence_in_the_zone(
    now: float, hour: int, minute: int, half: str, zone: str
) -> None:
    found = detect_limit(f"You've hit your limit · resets {hour}:{minute:02}{half} ({zone})", now=now)
    assert found.resets_at is not None
    assert now - 900 <= found.resets_at <= now + 25 * 3600  # a day is 25 hours long where the clock is set back
    local = datetime.fromtimestamp(found.resets_at, ZoneInfo(zone))
    wanted = hour % 12 * 60 + minute + (720 if half == "pm" else 0)
    skipped = (local.hour * 60 + local.minute - wanted) % 1440
    assert skipped in (0, 30, 60)
    if skipped:  # the time did not exist on that day
        day_before = local - timedelta(days=1)
        assert day_before.utcoffset() != local.utcoffset()


@settings(max_examples=100)
@given(moments, st.integers(0, 6), st.integers(0, 23), zones)
def test_a_weekday_is_its_next_one(now: float, day: int, hour: int, zone: str) -> None:
    names = ["Monday", "Tue", "Wednesday", "Thu", "Fri", "Saturday", "Sun"]
    found = detect_limit(f"Weekly limit reached, resets {names[day]} {hour:02}:30", now=now, tz=zone)
    assert found.resets_at is not None
    assert now < found.resets_at <= now + 7 * 24 * 3600 + 3600
    assert datetime.fromtimestamp(found.resets_at, ZoneInfo(zone)).weekday() == day


@settings(max_examples=100)
@given(moments, st.integers(0, 20), st.integers(0, 23), minutes, minutes)
def test_a_duration_is_added(now: float, days: int, hours: int, minutes: int, seconds: int) -> None:
    total = days * 86400 + hours * 3600 + minutes * 60 + seconds
    wanted = now + total if total else None
    spellings = [
        f"{days} days {hours} hours {minutes} minutes {seconds} seconds",
        f"{days}d {hours}h {minutes}m {seconds}s",
        f"{days}d{hours}h{minutes}m{seconds}s",
        f"{days} days, {hours} hrs, {minutes} mins and {seconds} secs",
        f"{total}s",
        f"{total * 1000}ms",
    ]
    for spelling in spellings:
        assert detect_limit(f"Rate limit reached. Please try again in {spelling}.", now=now).resets_at == wanted, (
            spelling
        )


@settings(max_examples=100)
@given(moments, st.integers(1, 30 * 86400), zones)
def test_every_way_to_write_a_moment_means_the_same(now: float, ahead: int, zone: str) -> None:
    when = (now + ahead) // 60 * 60
    if when <= now:
        return
    there = datetime.fromtimestamp(when, ZoneInfo(zone))
    utc = datetime.fromtimestamp(when, UTC)
    for text in (
        f"resets_at: {int(when)}",
        f"usage limit reached|{int(when)}",
        f"reset at {int(when * 1000)}",
        f"resets at {utc:%Y-%m-%dT%H:%M:%SZ}",
        f"resets at {there.isoformat()}",
        f"resets {utc:%b %d, %Y %I:%M %p} UTC",
        f"try again at {utc:%B} {utc.day}, {utc:%Y} {utc:%H:%M} (UTC)",
        f"resets on {utc.day} {utc:%b %Y} at {utc:%H:%M} GMT",
    ):
        assert reset_time(text, now) == when, text
    if there.fold == 0:
        assert reset_time(f"resets at {there:%Y-%m-%d %H:%M:%S}", now, zone) == when
        assert reset_time(f"resets {there:%b %d, %Y %H:%M} ({zone})", now) == when


WORDS = (
    "usage limit reached resets at in try again 3pm 15:30 Mon Mar 3rd 2026 tomorrow (Europe/Rome) UTC 429 | 99 -5 0s "
    "1794737722 2026-13-45 25:61 13pm Feb 30 retry-after: quota exceeded , : ("
)


@settings(max_examples=300)
@given(
    st.lists(st.sampled_from([*WORDS.split(), "\n"]), max_size=14),
    moments,
    st.sampled_from(["", "Europe/Rome", "Nowhere/Else", "../../etc/passwd", "America"]),
)
def test_whatever_is_said_the_end_is_ahead_and_near_and_always_the_same(words: list[str], now: float, tz: str) -> None:
    text = " ".join(words)
    found = detect_limit(text, now=now, tz=tz)
    assert found == detect_limit(text, now=now, tz=tz)
    assert found.resets_at is None or now < found.resets_at <= now + FARTHEST
    assert found.limit or found == NO_LIMIT


@given(st.text(max_size=200))
def test_any_text_can_be_asked_about(text: str) -> None:
    assert detect_limit(text, now=NOW).kind in (None, "usage", "rate", "quota", "billing")


@pytest.mark.parametrize("noise", ["retry " * 8000, "usage limit " * 4000, "try again in" + " " * 50_000, "-" * 40_000])
def test_a_long_text_is_read_in_time(noise: str) -> None:
    start = time.process_time()
    assert detect_limit(f"{noise}\nUsage limit reached, try again in 5s", now=NOW).limit
    assert time.process_time() - start < 3


def test_a_time_of_day_that_has_just_passed_is_over() -> None:
    """ "resets 10:42pm" said at 10:43pm is not 24 hours away."""
    said = datetime(2026, 11, 15, 22, 43, tzinfo=UTC).timestamp()
    text = "You've hit your limit · resets 10:42pm (UTC)"
    assert detect_limit(text, now=said).resets_at == said - 60
    assert detect_limit(text, now=said - 120).resets_at == said - 60, "a minute ahead"
    assert detect_limit(text, now=said + 3600).resets_at == said - 60 + 24 * 3600, "an hour later, tomorrow's is meant"
