"""When a limit ends, from the text of an error: a duration, a date, a time of day, an epoch. Pure: `now` is passed in.

A time without a day is the next such time in the future, in the zone the text names, unless it has just passed: "resets
10:42pm" said at 10:43pm is over. Times absurdly far away are ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from functools import cache
from zoneinfo import ZoneInfo

FARTHEST = 31 * 24 * 3600.0
_LAST_CLOCK = 1e11
_JUST_OVER = 15 * 60.0
"""Seconds. A time of day that passed so recently is meant, not the same time tomorrow."""

_TRIGGER = (
    r"(?:resets?|resetting|reset\s+on|try\s+again|retry-after|retry(?:ing)?|available(?:\s+again)?|until|regain\s+access|renews?|"
    r"renewed|refresh(?:es|ed)?|replenish(?:es|ed)?|wait(?:ing)?|come\s+back|back|restored|cycle\s+ends|again)"
)
_GAP = r"[\s:·∙•|,–—-]*(?:please\s+)?(?:again\s+)?"
_SOFT = r"(?:about|approximately|around|roughly|~|another|at\s+least)?\s*"

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_NAMES = "milliseconds?|millis|msecs?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d|weeks?|w"
_UNIT = rf"(?:{_NAMES})(?![a-z])"
_AMOUNT = re.compile(rf"(?P<number>\d+(?:\.\d+)?|\b(?:an?|one)\b)\s*(?P<unit>{_UNIT})", re.IGNORECASE)
_DURATION = re.compile(
    rf"{_TRIGGER}{_GAP}(?:\d+/\d+\s+)?(?:in|after|for|within)?\s*:?\s*{_SOFT}"
    rf"(?P<span>(?:(?:\d+(?:\.\d+)?|\ban?|\bone)\s*{_UNIT}(?:\s*,?\s*(?:and\s+)?)?)+)",
    re.IGNORECASE,
)
_CLOCK_SPAN = re.compile(rf"{_TRIGGER}{_GAP}in\s+(\d{{1,3}}):(\d\d):(\d\d)\b", re.IGNORECASE)

_EPOCH = re.compile(
    r"(?:limit\s+reached\s*\||resets?[_\s-]?(?:at|time|on|timestamp)?[\"']?\s*[:=|]?\s*[\"']?|retry[_-]?(?:at|on)[\"']?"
    r"\s*[:=]\s*[\"']?|ratelimit-(?:\w+-)*reset[\"']?\s*[:=]\s*[\"']?)(?P<epoch>\d{13}|\d{10}(?:\.\d+)?)(?!\d)",
    re.IGNORECASE,
)
_FIELD = re.compile(
    r"(?P<name>retry[-_]?after(?:[-_]?ms|[-_]?seconds?|[-_]?secs?)?|resets?[-_]?(?:in|after)(?:[-_]?ms|[-_]?seconds?)?|"
    r"retry[-_]?delay(?:[-_]?ms)?|ratelimit-(?:\w+-)*reset(?:-after)?)[\"']?\s*[:=]\s*[\"']?"
    r"(?P<value>\d+(?:\.\d+)?)(?P<unit>ms|s|m|h)?(?![\d:-])",
    re.IGNORECASE,
)

_MONTHS = {
    name: number
    for number, name in enumerate(
        ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"], 1
    )
} | {"ene": 1, "fev": 2, "abr": 4, "mai": 5, "ago": 8, "set": 9, "out": 10, "okt": 10, "dez": 12, "dic": 12}
"""Also as Codex writes them in Spanish, Portuguese and German."""
_DAYS = {name: number for number, name in enumerate(["mon", "tue", "wed", "thu", "fri", "sat", "sun"])}
_MONTH = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|"
    r"oct(?:ober)?|nov(?:ember)?|dec(?:ember)?|ene|fev|abr|mai|ago|set|out|okt|dez|dic)\.?"
)
_WEEKDAY = r"(?:mon(?:day)?|tues?(?:day)?|wed(?:nesday)?|thu(?:rs?)?(?:day)?|fri(?:day)?|sat(?:urday)?|sun(?:day)?)"
_TIME = r"(?P<hour>\d{1,2})(?::(?P<minute>\d\d))?(?::(?P<second>\d\d)(?:\.\d+)?)?\s*(?P<half>[ap]\.?m\b\.?)?"
_CLOCK = rf"(?:{_TIME}|(?P<word>midnight|noon))"
_AT = r"(?:\s*,?\s*(?:at|@)?\s+|\s*,\s*)"
_BEFORE = rf"{_TRIGGER}{_GAP}(?:\w+\s+){{0,3}}?(?:on|at|by|from|until|the)?\s*(?:the\s+)?"

_ISO = re.compile(
    rf"{_TRIGGER}[^\n]{{0,40}}?(?P<date>\d{{4}}-\d\d-\d\d)(?:(?:T|\s+at\s+|\s+)(?P<hour>\d\d):(?P<minute>\d\d)"
    r"(?::(?P<second>\d\d)(?:\.\d+)?)?)?(?P<zone>\s?Z\b|\s?[+-]\d\d:?\d\d\b)?",
    re.IGNORECASE,
)
_NUMERIC = re.compile(
    rf"{_TRIGGER}[^\n]{{0,40}}?\b(?P<month>\d{{1,2}})/(?P<day>\d{{1,2}})/(?P<year>\d{{4}})(?:{_AT}{_CLOCK})?",
    re.IGNORECASE,
)
_MONTH_FIRST = re.compile(
    rf"{_BEFORE}(?:{_WEEKDAY}\.?,?\s+)?{_MONTH}\s+(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\b(?:,?\s+(?P<year>20\d\d))?"
    rf"(?:{_AT}{_CLOCK})?",
    re.IGNORECASE,
)
_DAY_FIRST = re.compile(
    rf"{_BEFORE}(?:{_WEEKDAY}\.?,?\s+)?(?P<day>\d{{1,2}})(?:st|nd|rd|th|\.)?\s+(?:de\s+|of\s+)?{_MONTH}(?:,?\s+(?:de\s+)?(?P<year>20\d\d))?"
    rf"(?:{_AT}{_CLOCK})?",
    re.IGNORECASE,
)
_ON_WEEKDAY = re.compile(
    rf"{_BEFORE}(?:next\s+|this\s+)?(?P<weekday>{_WEEKDAY})\b\.?(?:{_AT}{_CLOCK})?",
    re.IGNORECASE,
)
_NEAR_DAY = re.compile(rf"{_BEFORE}(?P<near>today|tomorrow|tonight)\b(?:{_AT}{_CLOCK})?", re.IGNORECASE)
_TIME_ONLY = re.compile(rf"{_BEFORE}{_CLOCK}", re.IGNORECASE)

_NAMED_ZONE = re.compile(r"[\s(\[]*(?P<zone>[A-Z][A-Za-z_]+(?:/[A-Za-z_+-]+\d*){1,2})")
_OFFSET_ZONE = re.compile(r"[\s(\[]*(?:UTC|GMT)?\s?(?P<sign>[+−-])(?P<hours>\d{1,2})(?::?(?P<minutes>\d\d))?\b")
_SHORT_ZONE = re.compile(
    r"[\s(\[]*(?P<zone>[A-Z]{1,4}T?|(?:Pacific|Eastern|Central|Mountain)(?:\s+(?:Standard|Daylight))?)\b"
)
_ABBREVIATIONS = {
    **dict.fromkeys(("UTC", "GMT", "Z"), "UTC"),
    **dict.fromkeys(("PST", "PDT", "PT", "Pacific"), "America/Los_Angeles"),
    **dict.fromkeys(("MST", "MDT", "MT", "Mountain"), "America/Denver"),
    **dict.fromkeys(("CST", "CDT", "CT", "Central"), "America/Chicago"),
    **dict.fromkeys(("EST", "EDT", "ET", "Eastern"), "America/New_York"),
    **dict.fromkeys(("CET", "CEST"), "Europe/Paris"),
    **dict.fromkeys(("BST", "WET", "WEST"), "Europe/London"),
    **dict.fromkeys(("EET", "EEST"), "Europe/Helsinki"),
    "IST": "Asia/Kolkata",
    "JST": "Asia/Tokyo",
    "KST": "Asia/Seoul",
    "SGT": "Asia/Singapore",
    "HKT": "Asia/Hong_Kong",
    "MSK": "Europe/Moscow",
    **dict.fromkeys(("AEST", "AEDT"), "Australia/Sydney"),
    "BRT": "America/Sao_Paulo",
}


def reset_time(text: str, now: float, tz: str = "") -> float | None:
    """The first reading that lies in the future, the most exact one first; else the first one that is over. None also
    if the clock itself is off."""
    if not 0 <= now < _LAST_CLOCK:
        return None
    here = _zone(tz) or UTC
    over: float | None = None
    for when in _readings(text, now, here):
        if now < when <= now + FARTHEST:
            return when
        if over is None and now - FARTHEST <= when < now:
            over = when
    return over


def _readings(text: str, now: float, here: tzinfo) -> Iterator[float]:
    yield from _epochs(text)
    yield from _fields(text, now)
    for pattern in (_ISO, _NUMERIC, _MONTH_FIRST, _DAY_FIRST):
        for match in pattern.finditer(text):
            yield from _dated(match, text, now, here)
    yield from _durations(text, now)
    for pattern in (_NEAR_DAY, _ON_WEEKDAY, _TIME_ONLY):
        for match in pattern.finditer(text):
            yield from _clocked(match, text, now, here)


def _epochs(text: str) -> Iterator[float]:
    for match in _EPOCH.finditer(text):
        number = match["epoch"]
        yield float(number) / 1000 if len(number) == 13 and "." not in number else float(number)


def _fields(text: str, now: float) -> Iterator[float]:
    for match in _FIELD.finditer(text):
        value, name = float(match["value"]), match["name"].lower()
        if value > 1e9:
            continue  # an epoch
        unit = (match["unit"] or ("ms" if name.endswith("ms") else "s")).lower()
        yield now + value * _UNITS[unit]


def _durations(text: str, now: float) -> Iterator[float]:
    for match in _CLOCK_SPAN.finditer(text):
        hours, minutes, seconds = (int(group) for group in match.groups())
        yield now + hours * 3600 + minutes * 60 + seconds
    for match in _DURATION.finditer(text):
        total = 0.0
        for amount in _AMOUNT.finditer(match["span"]):
            number = 1.0 if amount["number"][0].isalpha() else float(amount["number"])
            total += number * _UNITS[_short_unit(amount["unit"])]
        yield now + total


def _short_unit(unit: str) -> str:
    unit = unit.lower()
    return "ms" if unit.startswith(("ms", "milli")) else unit[0]


def _dated(match: re.Match[str], text: str, now: float, here: tzinfo) -> Iterator[float]:
    """A calendar date, with or without a year or a time."""
    groups = match.groupdict()
    zone = _zone_after(match, text, here)
    clock = _clock(groups)
    if clock is None:
        return
    today = datetime.fromtimestamp(now, zone).date()
    if groups.get("date"):
        year, month, day = (int(part) for part in groups["date"].split("-"))
    else:
        month = _MONTHS.get(groups["month"][:3].lower()) or int(groups["month"])
        day, year = int(groups["day"]), int(groups["year"] or 0)
    for one in (year,) if year else (today.year, today.year + 1):
        try:
            wanted = date(one, month, day)
        except ValueError:
            continue
        yield from _moments(wanted, clock, zone)


def _clocked(match: re.Match[str], text: str, now: float, here: tzinfo) -> Iterator[float]:
    """A time today or tomorrow, on a weekday, or on the next day that has it."""
    groups = match.groupdict()
    zone = _zone_after(match, text, here)
    is_bare = "weekday" not in groups and "near" not in groups
    if is_bare and not _is_time_of_day(groups, match, text):
        return
    clock = _clock(groups)
    if clock is None:
        return
    today = datetime.fromtimestamp(now, zone).date()
    if is_bare and 0 < now - (last := max(_moments(today, clock, zone))) <= _JUST_OVER:
        yield last
        return
    for ahead in range(9):
        day = today + timedelta(days=ahead)
        if groups.get("weekday") and day.weekday() != _DAYS[groups["weekday"][:3].lower()]:
            continue
        if groups.get("near") and ahead != (1 if groups["near"].lower() == "tomorrow" else 0):
            continue
        for when in _moments(day, clock, zone):
            if when > now:
                yield when


def _is_time_of_day(groups: dict[str, str | None], match: re.Match[str], text: str) -> bool:
    """A bare number is not a time; `3pm`, `15:30` and `midnight` are."""
    if groups["word"] or groups["half"] or groups["minute"]:
        return not text[match.end() :].lstrip().startswith(("/", "%"))
    return False


def _clock(groups: dict[str, str | None]) -> time | None:
    """Midnight if no time is named; None for a time that does not exist."""
    if groups.get("word"):
        return time(12) if str(groups["word"]).lower() == "noon" else time(0)
    if not groups.get("hour"):
        return time(0)
    hour, half = int(groups["hour"] or 0), (groups.get("half") or "").lower()
    if half:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if half.startswith("p") else 0)
    try:
        return time(hour, int(groups.get("minute") or 0), int(groups.get("second") or 0))
    except ValueError:
        return None


def _moments(day: date, clock: time, zone: tzinfo) -> Iterator[float]:
    """Two results if the clock is set back at that time. A skipped time uses the earlier offset: an hour later."""
    local = datetime.combine(day, clock, zone)
    for fold in (0, 1) if local.utcoffset() != local.replace(fold=1).utcoffset() else (0,):
        yield local.replace(fold=fold).timestamp()


def _zone_after(match: re.Match[str], text: str, here: tzinfo) -> tzinfo:
    """The time zone right after the time, or in parentheses soon after it."""
    if zone := match.groupdict().get("zone"):
        return UTC if zone.strip().upper() == "Z" else _offset(zone.strip()) or here
    rest = text[match.end() : match.end() + 60]
    if (named := _NAMED_ZONE.match(rest)) and (found := _zone(named["zone"])):
        return found
    if (offset := _OFFSET_ZONE.match(rest)) and (found := _offset(offset[0].strip(" ([").removeprefix("UTC"))):
        return found
    if (short := _SHORT_ZONE.match(rest)) and (name := _ABBREVIATIONS.get(short["zone"].split()[0])):
        return _zone(name) or here
    if (named := re.search(r"\((?P<zone>[A-Z][\w/+-]+)\)", rest)) and (found := _zone(named["zone"])):
        return found
    return here


def _offset(text: str) -> tzinfo | None:
    match = re.fullmatch(r"(?:GMT)?\s?(?P<sign>[+−-])(?P<hours>\d{1,2}):?(?P<minutes>\d\d)?", text)
    if match is None or int(match["hours"]) > 14:
        return None
    span = timedelta(hours=int(match["hours"]), minutes=int(match["minutes"] or 0))
    return timezone(span if match["sign"] == "+" else -span)


@cache
def _zone(name: str) -> tzinfo | None:
    name = _ABBREVIATIONS.get(name, name)
    if not name or not re.fullmatch(r"[A-Za-z][\w+-]*(?:/[\w+-]+)*", name):
        return None
    if name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # unknown here, or a folder of the database
        return None
