"""Searches an output for the typical text of test frameworks.

A sign is a tuple: its meaning, a text that must occur (searched first, since that is cheap), a pattern for whole
lines, and for a summary the pattern that makes it a bad one (None: it is a good one; empty: a bad one).

    sum    the framework's own summary: enough to know that tests ran, whatever the command was
    wsum   a summary, believed only of a command that runs tests
    fail   a statement that tests failed, beside any summary
    wfail  the same, believed only of a command that runs tests
    mark   one failing test, believed when there is no summary
    own    the same, believed only when the command names this framework
    ok     one passing test, believed when there is no summary
    none   nothing was run
"""

import re

from ralph.hooks.results.signs_compiled import COMPILED
from ralph.hooks.results.signs_runners import GENERIC
from ralph.hooks.results.signs_scripting import SCRIPTING
from ralph.hooks.results.signs_web import WEB

Sign = tuple[str, str, str] | tuple[str, str, str, str | None]

ALL: dict[str, tuple[Sign, ...]] = {**WEB, **SCRIPTING, **COMPILED, "": GENERIC}

_RELATED = {
    "python": ("pytest", "unittest", "doctest", "tap", ""),
    "ruby": ("minitest", "rspec", "tap", ""),
    "pytest": ("pytest", "junit-xml"),
    "unittest": ("unittest", "pytest"),
    "doctest": ("doctest",),
    "jest": ("jest",),
    "vitest": ("vitest", "tap", "junit-xml", "jest"),
    "mocha": ("mocha", "tap", "junit-xml"),
    "node": ("node", "tap", "junit-xml"),
    "ava": ("ava", "tap"),
    "tap": ("tapjs", "tap"),
    "uvu": ("uvu",),
    "bats": ("bats", "tap"),
    "phpunit": ("phpunit", "pest"),
    "pest": ("pest", "phpunit"),
    "minitest": ("minitest", "rspec"),
    "rspec": ("rspec",),
    "prove": ("prove", "tap"),
    "busted": ("busted", "tap"),
    "maven": ("maven", "junit", "sbt"),
    "gradle": ("gradle", "junit"),
    "sbt": ("sbt", "junit"),
    "junit": ("junit", ""),
    "ctest": ("ctest", "gtest"),
    "karma": ("karma", "jasmine", "mocha"),
    "haskell": ("haskell",),
    "behat": ("cucumber",),
    "clojure": ("clojure",),
}
"""The framework of a command → whose signs to search for: its own if not listed, all if unknown."""

_UNNAMED = {"tapjs": "tap", "junit-xml": "", "behat": "cucumber", "gtest": "gtest"}


class Evidence:
    __slots__ = ("fails", "hints", "marks", "nothing", "oks", "sums")

    def __init__(self) -> None:
        self.sums: list[tuple[int, bool]] = []
        """The position of each summary, and whether it is a bad one."""
        self.fails = False
        self.hints = False
        """A statement that is only believed from a command that runs tests."""
        self.marks = False
        self.oks = False
        self.nothing = False

    @property
    def is_strong(self) -> bool:
        return bool(self.sums) or self.fails

    @property
    def state(self) -> str:
        if self.fails or self.hints or any(bad for _, bad in self.sums):
            return "fail"
        if self.sums:
            return "pass"
        if self.marks:
            return "marks"
        if self.nothing:
            return "none"
        return "ok" if self.oks else ""

    @property
    def ends_well(self) -> bool:
        return bool(self.sums) and not max(self.sums)[1]


def scan(text: str, framework: str, is_test: bool) -> dict[str, Evidence]:
    """By framework. From a command not known to run tests, only summaries and plain statements are believed."""
    names = _RELATED.get(framework) or ((framework,) if framework and framework in ALL else tuple(ALL))
    found: dict[str, Evidence] = {}
    for name in names:
        evidence = Evidence()
        for sign in ALL[name]:
            is_believed = is_test or sign[0] in ("sum", "fail", "none")
            if sign[1] in text and is_believed and (sign[0] != "own" or name == framework):
                _look(text, sign, evidence)
        if evidence.state:
            found[name] = evidence
    return found


def public_name(name: str) -> str:
    return _UNNAMED.get(name, name)


def _look(text: str, sign: Sign, evidence: Evidence) -> None:
    meaning, pattern = sign[0], sign[2]
    if pattern == "TAP":
        _look_at_tap(text, meaning, evidence)
        return
    flags = re.MULTILINE
    if meaning in ("sum", "wsum"):
        bad = sign[3] if len(sign) > 3 else None
        for match in re.finditer(pattern, text, flags):
            evidence.sums.append((match.start(), bad is not None and re.search(bad, match[0]) is not None))
    elif re.search(pattern, text, flags) is None:
        return
    elif meaning == "fail":
        evidence.fails = True
    elif meaning == "wfail":
        evidence.hints = True
    elif meaning in ("mark", "own"):
        evidence.marks = True
    elif meaning == "ok":
        evidence.oks = True
    else:
        evidence.nothing = True


def _look_at_tap(text: str, meaning: str, evidence: Evidence) -> None:
    """Only results of the outermost level count; a TODO or SKIP is not a failure."""
    results = [
        (
            len(match[1]),
            bool(match[2]) and re.search(r"#\s*(?:todo|skip)", match[3], re.IGNORECASE) is None,
            match.start(),
        )
        for match in re.finditer(r"^( *)(not )?ok\b(?= \d+| - )(.*)$", text, re.MULTILINE)
    ]
    if not results:
        return
    outermost = min(result[0] for result in results)
    failed = any(bad for level, bad, _ in results if level == outermost)
    if meaning == "sum":
        if re.search(r"^# fail +\d", text, re.MULTILINE) is None and re.search(
            r"^ *1\.\.\d+|^TAP version \d+", text, re.MULTILINE
        ):
            evidence.sums.append((results[-1][2], failed))
    elif meaning == "mark":
        evidence.marks = evidence.marks or failed
    else:
        evidence.oks = evidence.oks or not failed
