"""Puts together what the command is, what its output says, and how it ended."""

from ralph.hooks.results import exits
from ralph.hooks.results.kinds import LOOK, TEST, TRIVIAL, UNKNOWN
from ralph.hooks.results.names import is_testy
from ralph.hooks.results.programs import kind
from ralph.hooks.results.screen import clean
from ralph.hooks.results.shell import Part, split
from ralph.hooks.results.signs import Evidence, public_name, scan
from ralph.hooks.results.signs_runners import CRASHES, FAILED, LAST_WORDS, NAMED, NOTHING
from ralph.hooks.results.wrappers import unwrapped

Verdict = tuple[bool, bool, str]
"""Whether tests ran, whether they failed, and the framework."""

NO_TESTS: Verdict = (False, False, "")
_ENDED_FROM_OUTSIDE = (124, 130, 137, 143)
_DEEPEST = 4
_FAMILIES = ("python", "ruby", "junit")
"""Only the output tells which framework of these it was."""


def judge(command: str, output: str, code: int | None) -> Verdict:
    parts = roles(command)
    code, output = _told_by_client(output, code)
    if command.strip() and not any(part.role in (TEST, UNKNOWN) for part in parts):
        return NO_TESTS
    text = clean(output)
    tests = [part for part in parts if part.role == TEST]
    if not tests:
        return _of_unknown(text, is_blind=not command.strip())
    return _of_tests(parts, tests, text, code)


def roles(command: str, depth: int = 0) -> list[Part]:
    """The parts of a command line with the role of each; `part.text` of a test run names its framework."""
    out: list[Part] = []
    for part in split(command):
        words, inner = unwrapped(part.words)
        if inner and depth < _DEEPEST:
            nested = roles(inner, depth + 1)
            if nested:
                nested[0].joint = part.joint
                out += nested
            continue
        part.role, part.text = kind(words)
        part.words = words or part.words
        out.append(part)
    return out


def _told_by_client(output: str, code: int | None) -> tuple[int | None, str]:
    """A client that tells the hook of a failure puts the code on the first line of the output."""
    if not output.startswith("Exit code "):
        return code, output
    line, _, rest = output.partition("\n")
    number = line[len("Exit code ") :].strip()
    return (int(number), rest) if number.isdigit() and len(number) < 4 else (code, output)


def _of_unknown(text: str, is_blind: bool) -> Verdict:
    """A command that may be anything: only a framework's own summary counts. Without a command, its marks do, too."""
    found = scan(text, "", is_test=is_blind)
    found.pop("", None)
    told = {name: one for name, one in found.items() if one.is_strong or (is_blind and one.marks)}
    if not told:
        return NO_TESTS
    failed = [name for name, one in told.items() if one.state in ("fail", "marks")]
    return True, bool(failed), public_name((failed or list(told))[0])


def _of_tests(parts: list[Part], tests: list[Part], text: str, code: int | None) -> Verdict:
    frameworks = list(dict.fromkeys(part.text for part in tests))
    found: dict[str, Evidence] = {}
    for framework in frameworks:
        found.update(scan(text, framework, is_test=True))
    if len(tests) == 1 and tests[0].text == "pytest" and "pytest" in found and not _is_loop(parts):
        found["pytest"].sums = sorted(found["pytest"].sums)[
            -1:
        ]  # one run has one summary, the last; others were printed in it
    is_known = all(framework not in ("", "make", "rake") for framework in frameworks)
    state, name = _summed_up(found, is_known)
    if is_known and len(frameworks) == 1 and frameworks[0] not in _FAMILIES:
        name = frameworks[0]
    name = public_name(name) or next((one for one in frameworks if one), "") or _runner(tests[0])
    end = exits.ending(parts, code, text)
    if state in ("", "marks") and _runs_nothing(text, end, state):
        return NO_TESTS
    failed = _failed(state, found, end, parts, text)
    if failed is None:
        return NO_TESTS
    return True, failed, name


def _summed_up(found: dict[str, Evidence], is_known: bool) -> tuple[str, str]:
    """One state for all: a failure anywhere is a failure; marks and lesser words count when nobody sums up."""
    summed = {name: one for name, one in found.items() if one.sums}
    named = {name: one for name, one in summed.items() if name}
    summed = named or summed
    for name, one in summed.items():
        if one.state == "fail":
            return "fail", name
    for name, one in found.items():
        if one.fails and (not summed or is_known or name in summed):
            return "fail", name
    if summed:
        return "pass", next(iter(summed))
    for state in ("marks", "none", "ok"):
        for name, one in found.items():
            if one.state == state and (name or state != "none"):
                return state, name
    return "", ""


