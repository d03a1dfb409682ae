"""Searches an output for the typical text of test frameworks: `signs.txt`, which explains what a sign is."""

import re

from ralph.guard.tables import load
from ralph.results.vocabulary import RELATED

_SIGNS = load("signs", __file__)
GENERIC = "generic"
_PUBLIC = {"tapjs": "tap", "junit-xml": "", GENERIC: ""}


class Evidence:
    __slots__ = ("seen", "sums")

    def __init__(self) -> None:
        self.sums: list[tuple[int, bool]] = []
        """The position of each summary, and whether it is a bad one."""
        self.seen: set[str] = set()
        """The meanings of all other signs that were found."""

    @property
    def state(self) -> str:
        if self.seen & {"fail", "wfail"} or any(bad for _, bad in self.sums):
            return "fail"
        if self.sums:
            return "pass"
        return next((meaning for meaning in ("mark", "none", "ok") if meaning in self.seen), "")

    @property
    def ends_well(self) -> bool:
        return bool(self.sums) and not max(self.sums)[1]


def scan(text: str, framework: str, is_test: bool) -> dict[str, Evidence]:
    """By framework. From a command not known to run tests, only summaries and plain statements are believed."""
    names = RELATED.get(framework) or ((framework,) if framework in _SIGNS else tuple(_SIGNS))
    names += ("junit-xml",) if "<testsuite" in text and "junit-xml" not in names else ()
    found: dict[str, Evidence] = {}
    for name in names:
        if name == GENERIC and any(one.sums for one in found.values()):
            continue  # a framework's own summary is better
        evidence = Evidence()
        for line in _SIGNS[name].split("\n"):
            meaning, _, sign = line.partition("\t")
            is_believed = meaning and (is_test or meaning in ("sum", "fail", "none"))
            if not is_believed or (meaning in ("own", "begun") and name != framework):
                continue
            needles, *patterns = sign.split("\t")
            if any(needle in text for needle in needles.split("¦")):
                _look(text, meaning, patterns, evidence)
        if "zero" in evidence.seen and not any(bad for _, bad in evidence.sums):
            evidence.sums, evidence.seen = [], {"none"}
        if evidence.state or "start" in evidence.seen:
            found[name] = evidence
    return found


def public_name(name: str) -> str:
    return _PUBLIC.get(name, name)


def _look(text: str, meaning: str, patterns: list[str], evidence: Evidence) -> None:
    pattern, *bad = patterns
    if pattern == "TAP":
        _look_at_tap(text, meaning, evidence)
    elif meaning in ("sum", "wsum"):
        for match in re.finditer(pattern, text, re.MULTILINE):
            evidence.sums.append((match.start(), bool(bad) and re.search(bad[0], match[0]) is not None))
    elif re.search(pattern, text, re.MULTILINE):
        evidence.seen.add({"own": "mark", "begun": "start"}.get(meaning, meaning))


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
    outermost = min((result[0] for result in results), default=0)
    plan = re.search(rf"^ {{0,{outermost}}}1\.\.([1-9]\d*)$", text, re.MULTILINE)
    failed = any(bad for level, bad, _ in results if level == outermost)
    if plan and plan.end() < min((at for *_, at in results), default=len(text)) and len(results) < int(plan[1]):
        evidence.seen.add("start")  # the plan came first, and not all of it was run
        plan = None
    if not results:
        return
    if meaning == "sum":
        if plan and re.search(r"^# (?:fail|pass) +\d", text, re.MULTILINE) is None:
            evidence.sums.append((results[-1][2], failed))
    elif failed == (meaning == "mark"):
        evidence.seen.add(meaning)
