"""Settings that became weaker: less coverage required, rules disabled, tests excluded."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from ralph.checks.tamper.commands import hides, narrowing_option, weaknesses
from ralph.checks.tamper.evidence import Evidence, high_unless
from ralph.checks.tamper.setting_rules import RULES, TOPICS, Rule, Way
from ralph.checks.tamper.settings import Setting, Table
from ralph.checks.tamper.values import Finding, Severity

_LEVELS = {
    "off": 0,
    "0": 0,
    "none": 0,
    "false": 0,
    "allow": 0,
    "basic": 1,
    "warn": 1,
    "warning": 1,
    "1": 1,
    "info": 1,
    "information": 1,
    "standard": 2,
    "error": 3,
    "2": 3,
    "strict": 3,
    "true": 3,
    "deny": 3,
    "forbid": 4,
}


def loosened(old: Table, new: Table, evidence: Evidence, fresh: Mapping[str, bool]) -> Iterator[Finding]:
    """`fresh`: files that did not exist before. A tool's earlier configuration is then unknown."""
    for key in sorted(old.keys() | new.keys()):
        rule = next((rule for rule in RULES if rule.pattern.fullmatch(key)), None)
        if rule is None:
            continue
        before, after = old.get(key), new.get(key)
        if before is not None and after is not None and before.values == after.values:
            continue
        place = after or before
        assert place is not None
        if rule.way == "commands":
            yield from _commands(before, after, place, evidence)
            continue
        message = _weaker(rule, key, before, after)
        if not message:
            continue
        severity: Severity = "low" if evidence.story.relaxes(*TOPICS.get(rule.code, ())) else "high"
        if before is None and fresh.get(place.path) and rule.way != "options":
            severity = "low"
        yield Finding(rule.code, place.path, place.line if after else 1, message, severity)


def _commands(before: Setting | None, after: Setting | None, place: Setting, evidence: Evidence) -> Iterator[Finding]:
    old = [line for value in (before.values if before else ()) for line in value.split("\n")]
    new = [line for value in (after.values if after else ()) for line in value.split("\n")]
    for weakness in weaknesses(old, new):
        asked = bool(weakness.runner) and evidence.story.relaxes(re.escape(weakness.runner.split()[0]))
        yield Finding(weakness.code, place.path, place.line, weakness.message, high_unless(asked))


def _weaker(rule: Rule, key: str, before: Setting | None, after: Setting | None) -> str:
    old, new = (before.values if before else ()), (after.values if after else ())
    name = key if rule.way == "level" or "per-file" in key else key.rpartition(".")[2]
    match rule.way:
        case "least" | "most":
            return _number(rule.way, name, old, new)
        case "grows":
            came = [value for value in new if value not in old and not value.startswith("!")]
            return f"{name} excludes more: {', '.join(came)[:80]}" if came else ""
        case "shrinks":
            gone = [value for value in old if value not in new]
            excluded = [value for value in new if value.startswith("!") and value not in old]
            if excluded or (gone and not (after is None and rule.code == "tests-narrowed") and "ALL" not in new):
                return f"{name} covers less: {', '.join(gone + excluded)[:80]}"
            return (
                f"{name} names only {', '.join(new)[:60]}"
                if before is None and rule.code == "tests-narrowed" and _is_narrow(new)
                else ""
            )
        case "on" | "off":
            return _switch(rule.way, name, old, new)
        case "level":
            return _level(name, old, new)
        case "options":
            return _options(name, old, new)
        case "changes":
            return (
                f"{name} is {' '.join(new)[:60] or 'gone'}, was {' '.join(old)[:60] or 'not set'}"
                if not set(old) <= set(new) or not old
                else ""
            )
    return ""


def _is_narrow(values: tuple[str, ...]) -> bool:
    """A single file, or a folder in the folder of tests."""
    return all("/" in value.rstrip("/") or "." in value for value in values)


def _number(way: Way, name: str, old: tuple[str, ...], new: tuple[str, ...]) -> str:
    before, after = _first_number(old), _first_number(new)
    if before is None:
        return ""
    if after is None:
        return f"{name} was removed (was {before:g})" if way == "least" else ""
    weaker = after < before if way == "least" else after > before
    return f"{name} changed from {before:g} to {after:g}" if weaker else ""


def _first_number(values: tuple[str, ...]) -> float | None:
    for value in values:
        if match := re.search(r"-?\d+(?:\.\d+)?", value):
            return float(match[0])
    return None


def _switch(way: Way, name: str, old: tuple[str, ...], new: tuple[str, ...]) -> str:
    was, now = _is_on(old), _is_on(new)
    if way == "on":
        return f"{name} is {'off' if new else 'gone'}" if (was and not now) or (not old and now is False) else ""
    return f"{name} is on" if now and not was else ""


def _is_on(values: tuple[str, ...]) -> bool | None:
    if not values:
        return None
    return values[-1].strip().lower() in ("true", "1", "yes", "on")


def _level(name: str, old: tuple[str, ...], new: tuple[str, ...]) -> str:
    was = _LEVELS.get(old[0].lower()) if old else None
    now = _LEVELS.get(new[0].lower()) if new else None
    if now is not None and ((was is None and not old and now == 0) or (was is not None and now < was)):
        return f"{name} is {new[0]}" + (f", was {old[0]}" if old else "")
    return f"{name} was removed (was {old[0]})" if was is not None and was > 0 and not new else ""


def _options(name: str, old: tuple[str, ...], new: tuple[str, ...]) -> str:
    before, after = " ".join(old), " ".join(new)
    for check in (narrowing_option, hides):
        label = check(after)
        if label and label != check(before):
            return f"{name} has `{label}` now: {after[:80]}"
    added = _option_values(after) - _option_values(before)
    if added:
        return f"{name} excludes more: {', '.join(sorted(added))[:80]}"
    strict = [
        word
        for word in before.split()
        if word.startswith(("--strict", "--cov-fail-under", "-W", "--runslow")) and word not in after.split()
    ]
    if strict:
        return f"{name} lost {' '.join(strict)[:80]}"
    return ""


def _option_values(text: str) -> set[str]:
    return set(re.findall(r"--(?:ignore(?:-glob)?|deselect)[= ](\S+)", text))
