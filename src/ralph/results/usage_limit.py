"""Recognise usage, rate, quota and billing limits in a client's final error, for clients without typed events.

Never applied to tool output or to the model's text, where limits are an ordinary topic. Even so, reports on work and
limits of other kinds (context, turns, files, memory) are excluded.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from ralph.guard.tables import load
from ralph.results.reset_time import reset_time
from ralph.results.screen import ESCAPES

_LONGEST = 20_000
_UNSEEN = ESCAPES + "|[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]"


class FoundLimit(NamedTuple):
    limit: bool
    kind: str | None = None
    """usage: a plan's allowance; rate: too many requests at once; quota: an API's allowance; billing: no money."""
    resets_at: float | None = None


NO_LIMIT = FoundLimit(False)
_PATTERNS = {name: section.strip("\n").split("\n") for name, section in load("limits", __file__).items()}


def detect_limit(text: str, *, agent: str = "", now: float, tz: str = "") -> FoundLimit:
    """`tz` applies if the text names no time zone; `agent` is the client that reported the error."""
    text = _plain(text)
    kind = _kind(text, agent)
    if kind is None:
        return NO_LIMIT
    return FoundLimit(True, kind, reset_time(text, now, tz))


def _plain(text: str) -> str:
    """Removes lines that are not the client's own, colours, typographic apostrophes, escapes of nested JSON, and long
    gaps, which make patterns slow."""
    text = text if len(text) <= 2 * _LONGEST else text[:_LONGEST] + "\n" + text[-_LONGEST:]
    text = "\n".join(line for line in re.sub(_UNSEEN, "", text).split("\n") if not _has("foreign", line.strip()))
    for fancy in "’‘ʼ`´":
        text = text.replace(fancy, "'")
    text = text.replace('\\"', '"').replace("\\n", "\n").replace("\u202f", " ").replace("\xa0", " ")
    return re.sub(r"\s*\n\s*", "\n", re.sub(r"[ \t]+", " ", text))


def _kind(text: str, agent: str) -> str | None:
    if not text.strip() or _is_about_work(text) or (_has("other-services", text) and not _has("models", text)):
        return None
    if _where(text, "billing") is not None:
        return "billing"
    quota, usage = _where(text, "quota"), _where(text, "usage")
    if quota is not None or usage is not None:
        is_quota = usage is None or (quota is not None and (quota < usage or "insufficient_quota" in text))
        return "quota" if is_quota else "usage"
    if _where(text, "rate") is not None:
        return "rate"
    if _where(text, "advice") is not None:
        return "billing"
    is_usage = _has("bare", text) and (agent or _has("resets", text)) and not _has("other-limits", text)
    return "usage" if is_usage else None


def _where(text: str, kind: str) -> int | None:
    """The position of the first statement about this kind of limit; limits of other kinds are skipped."""
    matches = (match for pattern in _PATTERNS[kind] for match in _compiled(pattern).finditer(text))
    return min((match.start() for match in matches if _is_meant(match, kind)), default=None)


def _is_meant(match: re.Match[str], kind: str) -> bool:
    around = match.string[max(0, match.start() - 25) : match.end() + 25]
    if kind == "quota" and _has("other-quotas", around):
        return False
    what = match.groupdict().get("what") or ""
    if _has("other-limits", what) and not re.search(r"(?i)\b(?:monthly|weekly|daily|hourly) token", what):
        return False
    before = match.string[max(0, match.start() - 30) : match.start()]
    return kind not in ("usage", "quota") or not _has("warning", before)


def _is_about_work(text: str) -> bool:
    """A report on work that deals with limits; an error states what happened just now."""
    if _has("work", text) or _has("checked", text) or _has("work", text.rstrip().rpartition("\n")[2]):
        return True
    return (_has("about-work", text) or _has("prose", text)) and not (_has("error", text) or _has("resets", text))


def _has(section: str, text: str) -> bool:
    return any(_compiled(pattern).search(text) for pattern in _PATTERNS[section])


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE | re.MULTILINE if pattern.startswith("^") else re.IGNORECASE)
