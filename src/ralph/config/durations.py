"""Lengths of time: `90`, `20m`, `1h30m`, `500ms`. Inside Ralph they are seconds."""

from __future__ import annotations

import re
from typing import Annotated

from msgspec import Meta

Duration = Annotated[float, Meta(extra={"form": "duration"})]

EXPECTED = "a duration such as 90 (seconds), 20m or 1h30m"
LONGEST = 366 * 86_400

_NUMBER = r"[0-9]{1,9}(?:\.[0-9]{1,9})?"
_BARE = re.compile(r"(?:0|[1-9][0-9]{0,8})(?:\.[0-9]{1,9})?")  # a leading zero may be meant as octal
_PART = re.compile(rf"({_NUMBER})(ms|h|m|s)")
_WHOLE = re.compile(rf"(?:{_NUMBER}h)?(?:{_NUMBER}m)?(?:{_NUMBER}s)?(?:{_NUMBER}ms)?")
PATTERN = f"^(?:{_BARE.pattern}|{_WHOLE.pattern})$"
_SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}


def parse_duration(text: str, bare: float = 1.0) -> float | None:
    """Seconds, or None when the text is no duration. `bare` is the unit of a number without one."""
    text = text.strip()
    if _BARE.fullmatch(text):
        seconds = float(text) * bare
    elif text and _WHOLE.fullmatch(text):
        seconds = sum(float(number) * _SECONDS[unit] for number, unit in _PART.findall(text))
    else:
        return None
    return seconds if seconds <= LONGEST else None


def format_duration(seconds: float) -> str:
    """The shortest text that `parse_duration` reads back as the same length."""
    if seconds != int(seconds) or seconds == 0:
        return f"{seconds:.9f}".rstrip("0").rstrip(".")
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    parts = ((hours, "h"), (minutes, "m"), (rest, "s"))
    return "".join(f"{number}{unit}" for number, unit in parts if number)
