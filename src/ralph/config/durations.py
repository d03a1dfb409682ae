"""Durations: `90s`, `20m`, `1h30m`, `500ms`. Internally they are seconds.

A number without a unit is an error, because it is easily read as the other unit. `0` needs none.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from ralph.core.lazy_pattern import lazy_pattern

Duration = Annotated[float, Meta(extra={"form": "duration"})]

BARE_NUMBERS = {
    "TIMEOUT_AGENT": 1.0,  # seed 000: `timeout "$TIMEOUT_AGENT" claude …`, "default 3600 = 1 hour"
    "-t": 60.0,  # seed 003: "`-t, --timeout` | 15 | Per-iteration timeout (minutes)"
    "--timeout": 60.0,
    "defaults.timeout_minutes": 60.0,  # seed 003: `timeout_minutes: 15` in .ralph/config.yaml
}
"""The exceptions: variables, flags and keys for which a seed defines a number without a unit, in seconds.

Seed 002 writes all of its durations with a unit (`"timeout": "20m"`, `"retry_delay": "30s"`).
"""
EXPECTED = "a duration such as 90s, 90m or 1h30m"
LONGEST = 366 * 86_400

_NUMBER = r"[0-9]{1,9}(?:\.[0-9]{1,9})?"
_BARE = lazy_pattern(r"(?:0|[1-9][0-9]{0,8})(?:\.[0-9]{1,9})?")  # a leading zero may be meant as octal
_PART = lazy_pattern(rf"({_NUMBER})(ms|h|m|s)")
_WHOLE = lazy_pattern(rf"(?:{_NUMBER}h)?(?:{_NUMBER}m)?(?:{_NUMBER}s)?(?:{_NUMBER}ms)?")
PATTERN = f"^(?:0|{_WHOLE.pattern})$"
_SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}


def parse_duration(text: str, bare: float | None = None) -> float | None:
    """Seconds, or None if the text is not a duration. `bare` is the unit of a number without one; None: a unit is
    required.
    """
    text = text.strip()
    if _BARE.fullmatch(text) and (bare is not None or float(text) == 0):
        seconds = float(text) * (bare or 1.0)
    elif text and _WHOLE.fullmatch(text):
        seconds = sum(float(number) * _SECONDS[unit] for number, unit in _PART.findall(text))
    else:
        return None
    return seconds if seconds <= LONGEST else None


def unit_hint(text: str) -> str:
    """A suggestion for a number without a unit; empty for anything else."""
    text = text.strip()
    return f"use {text}s for seconds or {text}m for minutes" if _BARE.fullmatch(text) else ""


def format_duration(seconds: float) -> str:
    """The shortest text that `parse_duration` reads back as the same duration."""
    if seconds == 0:
        return "0"
    if seconds != int(seconds):
        return f"{seconds:.9f}".rstrip("0") + "s"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    parts = ((hours, "h"), (minutes, "m"), (rest, "s"))
    return "".join(f"{number}{unit}" for number, unit in parts if number)
