"""Combines what the command is, what its output says, and how it ended."""

import re

from ralph.guard.tables import load
from ralph.results import exits
from ralph.results.parts import Part
from ralph.results.screen import clean
from ralph.results.signs import GENERIC, Evidence, public_name, scan
from ralph.results.vocabulary import LOOK, PERHAPS, TEST, TRIVIAL, base, is_testy

Verdict = tuple[bool, bool, str]
"""Whether tests ran, whether they failed, and the framework."""
NO_TESTS: Verdict = (False, False, "")
_RUNNERS = {name: section.split("\n") for name, section in load("runners", __file__).items()}

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

_ENDED_FROM_OUTSIDE = (124, 130, 137, 143)
_CHOOSY = ("grep", "egrep", "rg", "ag", "awk", "sed", "head", "sort", "uniq", "jq")
_FAMILIES = ("python", "ruby", "junit")
"""Only the output tells which of these frameworks it was."""


def weigh(parts: list[Part], output: str, code: int | None) -> Verdict:
    text = clean(output)
    tests = [part for part in parts if part.role == TEST]
    if tests:
        return _of_tests(parts, tests, text, code)
    return _of_unknown(text, is_likely=not parts or any(part.role == PERHAPS for part in parts))


def _of_unknown(text: str, is_likely: bool) -> Verdict:
    """A command that may be anything: only a framework's summary counts; where tests are likely, its marks do, too."""
    found = scan(text, "", is_test=is_likely)
    found.pop(GENERIC, None)
    summed = {name: one for name, one in found.items() if one.sums or "fail" in one.seen}
    told = summed or {name: one for name, one in found.items() if "mark" in one.seen}
    if not told:
        return (True, True, "") if is_likely and any(map(is_testy, _names_that_failed(text))) else NO_TESTS
    failed = [name for name, one in told.items() if one.state in ("fail", "mark")]
    return True, bool(failed), public_name((failed or list(told))[0])


def _of_tests(parts: list[Part], tests: list[Part], text: str, code: int | None) -> Verdict:
    frameworks = list(dict.fromkeys(part.framework for part in tests))
    found: dict[str, Evidence] = {}
    for framework in frameworks:
        found.update(scan(text, framework, is_test=True))
    if not found and (generic := scan(text, GENERIC, is_test=True)) and generic[GENERIC].sums:
        found = generic  # a reporter of the project's own
    if len(tests) == 1 and tests[0].framework == "pytest" and "pytest" in found and not tests[0].in_loop:
        # One run has one summary, the last; others were printed in it.
        found["pytest"].sums = sorted(found["pytest"].sums)[-1:]
    if any(part.joint == "||" for part in tests[1:]):
        for one in found.values():
            one.sums = sorted(one.sums)[-1:]  # run again because it had failed: the last run counts
    is_known = all(framework not in ("", "make", "rake") for framework in frameworks)
    state, name = _summed_up(found, is_known)
    if is_known and len(frameworks) == 1 and frameworks[0] not in _FAMILIES:
        name = frameworks[0]
    name = (
        public_name(name)
        or next((one for one in frameworks if one), "")
        or base(tests[0].words[0]).replace("run-script", "")
    )
    end = exits.ending(parts, code, text)
    if state in ("", "mark") and _runs_nothing(text, end, state, name):
        return NO_TESTS
    failed = _failed(state, found, end, parts, text)
    if failed is None:
        return NO_TESTS
    return True, failed, name


def _summed_up(found: dict[str, Evidence], is_known: bool) -> tuple[str, str]:
    """One state for all: a failure anywhere is a failure; marks and weaker signs count if there is no summary."""
    summed = {name: one for name, one in found.items() if one.sums}
    named = {name: one for name, one in summed.items() if name != GENERIC}
    summed = named or summed
    for name, one in summed.items():
        if one.state == "fail":
            return "fail", name
    for name, one in found.items():
        if "fail" in one.seen or ("wfail" in one.seen and (not summed or is_known or name in summed)):
            return "fail", name
    if summed:
        return "pass", next(iter(summed))
    generic = {GENERIC: found[GENERIC]} if GENERIC in found else {}
    others = {name: one for name, one in found.items() if name != GENERIC}
    for state, weak in (("mark", others), ("none", others), ("mark", generic), ("none", generic), ("ok", found)):
        for name, one in weak.items():
            if one.state == state:
                return state, name
    return "", ""


