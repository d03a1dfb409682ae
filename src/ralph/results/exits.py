"""What an exit code, or a command line's text about one, says about its test run."""

import re

from ralph.results.parts import Part
from ralph.results.vocabulary import LOOK, TEST, TRIVIAL, base

PASSED, FAILED, PERHAPS, UNKNOWN = "passed", "failed", "perhaps", ""
"""PERHAPS: something failed, but it may not have been the tests."""


class Ending:
    __slots__ = ("code", "is_last", "says")

    def __init__(self, says: str, code: int | None, is_last: bool) -> None:
        self.says = says
        self.code = code
        self.is_last = is_last
        """Nothing that can fail follows the tests."""


def ending(parts: list[Part], code: int | None, text: str) -> Ending:
    """The last test run of a command line."""
    at = max(index for index, part in enumerate(parts) if part.role == TEST)
    end = _told(parts, at, text) or _by_code(parts, at, code)
    if parts[at].is_negated:  # `if ! T; then …`
        end.says = {PASSED: FAILED, FAILED: PASSED}.get(end.says, UNKNOWN)
    return end


def _by_code(parts: list[Part], at: int, code: int | None) -> Ending:
    if code is None:
        return Ending(UNKNOWN, None, False)
    piped = _is_piped(parts, at)
    after = [part for part in parts[at + 1 :] if part.joint != "|"]
    if after and after[-1].words[:1] == ["exit"] and _kept_in(parts, at) in after[-1].words[1:2]:
        return Ending(PASSED if code == 0 else FAILED, code, True)  # `T; rc=$?; …; exit $rc`
    if parts[at].joint == "$" or parts[at].in_loop or any(part.joint in ("&", "$") for part in after):
        return Ending(UNKNOWN, code, False)
    strict = any(part.words[0] == "set" and any("e" in w for w in part.words[1:] if w[:1] == "-") for part in parts)
    if any(part.joint == ";" for part in after) and not strict:
        return Ending(UNKNOWN, code, False)
    if piped and not _has_pipefail(parts):
        return Ending(UNKNOWN, code, False)
    rescued = any(part.joint == "||" for part in after)
    harmless = all(part.role in (TRIVIAL, LOOK, TEST) for part in after)
    if code == 0:
        return Ending(UNKNOWN if rescued else PASSED, code, not after)
    before = _chained_before(parts, at)
    if rescued and after[0].joint == "&&":
        return Ending(PERHAPS, code, False)
    sure = (harmless or rescued) and _filters_never_fail(parts, at)
    sure = sure and all(part.role in (TRIVIAL, LOOK, TEST) for part in before)
    return Ending(FAILED if sure else PERHAPS, code, harmless)


def _kept_in(parts: list[Part], at: int) -> str:
    """The variable that keeps the exit code of the tests: `T; rc=$?`. Otherwise `$?` itself."""
    following = parts[at + 1].words if at + 1 < len(parts) else [""]
    name, equals, value = following[0].partition("=")
    return f"${name}" if equals and value == "$?" and len(following) == 1 else "$?"


def _chained_before(parts: list[Part], at: int) -> list[Part]:
    found = []
    for index in range(at, 0, -1):
        if parts[index].joint not in ("&&", "|"):
            break
        if parts[index].joint == "&&":
            found.append(parts[index - 1])
    return found


def _is_piped(parts: list[Part], at: int) -> bool:
    return at + 1 < len(parts) and parts[at + 1].joint == "|"


def _filters_never_fail(parts: list[Part], at: int) -> bool:
    """`tail` and similar do not fail; `grep` does when nothing matches."""
    for part in parts[at + 1 :]:
        if part.joint != "|":
            break
        if base(part.words[0]) not in ("tail", "tee", "cat", "sed", "awk", "cut", "sort", "tr", "nl", "ts", "less"):
            return False
    return True


def _has_pipefail(parts: list[Part]) -> bool:
    return any(part.words[0] == "set" and "pipefail" in part.words for part in parts)


def _told(parts: list[Part], at: int, text: str) -> Ending | None:
    """`T; echo "exit: $?"`, `T || echo FAILED`, `T && echo OK`: the text, if it was printed."""
    piped = _is_piped(parts, at)
    kept = _kept_in(parts, at)
    end = at + 1
    while end < len(parts) and parts[end].joint == "|":
        end += 1
    first = end + (kept != "$?")
    for index, part in enumerate(parts[end:], end):
        if part.words[0] not in ("echo", "printf"):
            if part.joint in (";", "&") and kept == "$?":
                break
            continue
        words = " ".join(word for word in part.words[1:] if not (word.startswith("-") and len(word) < 4))
        words = words.replace(kept, "$?").replace("${" + kept[1:] + "}", "$?")
        if "PIPESTATUS" in words.upper() or ("$?" in words and (not piped or _has_pipefail(parts))):
            if (code := _number_in(words, text)) is not None and (index == first or kept != "$?"):
                return Ending(PASSED if code == 0 else FAILED, code, True)
        elif piped or "$" in words:
            continue
        elif part.joint == "||" and _is_line(words, text):
            return Ending(FAILED, None, True)
        elif part.joint == "&&" and index == end and _is_line(words, text):
            return Ending(PASSED, 0, True)
    return None


def _number_in(template: str, text: str) -> int | None:
    """The number at the position of the tests' exit code in the template."""
    marks = r"\$\{?(?:PIPESTATUS|pipestatus)(?:\[\d\])?\}?|\$\?"
    pieces = re.split(marks, template.replace("\\n", ""), maxsplit=1)
    if len(pieces) < 2:
        return None
    head = re.sub(r"\\?\$\{?\w+\}?", ".*?", re.escape(pieces[0].strip())).replace(r"\ ", r"\s+")
    found = re.findall(rf"^.*?{head}\s*(\d+)", text, re.MULTILINE)
    return int(found[-1]) if found else None


def _is_line(words: str, text: str) -> bool:
    wanted = words.replace("\\n", "\n").strip()
    if not wanted:
        return False
    return any(line.strip() == wanted.split("\n")[-1].strip() for line in text.splitlines()[-5:])
