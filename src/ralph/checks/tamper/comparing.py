"""All test files of a change, old and new versions side by side."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ralph.checks.tamper.evidence import Evidence, high_unless
from ralph.checks.tamper.pairing import Pair, Pairing, TestFile, pair_up, runs
from ralph.checks.tamper.paths import is_collected, stem_words, words_of
from ralph.checks.tamper.replacing import autouse_mocks, mocked, replaced_imports
from ralph.checks.tamper.suite import Assertion, Case, Fate, Mark, Outline, Suite, Tokens, literals, names, shape
from ralph.checks.tamper.values import Finding
from ralph.checks.tamper.weakening import Difference, Pool, difference, weakened

_SET_UP = ("setUp", "setUpClass", "setup_method", "setup_class", "setup_module", "setUpModule", "asyncSetUp")


class Comparison:
    def __init__(self, files: Sequence[TestFile], evidence: Evidence) -> None:
        self._files = files
        self._evidence = evidence
        self._old = {file.path: file.old for file in files if file.old}
        self._new = {file.path: file.new for file in files if file.new}
        self.pairing: Pairing = pair_up(files)
        self._fresh = [self._case(self._new, outline) for outline in self.pairing.fresh]
        changed = [pair for pair in self.pairing.pairs if pair.new is not None and _may_differ(pair.old, pair.new)]
        self._differences = [self._difference(pair) for pair in changed]
        self._pool = self._make_pool()
        self._taken: set[Outline] = set()

    def _case(self, suites: dict[str, Suite], outline: Outline) -> Case:
        return suites[outline.path].case(outline)

    def _difference(self, pair: Pair) -> Difference:
        assert pair.new is not None
        return difference(self._case(self._old, pair.old), self._case(self._new, pair.new))

    def _make_pool(self) -> Pool:
        gained = [assertion for found in self._differences for assertion in found.gained if runs(found.new.outline)]
        gained += [assertion for case in self._fresh if runs(case.outline) for assertion in case.assertions]
        helpers = {}
        for case in (*self._fresh, *(found.new for found in self._differences)):
            if not case.outline.is_test and case.assertions:
                values = frozenset(token for a in case.assertions for token in literals(a.tokens))
                helpers[case.outline.name.rpartition(".")[2]] = values
        return Pool(gained, helpers)

    def asserted(self) -> list[frozenset[str]]:
        """The literals of every assertion that was examined."""
        cases = [*self._fresh, *(found.new for found in self._differences), *(found.old for found in self._differences)]
        return [frozenset(literals(assertion.tokens)) for case in cases for assertion in case.assertions]

    def findings(self) -> Iterator[Finding]:
        for found in self._differences:
            yield from self._changed(found)
        yield from self._gone()
        for case in self._fresh:
            yield from self._added(case)
        for file in self._files:
            yield from self._whole(file)

    def _changed(self, found: Difference) -> Iterator[Finding]:
        old, new = found.old, found.new
        path = new.outline.path
        yield from _new_marks(old.marks, new.marks, path, new.outline, self._evidence)
        told = list(weakened(found, self._pool, self._evidence))
        live = [a for a in new.assertions if a.fate <= Fate.CONDITIONAL]
        if not old.assertions and old.calls and not new.calls and not new.assertions and new.outline.is_test:
            told.append(
                Finding("test-emptied", path, new.outline.line, f"{new.outline.name} no longer does anything", "high")
            )
        yield from told
        yield from mocked(old, new)
        if not told and new.outline.is_test:
            yield from self._data(found, live)

    def _data(self, found: Difference, live: Sequence[Assertion]) -> Iterator[Finding]:
        """The assertions are the same; their data may not be."""
        outline = found.new.outline
        for row, other in _lost_rows(found.old.data, found.new.data):
            if other is None:
                name = f"a row of {outline.name} was removed: {' '.join(row)[:60]}"
                asked = self._evidence.removal_is_asked_for([*words_of(outline.name), *_row_words(row)])
                yield Finding("test-removed", outline.path, outline.line, name, high_unless(asked))
            else:
                asked = self._evidence.story.expects(
                    literals(other), literals(row)
                ) or self._evidence.change_is_asked_for([outline.name, "_".join(stem_words(outline.path))])
                message = f"{outline.name}: `{' '.join(row)[:60]}` became `{' '.join(other)[:60]}`"
                yield Finding("expected-edited", outline.path, outline.line, message, high_unless(asked))
        lost = [token for token in found.old.loose if token not in found.new.loose and token not in _used(live)]
        if lost and live:
            shown = ", ".join(token.lstrip("'") for token in lost[:3])[:60]
            message = f"{outline.name} uses different data than before ({shown} was removed)"
            yield Finding("test-data-edited", outline.path, outline.line, message, "low")

    def _gone(self) -> Iterator[Finding]:
        by_path: dict[str, list[Pair]] = {}
        for pair in self.pairing.pairs:
            if pair.new is None:
                by_path.setdefault(pair.old.path, []).append(pair)
        for path, pairs in by_path.items():
            findings = [finding for pair in pairs for finding in self._gone_one(pair)]
            whole = self._whole_file(path, pairs, findings)
            if whole is not None:
                yield whole
            else:
                yield from findings

    def _whole_file(self, path: str, pairs: Sequence[Pair], findings: Sequence[Finding]) -> Finding | None:
        """One finding for a removed file, instead of one for each of its tests."""
        file = next(file for file in self._files if file.path == path)
        removed = [finding for finding in findings if finding.code in ("test-removed", "test-not-collected")]
        if file.unchanged or not removed or len(removed) < len(file.old_tests()) or file.new_tests():
            return None
        elsewhere = next((pair.left for pair in pairs if pair.left is not None and pair.left.path != path), None)
        if elsewhere is not None:
            message = f"{path} was moved to {elsewhere.path}, where its tests are not collected"
            return Finding("test-file-not-collected", elsewhere.path, 1, message, "high")
        if file.new is not None and any(pair.left is not None for pair in pairs):
            return None
        about = [*stem_words(path)]
        severity = high_unless(self._evidence.removal_is_asked_for(about))
        count = f"{len(removed)} test{'s' if len(removed) > 1 else ''}"
        if file.new is None:
            return Finding("test-file-deleted", path, 1, f"{path} was removed, with {count}", severity)
        return Finding("test-file-emptied", path, 1, f"{path} has no tests left; it had {count}", severity)

    def _gone_one(self, pair: Pair) -> Iterator[Finding]:
        old = self._case(self._old, pair.old)
        live = [assertion for assertion in old.assertions if assertion.fate <= Fate.CONDITIONAL]
        if pair.left is not None:
            where = pair.left.name if pair.left.path == pair.old.path else f"{pair.left.path}: {pair.left.name}"
            message = f"{pair.old.name} is no longer collected as a test ({where})"
            yield Finding("test-not-collected", pair.left.path, pair.left.line, message, "high")
            return
        other = self._alike(old)
        if live and other is None and self._pool.has_all(live):
            return
        if other is not None:
            self._taken.add(other.outline)
            yield from _new_marks(old.marks, other.marks, other.outline.path, other.outline, self._evidence)
            yield from weakened(difference(old, other), self._pool, self._evidence)
            return
        about = [*words_of(pair.old.name), *stem_words(pair.old.path)]
        severity = high_unless(self._evidence.removal_is_asked_for(about))
        yield Finding("test-removed", pair.old.path, pair.old.line, f"{pair.old.name} is gone", severity)

    def _alike(self, old: Case) -> Case | None:
        """A new test in the same file with the same or nearly the same assertions: the old one was renamed."""
        best, score = None, 0.0
        for case in self._fresh:
            outline = case.outline
            if outline in self._taken or not runs(outline) or outline.path != old.outline.path:
                continue
            likeness = _likeness(old, case)
            if likeness > score:
                best, score = case, likeness
        return best if score >= 0.5 else None

    def _added(self, case: Case) -> Iterator[Finding]:
        outline = case.outline
        path = outline.path
        for mark in case.marks:
            if mark.kind == "focus":
                yield Finding(
                    "test-focused", path, mark.line, f"{mark.text} keeps the other tests from running", "high"
                )
            elif outline.is_test and outline not in self._taken:
                yield Finding(
                    "test-skipped", path, mark.line, f"the new test {outline.name} is not run ({mark.text})", "low"
                )
            elif mark.kind in ("guard", "skipif"):
                continue
            elif outline.name.rpartition(".")[2] in _SET_UP or "autouse=True" in outline.body.replace(" ", ""):
                yield Finding(
                    "test-skipped", path, mark.line, f"{outline.name} skips the tests that use it ({mark.text})", "high"
                )
        yield from autouse_mocks(case)
        constant = [a for a in case.assertions if a.fate is Fate.CONSTANT]
        if runs(outline) and constant and len(constant) == len(case.assertions):
            yield Finding(
                "assertion-constant", path, constant[0].line, f"the new test {outline.name} cannot fail", "low"
            )

    def _whole(self, file: TestFile) -> Iterator[Finding]:
        if file.new is None:
            return
        had_tests = bool(file.old and (file.unchanged or file.old_tests() or not is_collected(file.path)))
        before = {(mark.kind, mark.text) for mark in (file.old.marks if file.old else ())}
        for mark in file.new.marks:
            if (mark.kind, mark.text) in before:
                continue
            if mark.kind == "ignore":
                yield Finding("tests-narrowed", file.path, mark.line, f"{mark.text[:80]} excludes tests", "high")
            elif mark.kind == "focus":
                yield Finding(
                    "test-focused", file.path, mark.line, f"{mark.text} keeps the other tests from running", "high"
                )
            elif had_tests:
                asked = _skip_is_asked_for(self._evidence, file.path, "")
                yield Finding(
                    "test-skipped",
                    file.path,
                    mark.line,
                    f"the tests of this file are skipped ({mark.text})",
                    high_unless(asked),
                )
        yield from replaced_imports(file)


def _may_differ(old: Outline, new: Outline) -> bool:
    return old.source != new.source or old.marks != new.marks


def _new_marks(
    old: Iterable[Mark], new: Iterable[Mark], path: str, outline: Outline, evidence: Evidence
) -> Iterator[Finding]:
    before = {(mark.kind, mark.text) for mark in old}
    kinds = {kind for kind, _ in before}
    for mark in new:
        if (mark.kind, mark.text) in before:
            continue
        if mark.kind == "focus":
            yield Finding("test-focused", path, mark.line, f"{mark.text} keeps the other tests from running", "high")
            continue
        if mark.kind == "guard" and not outline.is_test:
            continue
        always = {kind for kind, text in before if not _is_conditional(kind, text)}
        known = mark.kind in (kinds if _is_conditional(mark.kind, mark.text) else always) or "skip" in always
        asked = known or _skip_is_asked_for(evidence, path, outline.name)
        what = (
            "expected to fail"
            if mark.kind == "xfail"
            else "defined only under a condition"
            if mark.kind == "guard"
            else "skipped"
        )
        yield Finding(
            "test-skipped", path, mark.line, f"{outline.name} is {what} ({mark.text[:80]})", high_unless(asked)
        )


def _is_conditional(kind: str, text: str) -> bool:
    return kind in ("skipif", "guard") or " if " in text or text.startswith(("|", "&", "then", "do "))


def _skip_is_asked_for(evidence: Evidence, path: str, name: str) -> bool:
    if not evidence.story.works_on(r"skip\w*", r"disabl\w*", r"quarantin\w*", "xfail"):
        return False
    words = {*words_of(name), *stem_words(path)} - {"test"}
    return bool(words & evidence.story.words)


def _likeness(old: Case, new: Case) -> float:
    mine, others = set(words_of(old.outline.name)), set(words_of(new.outline.name))
    by_name = len(mine & others) / max(1, len(mine | others))
    wanted = [a for a in old.assertions if a.fate <= Fate.CONDITIONAL]
    if not wanted:
        return by_name if by_name > 0.5 else 0.0
    tokens = {a.tokens for a in new.assertions}
    shapes = {shape(a.tokens) for a in new.assertions}
    subjects = [names(a.subject) for a in new.assertions]
    values = [set(literals(a.tokens)) for a in new.assertions if a.fate <= Fate.CONDITIONAL]

    def met_by(assertion: Assertion) -> float:
        if assertion.tokens in tokens:
            return 1.0
        if shape(assertion.tokens) in shapes or names(assertion.subject) in subjects:
            return 0.6
        wished = set(literals(assertion.tokens))
        return 0.5 if len(wished) > 1 and any(wished <= held for held in values) else 0.0

    met = sum(map(met_by, wanted))
    return max(met / len(wanted), by_name if by_name >= 0.6 else 0.0)


def _lost_rows(old: Sequence[Tokens], new: Sequence[Tokens]) -> Iterator[tuple[Tokens, Tokens | None]]:
    left = list(new)
    lost = []
    for row in old:
        if row in left:
            left.remove(row)
        else:
            lost.append(row)
    for row in lost[:50]:
        wanted = set(literals(row))
        if any(wanted <= set(literals(other)) and len(other) > len(row) for other in left):
            continue
        other = next((other for other in left if shape(other) == shape(row)), None)
        if other is not None:
            left.remove(other)
        yield row, other


def _row_words(row: Tokens) -> list[str]:
    return [word for token in row for word in words_of(token)]


def _used(assertions: Sequence[Assertion]) -> set[str]:
    return {token for assertion in assertions for token in literals(assertion.tokens)}
