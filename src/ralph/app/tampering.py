"""Detects what an agent did to tests and checks, and runs the checks with the original tests."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from ralph.app.swapping import Keep, swapped
from ralph.checks.tamper.driver import only_the_driver_changed
from ralph.checks.tamper.examine import FileChange, examine, tests_to_put_back
from ralph.core.evidence import CheckResult
from ralph.core.plan import Story
from ralph.core.suspicion import Suspicion
from ralph.core.text import one_line
from ralph.host.git import git
from ralph.host.repo import Repo
from ralph.host.shadow import Shadow
from ralph.host.trees import Changed, changes

_MOST_FILES = 500
_LARGEST = 1_000_000

_ABOUT_THE_CODE = frozenset({"test-detected", "answers-hard-coded", "warnings-silenced"})
"""Findings in the code under test: reverting them would undo the work itself."""

_STORY_DECIDES = frozenset({"expected-edited", "test-removed", "test-file-deleted", "snapshot-edited"})
"""Findings that are harmless only if the story asks for the change."""

RunChecks = Callable[[], tuple[CheckResult, ...]]


def file_changes(repo: Repo, found: Sequence[Changed]) -> list[FileChange]:
    """The content of each changed file, before and after. A file that is too large to read is not a test."""
    wanted = [change for change in found if not change.is_submodule][:_MOST_FILES]
    names = {name for change in wanted for name in (change.old_id, change.new_id) if name.strip("0")}
    blobs = _blobs(repo, sorted(names))
    return [FileChange(change.path, blobs.get(change.old_id), blobs.get(change.new_id)) for change in wanted]


def _blobs(repo: Repo, names: list[str]) -> dict[str, bytes]:
    """All blobs with one process."""
    if not names:
        return {}
    sizes = git(repo, "cat-file", "--batch-check=%(objectname) %(objectsize)", stdin="\n".join(names).encode() + b"\n")
    small = []
    for line in sizes.decode().splitlines():
        name, _, size = line.partition(" ")
        if size.isdigit() and int(size) <= _LARGEST:
            small.append(name)
    if not small:
        return {}
    data = git(repo, "cat-file", "--batch", stdin="\n".join(small).encode() + b"\n")
    found: dict[str, bytes] = {}
    at = 0
    while at < len(data):
        end = data.index(b"\n", at)
        name, _, size = data[at:end].decode().split(" ")
        found[name] = data[end + 1 : end + 1 + int(size)]
        at = end + 2 + int(size)
    return found


def words_of(story: Story | None) -> str:
    """What a story asks for, without anything an agent may have written, such as its notes."""
    return "\n".join((story.title, story.description, *story.criteria)) if story else ""


def suspicions(
    repo: Repo,
    shadow: Shadow,
    before: str,
    after: str,
    story: Story | None,
    commands: Sequence[str],
    protected: Sequence[str],
    run_checks: RunChecks,
    *,
    weigh: bool = False,
    keep: Keep = contextlib.nullcontext,
) -> tuple[Suspicion, ...]:
    """What is suspicious between two trees. `run_checks` is called while edited tests are back in their old version.

    `weigh`: also find out whether the checks pass only because of what is suspicious. `keep` saves the work meanwhile.
    """
    found = changes(repo, before, after)
    files = file_changes(repo, found)
    listed = examine(files, story_text=words_of(story), check_commands=commands, protected=protected)
    doubts = [Suspicion(f.code, f.path, f.message, f.line, f.severity == "high") for f in listed]
    grave = [doubt for doubt in doubts if doubt.is_grave]
    if grave and not weigh:
        return tuple(doubts)
    wanted = {*tests_to_put_back(files), *(doubt.path for doubt in grave if doubt.code not in _ABOUT_THE_CODE)}
    if not wanted:
        return tuple(doubts)
    shown = _with_old_files(shadow, [change for change in found if change.path in wanted], run_checks, keep)
    is_unasked = bool(grave) or any(only_the_driver_changed(file) for file in files if file.path in wanted)
    if shown and not is_unasked and wanted <= {f.path for f in listed if f.code in _STORY_DECIDES}:
        shown = [replace(doubt, is_grave=False) for doubt in shown]  # the text of the story decides
    if shown and is_unasked:
        return tuple(replace(doubt, is_decisive=doubt.is_grave) for doubt in (*doubts, *shown))
    return (*doubts, *shown)


def _with_old_files(shadow: Shadow, edited: list[Changed], run_checks: RunChecks, keep: Keep) -> list[Suspicion]:
    """An edited expectation shows up as a failure of the original test."""
    with swapped(shadow, edited, keep):
        results = run_checks()
    failing = [result for result in results if result.required and not result.passed]
    paths = ", ".join(one_line(change.path, 60) for change in edited[:3])
    return [
        Suspicion("edited-expectation", edited[0].path, f"{result.name!r} fails with the original {paths}")
        for result in failing[:3]
    ]