def _failed(state: str, found: dict[str, Evidence], end: exits.Ending, parts: list[Part], text: str) -> bool | None:
    """None: nothing ran."""
    if state == "fail":
        summed = [one for one in found.values() if one.sums]
        if end.says == exits.PASSED and _is_one_run(parts) and summed and all(one.ends_well for one in summed):
            return False  # what failed was a run inside of a test
        if "atching for file changes" in text or "aiting for file changes" in text:
            return not any(one.ends_well for one in found.values())
        return True
    if state == "marks":
        return None if _something_else_failed(parts, text) else end.says != exits.PASSED
    if state == "none":
        return None
    if state in ("pass", "ok"):
        return _failed_after_all(state, end, parts, text)
    if end.says == exits.FAILED:
        return True
    if end.says == exits.PASSED:
        return False
    if end.says == exits.PERHAPS and not end.is_last:
        return None if _something_else_failed(parts, text) else False
    if end.says == exits.PERHAPS:
        return True if _runner_failed(text) else None
    return _runner_failed(text) or _crashed(text) or _counted(parts, text) or _has_last_words(text)


def _is_loop(parts: list[Part]) -> bool:
    return any(part.words[0] in ("for", "while", "until", "xargs", "find", "seq") for part in parts)


def _is_one_run(parts: list[Part]) -> bool:
    tests = [at for at, part in enumerate(parts) if part.role == TEST]
    return all(parts[at].joint == "&&" for at in tests[1:])


def _failed_after_all(state: str, end: exits.Ending, parts: list[Part], text: str) -> bool:
    """The framework is content. Coverage, a crash at the end or a second step of the script may still have failed."""
    if end.code in _ENDED_FROM_OUTSIDE:
        return state == "ok" and end.says == exits.FAILED
    if end.says == exits.FAILED or (end.says == exits.PERHAPS and end.is_last):
        return not _something_else_failed(parts, text)
    if end.says == exits.PASSED:
        return False
    return _runner_failed(text) or (end.says == exits.UNKNOWN and _crashed(text))


def _runs_nothing(text: str, end: exits.Ending, state: str) -> bool:
    import re

    if end.code in (126, 127):
        return True
    return state == "" and end.says != exits.PASSED and re.search(NOTHING, text, re.MULTILINE) is not None


def _runner_failed(text: str) -> bool:
    import re

    if any(needle in text and re.search(pattern, text, re.MULTILINE) for needle, pattern in FAILED):
        return True
    return any(is_testy(name) for name in _names_that_failed(text))


def _something_else_failed(parts: list[Part], text: str) -> bool:
    """A runner names what failed, and it is no test. Where only tests were asked for, it was on the way to them."""
    if all(part.role in (TEST, LOOK, TRIVIAL) for part in parts):
        return False
    names = _names_that_failed(text)
    return bool(names) and not any(is_testy(name) for name in names)


def _names_that_failed(text: str) -> list[str]:
    import re

    return [
        match[1] or ""
        for needle, pattern in NAMED
        if needle in text
        for match in re.finditer(pattern, text, re.MULTILINE)
    ]


def _crashed(text: str) -> bool:
    import re

    return re.search(CRASHES, text, re.MULTILINE) is not None


def _has_last_words(text: str) -> bool:
    import re

    lines = [line for line in text.splitlines() if line.strip()][-3:]
    return any(re.search(LAST_WORDS, line.strip()) for line in lines)


def _counted(parts: list[Part], text: str) -> bool:
    """`T | grep -c FAIL`: the number is all there is."""
    last = parts[-1]
    if last.joint != "|" or last.words[0] not in ("grep", "egrep", "rg") or not text.strip().isdigit():
        return False
    wanted = " ".join(last.words[1:]).lower()
    counts = any(word.startswith("-") and "c" in word for word in last.words[1:])
    return counts and any(word in wanted for word in ("fail", "not ok", "error", "✗", "✖", "×")) and int(text) > 0


def _runner(part: Part) -> str:
    from ralph.hooks.results.wrappers import base

    name = base(part.words[0])
    return "" if name == "run-script" else name