def _failed(state: str, found: dict[str, Evidence], end: exits.Ending, parts: list[Part], text: str) -> bool | None:
    """None: nothing ran."""
    if state == "fail":
        summed = [one for one in found.values() if one.sums]
        is_inner = end.says == exits.PASSED and summed and not any("fail" in one.seen for one in found.values())
        if is_inner and _is_one_run(parts) and all(one.ends_well for one in summed):
            return False  # what failed was a run inside a test
        if list(found) == [GENERIC] and (end.says == exits.PASSED or _something_else_failed(parts, text)):
            return False  # a monorepo tool counts its tasks, not tests
        if "atching for file changes" in text or "aiting for file changes" in text:
            return not any(one.ends_well for one in found.values())
        return True
    if state == "mark":
        return None if _something_else_failed(parts, text) else end.says != exits.PASSED
    if state == "none":
        return None
    if state in ("", "ok") and end.says == exits.UNKNOWN and _is_unfinished(found, parts, text):
        return True
    if state in ("pass", "ok"):
        return _failed_after_all(state, end, text)
    if end.says == exits.FAILED:
        return True
    if end.says == exits.PASSED:
        return False
    if end.says == exits.PERHAPS and not end.is_last:
        return None if _something_else_failed(parts, text) else False
    if end.says == exits.PERHAPS:
        return True if _runner_failed(text) else None
    return _runner_failed(text) or _shows("crashes", text) or _counted(parts, text) or _has_last_words(parts, text)


def _is_unfinished(found: dict[str, Evidence], parts: list[Part], text: str) -> bool:
    """A framework began and its summary is missing though the end of the output is there, or it ends where an exception
    happened: it crashed or was killed."""
    if _is_filtered(parts, text) or "truncated" in text or any(one.sums for one in found.values()):
        return False
    return any("start" in one.seen for one in found.values()) or _shows("stack", text[-5000:])


def _is_filtered(parts: list[Part], text: str) -> bool:
    """Whether lines may be missing. `head -60` removes none if there are fewer."""
    filters = [part for part in parts if part.joint == "|" and base(part.words[0]) in _CHOOSY]
    heads = [int(part.words[-1].lstrip("-n") or 10) for part in filters if re.fullmatch(r"-?n?\d+", part.words[-1])]
    only_heads = all(part.words[0] == "head" for part in filters) and len(heads) == len(filters)
    return bool(filters) and not (only_heads and text.count("\n") + 1 < min(heads))


def _is_one_run(parts: list[Part]) -> bool:
    tests = [at for at, part in enumerate(parts) if part.role == TEST]
    return all(parts[at].joint == "&&" for at in tests[1:])


def _failed_after_all(state: str, end: exits.Ending, text: str) -> bool:
    """The framework reports success. Coverage, a crash at the end or a second step of the script may still have
    failed."""
    if end.code in _ENDED_FROM_OUTSIDE:
        return state == "ok" and end.says == exits.FAILED
    if end.says == exits.FAILED or (end.says == exits.PERHAPS and end.is_last):
        names = _names_that_failed(text)
        return not names or any(is_testy(name) for name in names)
    if end.says == exits.PASSED:
        return False
    return _shows("coverage", text) or _runner_failed(text) or (end.says == exits.UNKNOWN and _shows("crashes", text))


def _runs_nothing(text: str, end: exits.Ending, state: str, framework: str) -> bool:
    if end.code in (126, 127) or (end.code == 5 and framework in ("pytest", "unittest")):
        return True
    return state == "" and end.says != exits.PASSED and _shows("nothing", text)


def _runner_failed(text: str) -> bool:
    return any(True for _ in _matches("failed", text)) or any(is_testy(name) for name in _names_that_failed(text))


def _something_else_failed(parts: list[Part], text: str) -> bool:
    """A runner names what failed, and it is not a test. If only tests were requested, it failed on the way to them."""
    names = _names_that_failed(text)
    if not names or any(is_testy(name) for name in names):
        return False
    others = any(part.role not in (TEST, LOOK, TRIVIAL) for part in parts)
    return others or any(name in part.words for name in names for part in parts)


def _names_that_failed(text: str) -> list[str]:
    return [match[1] or "" for match in _matches("named", text)]


def _matches(section: str, text: str) -> "Iterator[re.Match[str]]":
    for line in _RUNNERS[section]:
        needle, _, pattern = line.partition("\t")
        if pattern and needle in text:
            yield from re.finditer(pattern, text, re.MULTILINE)


def _shows(section: str, text: str) -> bool:
    return re.search("|".join(filter(None, _RUNNERS[section])), text, re.MULTILINE) is not None


def _has_last_words(parts: list[Part], text: str) -> bool:
    """A program that ends with an exception. Filtered output does not say how it ended."""
    if _is_filtered(parts, text):
        return False
    lines = [line for line in text.splitlines() if line.strip()][-3:]
    return _shows("stack", text[-5000:]) or any(_shows("last-words", line.strip()) for line in lines)


def _counted(parts: list[Part], text: str) -> bool:
    """`T | grep -c FAIL`: the number is the only output."""
    last = parts[-1]
    if last.joint != "|" or last.words[0] not in ("grep", "egrep", "rg") or not text.strip().isdigit():
        return False
    wanted = " ".join(last.words[1:]).lower()
    counts = any(word.startswith("-") and "c" in word for word in last.words[1:])
    return counts and any(word in wanted for word in ("fail", "not ok", "error", "✗", "✖", "×")) and int(text) > 0
