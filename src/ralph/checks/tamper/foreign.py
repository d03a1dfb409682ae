"""Test files in languages that are not parsed here, and test data: what can be said without parsing them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from ralph.checks.tamper.evidence import Evidence, high_unless
from ralph.checks.tamper.paths import is_test_file, language_of, stem_words
from ralph.checks.tamper.reading import Read, is_any_test, is_foreign_test
from ralph.checks.tamper.source import squeezed
from ralph.checks.tamper.values import Finding

_CLAIMS = re.compile(r"\b\w*(?:assert|expect|should|Then|refute|verify|check_that)\w*", re.IGNORECASE)
_SKIPS = re.compile(r"@(?:skip|ignore|wip|pending|tag\s+:skip)\b|\b(?:skip|xit|pending)\b", re.IGNORECASE)
_PROSE = (".md", ".rst", ".txt", ".adoc")


def foreign_findings(read: Read, evidence: Evidence) -> Iterator[Finding]:
    path, old, new = read.path, read.old, read.new
    if read.change.old is None or language_of(path):
        return
    if is_foreign_test(path):
        asked = evidence.removal_is_asked_for(stem_words(path))
        if read.change.new is None:
            yield Finding("test-file-deleted", path, 1, f"{path} is gone", high_unless(asked))
        elif old is not None and new is not None:
            yield from _shrunk(path, old, new, high_unless(asked) == "low")
    elif is_test_file(path) and not path.endswith(_PROSE) and lost_lines(old, new):
        yield Finding(
            "test-data-edited",
            path,
            1,
            f"{path}, which tests use, was {'changed' if read.change.new is not None else 'removed'}",
            "low",
        )


def _shrunk(path: str, old: str, new: str, asked: bool) -> Iterator[Finding]:
    severity = high_unless(asked)
    if len(squeezed(old)) > 40 and len(squeezed(new)) * 5 < len(squeezed(old)):
        yield Finding("test-file-emptied", path, 1, f"{path} is now nearly empty", severity)
        return
    if len(_CLAIMS.findall(new)) < len(_CLAIMS.findall(old)):
        yield Finding("assertion-removed", path, 1, f"{path} has fewer assertions than before", severity)
    if len(_SKIPS.findall(new)) > len(_SKIPS.findall(old)):
        yield Finding("test-skipped", path, 1, f"{path} skips more than before", severity)


def lost_lines(old: str | None, new: str | None) -> bool:
    """Something was removed. Unreadable: cannot be determined, so yes."""
    if old is None or new is None:
        return True
    before = Counter(line.strip() for line in old.split("\n") if line.strip())
    return bool(before - Counter(line.strip() for line in new.split("\n")))


def parked_at(read: Read, others: Sequence[Read]) -> str:
    """Where the text of a deleted test file went, if no runner looks there: `test_a.py` → `test_a.py.bak`."""
    if read.old is None or read.change.new is not None:
        return ""
    lines = {line.strip() for line in read.old.split("\n") if line.strip()}
    for other in others:
        if other.change.old is not None or other.new is None or is_any_test(other.path) or not lines:
            continue
        same = sum(1 for line in {line.strip() for line in other.new.split("\n")} if line in lines)
        if same * 10 >= len(lines) * 7:
            return other.path
    return ""
