"""A proof as commit trailers: what remains of it where the state folder is missing. Pure.

Ralph-Agent: codex Ralph-Model: gpt-5.5 (who did it, and what its client says or was told about the model)
Ralph-Plan: .ralph/shop/prd.json Ralph-Verdict: done Ralph-Tree: 4b825dc642cb Ralph-Check-Set: 9f86d081884c7d65
Ralph-Check: passed exit=0 time=1.24s output=e3b0c44298fc pytest -q Ralph-Checks: 14 run, 14 passed, 4 not listed
Ralph-Grade: witnessed Ralph-Witness: tests/test_a.py::test_b Ralph-Proof: checkout
Ralph-Agent-Commit: 1b2c… (full IDs, oldest first): the agent's own commits that this proof covers
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from ralph.core.evidence import CheckResult, Evidence
from ralph.core.lazy_pattern import lazy_pattern
from ralph.core.text import one_line
from ralph.core.verdict import Verdict

DONE = "done"
PLAN, VERDICT, TREE, CHECK_SET = "Ralph-Plan", "Ralph-Verdict", "Ralph-Tree", "Ralph-Check-Set"
CHECK, CHECKS = "Ralph-Check", "Ralph-Checks"
AGENT_COMMIT = "Ralph-Agent-Commit"
AGENT, MODEL = "Ralph-Agent", "Ralph-Model"
GRADE, WITNESS, WHERE = "Ralph-Grade", "Ralph-Witness", "Ralph-Proof"
_MOST_WITNESSES = 3
_MOST_CHECKS = 10
_MOST_COMMITS = 50
_SHORT = 12
_LONGEST_NAME = 100
_WORDS = {(True, True): "passed", (True, False): "failed", (False, True): "passed,allowed", (False, False): "allowed"}
_LINE = lazy_pattern(
    r"(?P<word>passed|failed|passed,allowed|allowed) exit=(?P<code>-?\d+|none) time=(?P<seconds>[\d.]+)s"
    r" output=(?P<digest>[0-9a-f]+|none) (?P<name>.+)"
)

Trailers = dict[str, tuple[str, ...]]


def written(evidence: Evidence, verdict: Verdict, tree: str, plan: str, commits: Sequence[str] = ()) -> Trailers:
    """Trailers for the commit of work that is kept. Each value is one line, whatever the name of a check.

    `commits`: those the agent made itself.
    """
    found: Trailers = {VERDICT: (DONE if verdict.completes else verdict.kind.value,)}
    if plan:
        found = {PLAN: (one_line(plan),)} | found
    who = {AGENT: evidence.outcome.agent, MODEL: evidence.outcome.model}
    found |= {key: (one_line(name, _LONGEST_NAME),) for key, name in who.items() if name.strip()}
    if commits:
        found |= {AGENT_COMMIT: tuple(commits[-_MOST_COMMITS:])}
    found |= {GRADE: (verdict.grade,)} if verdict.grade else {}
    if (proof := evidence.proof) is not None:
        names = [one_line(witness.name, _LONGEST_NAME) for witness in proof.witnesses[:_MOST_WITNESSES]]
        found |= {WITNESS: tuple(names)} if names else {}
        found |= {WHERE: (proof.where,)}
    checks = evidence.checks
    if not checks:
        return found
    found |= {TREE: (tree[:_SHORT],)}
    found |= {CHECK_SET: (evidence.check_set,)} if evidence.check_set else {}
    found |= {CHECK: tuple(_line(check) for check in checks[:_MOST_CHECKS])}
    passed = sum(check.passed for check in checks)
    more = f", {len(checks) - _MOST_CHECKS} not listed" if len(checks) > _MOST_CHECKS else ""
    return found | {CHECKS: (f"{len(checks)} run, {passed} passed{more}",)}


def _line(check: CheckResult) -> str:
    word = _WORDS[check.required, check.passed]
    code = "none" if check.code is None else str(check.code)
    name = one_line(check.name, _LONGEST_NAME) or "unnamed"
    return f"{word} exit={code} time={check.seconds:.2f}s output={check.digest[:_SHORT] or 'none'} {name}"


def read_checks(trailers: Mapping[str, Sequence[str]]) -> tuple[CheckResult, ...]:
    """The checks that a commit lists, without their commands and output."""
    return tuple(_read(found) for line in trailers.get(CHECK, ()) if (found := _LINE.fullmatch(line)))


def _read(found: re.Match[str]) -> CheckResult:
    code, digest = found["code"], found["digest"]
    return CheckResult(
        name=found["name"],
        command="",
        passed=found["word"].startswith("passed"),
        code=None if code == "none" else int(code),
        seconds=float(found["seconds"]),
        digest="" if digest == "none" else digest,
        required="allowed" not in found["word"],
    )


def unlisted(trailers: Mapping[str, Sequence[str]]) -> int:
    """How many checks ran that the commit does not list."""
    counted = re.search(r"(\d+) not listed", " ".join(trailers.get(CHECKS, ())))
    return int(counted[1]) if counted else 0


def parsed(lines: Iterable[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in lines:
        name, colon, value = line.partition(": ")
        if colon:
            found.setdefault(name, []).append(value.strip())
    return found
