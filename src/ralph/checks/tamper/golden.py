"""Recorded results: snapshots, golden and approved files. Rewriting one makes its test pass, whatever the code does."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ralph.checks.tamper.evidence import Evidence, high_unless
from ralph.checks.tamper.paths import stem_words
from ralph.checks.tamper.values import FileChange, Finding

_WORD = re.compile(r"[^\W_]+")


def golden_findings(
    change: FileChange, old: str | None, new: str | None, evidence: Evidence, tests_gone: bool
) -> Iterator[Finding]:
    path = change.path
    if change.old is None:
        return  # recorded for the first time
    if change.new is None:
        asked = tests_gone or evidence.removal_is_asked_for(stem_words(path)) or evidence.story.renews_snapshots()
        yield Finding("snapshot-edited", path, 1, f"the recorded result {path} was removed", high_unless(asked))
        return
    if old is None or new is None:
        asked = evidence.story.renews_snapshots() or evidence.change_is_asked_for(stem_words(path))
        yield Finding("snapshot-edited", path, 1, f"the recorded result {path} was replaced", high_unless(asked))
        return
    before, after = [line.strip() for line in old.split("\n")], [line.strip() for line in new.split("\n")]
    lost = [line for line in before if line and line not in set(after)]
    if not lost:
        return  # only added to
    came = [(number, line) for number, line in enumerate(after, 1) if line and line not in set(before)]
    fresh = {word.lower() for _, line in came for word in _WORD.findall(line)} - {
        w.lower() for line in before for w in _WORD.findall(line)
    }
    said = bool(fresh) and all(word in evidence.story.words for word in fresh)
    asked = said or evidence.story.renews_snapshots() or evidence.change_is_asked_for(["_".join(stem_words(path))])
    line = came[0][0] if came else 1
    yield Finding(
        "snapshot-edited",
        path,
        line,
        f"the recorded result {path} was rewritten: `{lost[0][:60]}` was removed",
        high_unless(asked),
    )
