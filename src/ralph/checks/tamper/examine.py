"""Tamper analysis: what an agent did to the tests, and to what runs them, between the checkpoint and now. Pure.

`examine` reports what looks like cheating. `tests_to_put_back` names the test files to run again in their old
version, and `new_tests` the ones that have to fail on the old code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from msgspec import structs

from ralph.checks.tamper.check_files import check_file_findings
from ralph.checks.tamper.commands import Used, used_by
from ralph.checks.tamper.comparing import Comparison
from ralph.checks.tamper.disguise import answer_findings, detection_findings
from ralph.checks.tamper.evidence import Evidence
from ralph.checks.tamper.foreign import foreign_findings, lost_lines, parked_at
from ralph.checks.tamper.globs import matches
from ralph.checks.tamper.golden import golden_findings
from ralph.checks.tamper.pairing import pair_up, runs
from ralph.checks.tamper.paths import is_collected, is_golden, is_test_file, language_of, stem_words
from ralph.checks.tamper.reading import Read, is_any_test, is_broken, is_foreign_test, read_all, test_files, unreadable
from ralph.checks.tamper.runner import forgery_findings, shim_findings
from ralph.checks.tamper.settings import Table, kind_of, settings_of
from ralph.checks.tamper.source import squeezed
from ralph.checks.tamper.story import StoryWords
from ralph.checks.tamper.strictness import loosened
from ralph.checks.tamper.suppressions import suppression_findings
from ralph.checks.tamper.values import FileChange, Finding
from ralph.core.text import one_line

__all__ = ["FileChange", "Finding", "examine", "is_test_file", "new_tests", "tests_to_put_back"]

_MOST_FINDINGS = 300
_LONGEST_MESSAGE = 240


def examine(
    changes: Sequence[FileChange],
    *,
    story_text: str = "",
    check_commands: Sequence[str] = (),
    protected: Sequence[str] = (),
) -> tuple[Finding, ...]:
    """Findings, most severe first. Never raises, whatever the files contain."""
    reads = read_all(changes)
    used = used_by(check_commands)
    code = [read.change for read in reads if not is_test_file(read.path)]
    evidence = Evidence(StoryWords.of(story_text), code)
    found: list[Finding] = []
    found += [
        Finding("protected-touched", read.path, 1, f"{read.path} is protected and was changed", "high")
        for read in reads
        if any(matches(read.path, pattern) for pattern in protected)
    ]
    found += _safely("", lambda: _tests(reads, evidence))
    for read in reads:
        found += _safely(read.path, lambda read=read: _one_file(read, used, evidence, reads))  # type: ignore[misc]
    found += _safely("", lambda: _settings(reads, evidence))
    found += suppression_findings(
        [(r.path, r.old or "", r.new, r.added) for r in reads if r.new is not None and language_of(r.path)]
    )
    return _ordered(found)


def _safely(path: str, look: Callable[[], Iterator[Finding]]) -> list[Finding]:
    """A file nested too deeply to parse is not a reason to stop."""
    try:
        return list(look())
    except RecursionError:
        return [
            Finding(
                "not-examined", path, 1, "nested too deeply to examine", "low" if not is_test_file(path) else "high"
            )
        ]


def _ordered(found: Sequence[Finding]) -> tuple[Finding, ...]:
    first: dict[tuple[str, str, int], Finding] = {}
    for finding in sorted(found, key=lambda finding: finding.severity):
        first.setdefault((finding.code, finding.path, finding.line), finding)
    chosen = sorted(first.values(), key=lambda f: (f.severity, f.path, f.line, f.code))[:_MOST_FINDINGS]
    # They quote files, and end on a terminal, in a log and in a prompt.
    return tuple(structs.replace(finding, message=one_line(finding.message, _LONGEST_MESSAGE)) for finding in chosen)


def _tests(reads: Sequence[Read], evidence: Evidence) -> Iterator[Finding]:
    by_path = {read.path: read for read in reads}
    files = test_files(reads)
    for file in files:
        yield from unreadable(by_path[file.path], file)
    whole = [file for file in files if not is_broken(by_path[file.path], file)]
    comparison = Comparison(whole, evidence)
    for finding in comparison.findings():
        parked = parked_at(by_path[finding.path], reads) if finding.code == "test-file-deleted" else ""
        if parked:
            message = f"{finding.path} was moved to {parked}, where its tests are not collected"
            yield Finding("test-file-not-collected", parked, 1, message, "high")
        else:
            yield finding
    asserted = comparison.asserted()
    for read in reads:
        if language_of(read.path):
            yield from answer_findings(read.path, read.old, read.new, read.added, asserted)


def _one_file(read: Read, used: Used, evidence: Evidence, reads: Sequence[Read]) -> Iterator[Finding]:
    path, old, new = read.path, read.old, read.new
    yield from shim_findings(path, read.change.old, read.change.new, used)
    if is_golden(path):
        if not _moved(read, reads):
            stems = {stem_words(other.path) for other in reads if other.change.new is None and is_collected(other.path)}
            yield from golden_findings(read.change, old, new, evidence, stem_words(path) in stems)
        return
    if not _moved(read, reads):
        yield from foreign_findings(read, evidence)
    yield from check_file_findings(path, old, new, used, evidence)
    yield from forgery_findings(path, old, new, read.added)
    yield from detection_findings(path, old, new, read.added)
    if (
        new is not None
        and "PYTEST_ADDOPTS" in new
        and "PYTEST_ADDOPTS" not in (old or "")
        and not path.endswith((".md", ".rst"))
    ):
        yield Finding("tests-narrowed", path, 1, "PYTEST_ADDOPTS passes hidden options to pytest", "high")


def _moved(read: Read, reads: Sequence[Read]) -> bool:
    """The same content is in a new file."""
    return read.change.new is None and any(
        other.change.old is None and other.change.new == read.change.old and is_test_file(other.path) for other in reads
    )


def _settings(reads: Sequence[Read], evidence: Evidence) -> Iterator[Finding]:
    """Settings of one folder together, because they may move from one file to another."""
    folders: dict[str, tuple[Table, Table]] = {}
    fresh = {}
    for read in reads:
        if kind_of(read.path) is None:
            continue
        fresh[read.path] = read.change.old is None
        old, new = folders.setdefault(read.path.rpartition("/")[0], ({}, {}))
        old |= settings_of(read.path, read.old) if read.old else {}
        new |= settings_of(read.path, read.new) if read.new else {}
    for old, new in folders.values():
        yield from loosened(old, new, evidence, fresh)


def tests_to_put_back(changes: Sequence[FileChange]) -> tuple[str, ...]:
    """Test files that changed since the checkpoint: with the old version restored, an edited expectation shows.

    Except files that only gained tests, and files that were moved as a whole.
    """
    reads = read_all(changes)
    files = {file.path: file for file in test_files(reads)}
    pairs = pair_up(list(files.values())).pairs
    touched = {
        pair.old.path
        for pair in pairs
        if pair.new is None or pair.new.body != pair.old.body or pair.new.marks != pair.old.marks
        or (pair.new.path == pair.old.path and pair.new.source != pair.old.source)
    }  # fmt: skip
    found = []
    for read in reads:
        if read.change.old is None or not (is_test_file(read.path) or is_foreign_test(read.path)):
            continue
        file = files.get(read.path)
        if not is_any_test(read.path):
            changed = lost_lines(read.old, read.new) and not _moved(read, reads)
        elif file is None or file.old is None:
            changed = read.old is None or read.new is None or squeezed(read.old) != squeezed(read.new)
        else:
            marks = list(file.new.marks) if file.new else []
            changed = read.path in touched or (
                read.change.new is not None and (file.new is None or marks != list(file.old.marks))
            )
        if changed:
            found.append(read.path)
    return tuple(sorted(found))


def new_tests(changes: Sequence[FileChange]) -> tuple[str, ...]:
    """Test files with tests that did not exist before, here or elsewhere: each has to fail on the old code."""
    reads = read_all(changes)
    fresh = {
        outline.path for outline in pair_up(test_files(reads)).fresh if runs(outline) and is_test_file(outline.path)
    }
    foreign = {read.path for read in reads if read.change.old is None and is_foreign_test(read.path)}
    return tuple(sorted(fresh | foreign))
