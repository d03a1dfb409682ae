"""`tests: must-fail-first`: a new test must fail on the code from before the story, or it proves nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache

from ralph.app.swapping import Keep, swapped
from ralph.app.tampering import RunChecks, file_changes
from ralph.checks.tamper.first_failing import is_on_the_test_side, needed
from ralph.core.evidence import CheckResult
from ralph.core.fingerprint import fingerprint
from ralph.core.text import one_line
from ralph.host.repo import Repo
from ralph.host.shadow import Shadow
from ralph.host.trees import Changed, TreeEntry, changes, entries

_MOST_APART = 4
"""Up to this many files with new tests are tried one by one; more are tried together, to save time."""
_POLICY = "tests: must-fail-first"
_NONE = f"no new test fails without the change; the story needs one that does ({_POLICY})"


def whole_story(repo: Repo, before: str, after: str, spans: Iterable[tuple[str, str]]) -> list[Changed]:
    """The difference between the tree before the story and the current one. `spans`: commits of earlier iterations."""
    found = {change.raw: change for change in changes(repo, before, after)}
    spans = [span for span in spans if all(span)]
    if not spans:
        return list(found.values())
    at_start, now = entries(repo, spans[0][0]), entries(repo, after)
    paths = {change.raw: change.path for span in spans for change in changes(repo, *span)}
    paths |= {raw: change.path for raw, change in found.items()}
    nothing = TreeEntry("000000", repo.no_object)
    listed = []
    for raw, path in paths.items():
        old, new = at_start.get(raw, nothing), now.get(raw, nothing)
        if old != new:
            status = "A" if old == nothing else "D" if new == nothing else "M"
            listed.append(Changed(path, status, old.mode, new.mode, old.id, new.id, raw))
    return [change for change in listed if not change.is_submodule]


def objections(
    repo: Repo,
    shadow: Shadow,
    story: Sequence[Changed],
    story_text: str,
    run_checks: RunChecks,
    passed_before: Callable[[CheckResult], bool],
    keep: Keep,
) -> tuple[str, ...]:
    """Why the tests of a story do not prove it. `passed_before`: a check is known to pass without the story."""
    found = needed(file_changes(repo, story), story_text)
    if not found.has_code:
        return ()
    if not found.fresh and not found.edited:
        return () if found.is_excused else (_NONE,)
    code = [change for change in story if not is_on_the_test_side(change.path)]
    tests = {*found.fresh, *found.edited}

    def run_with(paths: set[str]) -> list[CheckResult]:
        """The failing checks on the old code with just these new tests."""
        without = [change for change in story if change.path in tests - paths]
        with swapped(shadow, [*code, *without], keep):
            return [result for result in run_checks() if result.required and not result.passed]

    @cache
    def without_any() -> frozenset[tuple[str, str]]:
        return frozenset((result.name, fingerprint(result.tail)) for result in run_with(set()))

    def fails(paths: set[str]) -> bool:
        """Whether a failure is due to these tests: the same failure without them says nothing about them."""
        failing = run_with(paths)
        if any(passed_before(result) for result in failing):
            return True
        return any((result.name, fingerprint(result.tail)) not in without_any() for result in failing)

    if not found.fresh:
        return () if found.is_excused or fails(set(found.edited)) else (_NONE,)
    together = len(found.fresh) > _MOST_APART
    groups = [set(found.fresh)] if together else [{path} for path in found.fresh]
    vacuous = [path for group in groups if not fails(group) for path in sorted(group)]
    return tuple(
        f"{one_line(path, 100)}: its new tests also pass without the change, so they prove nothing ({_POLICY})"
        for path in vacuous
    )
