"""Prove a story's work: assembles the candidate from the repository and runs the proof procedure on it."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ralph.config.checks import choose
from ralph.config.schema import Config, minimum_grade
from ralph.core.lazy_pattern import lazy_pattern
from ralph.core.plan import Plan, Story
from ralph.core.proof import Grade, Proof
from ralph.core.run_ports import Attempt
from ralph.core.text import one_line
from ralph.core.work_tree import Inspection
from ralph.host.git.command import git
from ralph.host.git.objects import Changed, TreeEntry, changes, empty_tree, entries, read_blobs
from ralph.host.git.repo import Repo
from ralph.host.git.work_tree import GitWorkTree
from ralph.proof.acceptance_tests import StoryAcceptance
from ralph.proof.checks import Checks
from ralph.proof.files import Role, role_of
from ralph.proof.prover import prove
from ralph.proof.story_words import names_file
from ralph.proof.values import Candidate, FileChange
from ralph.review.material import Reviewing

_LARGEST = 1_000_000
_MOST_READ = 30_000_000
_LARGEST_CHANGED = 20_000_000
_MOST_CHANGED = 200_000_000
_MOST_OUTSIDE = 3
_MOST_READ_FOR = 200
"""Changes whose origin is looked up."""
_LONGEST_LINE = 10_000
_ABSOLUTE = lazy_pattern(rb"(?<![\w.:/])/(?:[\w.@+-]+/)*[\w.@+-]+")
_TEST_SIDE = frozenset({Role.TEST, Role.HELPER})
_NOT_READ = frozenset({Role.DOCS, Role.FIXTURE, Role.RULES, Role.CI})


class StoryProver:
    """The engine's `Prover`."""

    def __init__(
        self,
        config: Config,
        repo: Repo,
        checks: Checks,
        reviewing: Reviewing,
        work_tree: GitWorkTree,
        is_ours: Callable[[str], bool],
        acceptance: StoryAcceptance,
        *,
        run: str,
        commits: bool,
        private: Sequence[Path],
    ) -> None:
        """`private`: folders of this machine that a clone does not have."""
        self._acceptance = acceptance
        self._plain = ""
        """The candidate without acceptance tests that are not in it."""
        self._config = config
        self._run = run
        self._repo = repo
        self._checks = checks
        self._reviewing = reviewing
        self._work_tree = work_tree
        self._commits = commits
        self._private = tuple(private)
        self._is_ours = is_ours

    def candidate(self, attempt: Attempt, inspection: Inspection) -> str:
        candidate = inspection.tree
        if self._commits and inspection.sound:
            candidate = self._work_tree.candidate(attempt.checkpoint, inspection.tree)
        story = attempt.work.story
        self._checks.begin(
            candidate,
            inspection.tree,
            self._acceptance.hidden_files(story),
            lambda paths: self._work_tree.kept(attempt.checkpoint, f"{self._run}/{attempt.number}", paths),
        )
        self._plain = candidate
        return self._laid_over(attempt.reading.plan, story, candidate)

    def _laid_over(self, plan: Plan, story: str, tree: str) -> str:
        """A tree with the story's acceptance tests, and without those of other unfinished stories."""
        files = self._acceptance.overlay(plan, story)
        return self._checks.compose(tree, files) if files else tree

    def _before(self, checkpoint: dict[str, Any]) -> str:
        """What the candidate is compared with. Commits have passed git's filters; snapshots hold the bytes on disk."""
        if not self._commits:
            return str(checkpoint["tree"])
        head = checkpoint.get("head")
        return str(head) if head else empty_tree(self._repo)

    def final(self, plan: Plan) -> str:
        snapshot = self._work_tree.tree()
        tree = self._work_tree.committed() if self._commits else snapshot
        self._checks.begin(tree, snapshot)
        return self._laid_over(plan, "", tree)

    def known(self, story: str) -> Proof | None:
        return self._reviewing.proof(story)

    def kept(self, stories: Iterable[str]) -> Mapping[str, object]:
        return self._reviewing.kept(stories)

    def take_kept(self, kept: Mapping[str, Any]) -> None:
        self._reviewing.take_kept(dict(kept))

    def has_kept(self, story: str) -> bool:
        return bool(self._reviewing.spans(story))

    def prove(self, attempt: Attempt, candidate: str, *, is_claimed: bool) -> Proof | None:
        story = attempt.story
        if story is None:
            return None
        before = self._before(attempt.checkpoint)
        changed = story_change(self._repo, before, self._plain, self._reviewing.spans(story.id))
        overlay = self._acceptance.overlay(attempt.reading.plan, story.id)
        wanted = [change for change in changed if not self._is_ours(change.path) and change.path not in overlay]
        mine = file_changes(self._repo, wanted)
        mine += tuple(FileChange(path, None, data) for path, data in overlay.items() if data is not None)
        foreign = self._foreign(story.id, self._plain)
        given = self._given(attempt.reading.plan, story, candidate, mine, is_claimed=is_claimed)
        given = msgspec.structs.replace(given, foreign=foreign)
        proof = prove(given, self._checks)
        wrong = list(reaches_outside(changed, mine, self._private))
        if not any(tests.runner for tests in given.passed.values()):  # else a test that is gone is noticed
            wrong += self._removed(attempt.reading.plan, story, mine)
        proof = msgspec.structs.replace(proof, where=self._checks.where, objections=(*wrong, *proof.objections))
        if unsure := self._checks.limits:  # the checks may have read more than the candidate: only a review can tell
            proof = msgspec.structs.replace(proof, witnesses=(), missing=unsure, limits=(*unsure, *proof.limits))
        return proof

    def in_doubt(self, plan: Plan, story: str) -> dict[str, str]:
        found: dict[str, str] = {}
        for old, new in self._reviewing.spans(story):
            for change in changes(self._repo, old, new)[:_MOST_READ_FOR] if old else ():
                if self._is_ours(change.path) or change.status == "A":
                    continue
                owner = plan.story(self._owner(change.path, "-1", old))
                if owner is not None and owner.id != story and owner.is_done and owner.grade == Grade.REVIEWED:
                    found.setdefault(owner.id, change.path)
        return found

    def _owner(self, path: str, *options: str) -> str:
        """The story whose commit added or changed a file."""
        log = ("log", "--format=%(trailers:key=Ralph-Story,valueonly)", *options)
        return git(self._repo, *log, "--", path).decode("utf-8", "replace").strip()

    def _removed(self, plan: Plan, story: Story, mine: Sequence[FileChange]) -> Iterator[str]:
        """Files that finished stories added and that are gone, although the story does not name them."""
        kept = {change.new for change in mine} | {posixpath.basename(c.path) for c in mine if c.new is not None}
        words = "\n".join((story.title, story.description, *story.criteria))
        for change in mine[:_MOST_READ_FOR]:
            is_moved = change.old in kept or posixpath.basename(change.path) in kept
            if change.new is not None or is_moved or names_file(words, change.path):
                continue
            owner = plan.story(self._owner(change.path, "-1", "--diff-filter=A"))
            if owner is not None and owner.is_done and owner.id != story.id:
                path = one_line(change.path, 80)
                yield f"{path}, which {owner.id} added, is gone, and no test is about it: restore it, or ask the user"

    def _foreign(self, story: str, candidate: str) -> tuple[FileChange, ...]:
        """What stories that are not done have changed, as it is in the candidate."""
        now = entries(self._repo, candidate)
        nothing = TreeEntry("000000", self._repo.no_object)
        found: dict[bytes, Changed] = {}
        for old, new in self._reviewing.unfinished(story):
            for change in changes(self._repo, old, new):
                first = found.get(change.raw, change)
                entry = now.get(change.raw, nothing)
                found[change.raw] = msgspec.structs.replace(first, new_mode=entry.mode, new_id=entry.id)
        listed = [change for change in found.values() if not change.is_submodule and not self._is_ours(change.path)]
        return file_changes(self._repo, [change for change in listed if change.old_id != change.new_id])

    def _given(
        self, plan: Plan, story: Story, candidate: str, changed: tuple[FileChange, ...], *, is_claimed: bool
    ) -> Candidate:
        chosen = [check for check in choose(self._config, plan, story, "story") if check.required]
        wants_witness = is_claimed and minimum_grade(self._config) != "unproven"
        general = [check for check in chosen if check.story != story.id] if wants_witness else []
        tests, sources = self._files(self._plain)
        overlay = self._acceptance.overlay(plan, story.id)
        tests = {path: data for path, data in tests.items() if path not in overlay}
        own = self._acceptance.of(story.id)
        tests |= own.files if own else {}
        # What other stories did meanwhile stays: only this story's change is undone.
        start = self._checks.compose(candidate, {change.path: change.old for change in changed})
        return Candidate(
            start=start,
            tree=candidate,
            changes=changed,
            words="\n".join((story.title, story.description, *story.criteria)),
            own=tuple(check for check in chosen if check.story == story.id),
            checks=tuple(chosen),
            passed=self._checks.tests_of(candidate),
            before=self._checks.tests_before(story.id, start, general),
            tests=tests,
            sources=sources,
            seed=os.urandom(4).hex(),
            wants_witness=wants_witness,
            restores=self._config.tamper != "off",
            acceptance=tuple(own.files) if own else (),
            acceptance_tests=own.tests if own else (),
        )

    def _files(self, tree: str) -> tuple[dict[str, bytes], dict[str, bytes]]:
        """The test files of a tree, and the source files, which say who imports what."""
        roles = {path: role_of(path) for raw in entries(self._repo, tree) if (path := raw.decode("utf-8", "replace"))}
        wanted = {path: role for path, role in roles.items() if role not in _NOT_READ}
        ids = {raw.decode("utf-8", "replace"): entry.id for raw, entry in entries(self._repo, tree).items()}
        # Tests first: if there is too much to read, they matter more.
        order = sorted(wanted, key=lambda path: (wanted[path] not in _TEST_SIDE, path))
        blobs = read_blobs(self._repo, [ids[path] for path in order], largest=_LARGEST, most=_MOST_READ)
        read = {path: blobs[ids[path]] for path in order if ids[path] in blobs}
        tests = {path: data for path, data in read.items() if wanted[path] in _TEST_SIDE}
        return tests, {path: data for path, data in read.items() if path not in tests}


def reaches_outside(
    changed: Sequence[Changed], files: Sequence[FileChange], private: Sequence[Path]
) -> tuple[str, ...]:
    """Links that lead out of the repository, and absolute paths into folders of this machine. A clone has neither."""
    links = {change.path for change in changed if change.new_mode == "120000"}
    told = []
    for file in files:
        if file.new is None or role_of(file.path) is Role.DOCS or "__pycache__" in file.path.split("/"):
            continue
        if file.path in links:
            target = file.new.decode("utf-8", "replace")
            inside = posixpath.normpath(posixpath.join(posixpath.dirname(file.path), target))
            if target.startswith("/") or inside.startswith(".."):
                told.append(f"{one_line(file.path, 80)} is a link to {one_line(target, 80)}, outside the repository")
            continue
        old = frozenset((file.old or b"").splitlines())
        for number, line in enumerate(file.new.splitlines(), 1):
            if line not in old and (path := _private_path(line, private)):
                told.append(f"{one_line(file.path, 80)}:{number} refers to {path}, which no clone has")
    return tuple(told[:_MOST_OUTSIDE])


def _private_path(line: bytes, private: Sequence[Path]) -> str:
    for found in _ABSOLUTE.finditer(line[:_LONGEST_LINE]):
        path = Path(found[0].decode("utf-8", "replace"))
        if any(path.is_relative_to(folder) and path != folder for folder in private) and path.exists():
            return one_line(str(path), 80)
    return ""


def story_change(repo: Repo, before: str, after: str, spans: Sequence[tuple[str, str]]) -> list[Changed]:
    """What a story has changed since it began. `spans`: the commits of its earlier iterations.

    What other stories changed between them is not listed.
    """
    spans = [span for span in spans if all(span)]
    if not spans:
        return [change for change in changes(repo, before, after) if not change.is_submodule]
    paths = {change.raw: change.path for old, new in (*spans, (before, after)) for change in changes(repo, old, new)}
    at_start, now = entries(repo, spans[0][0]), entries(repo, after)
    nothing = TreeEntry("000000", repo.no_object)
    listed = []
    for raw, path in paths.items():
        old, new = at_start.get(raw, nothing), now.get(raw, nothing)
        if old != new:
            status = "A" if old == nothing else "D" if new == nothing else "M"
            listed.append(Changed(path, status, old.mode, new.mode, old.id, new.id, raw))
    return [change for change in listed if not change.is_submodule]


def file_changes(repo: Repo, found: Sequence[Changed]) -> tuple[FileChange, ...]:
    """The content of each changed file before and after. One that is too large to read counts as empty there."""
    names = {name for change in found for name in (change.old_id, change.new_id) if name.strip("0")}
    blobs = read_blobs(repo, sorted(names), largest=_LARGEST_CHANGED, most=_MOST_CHANGED)

    def content(name: str) -> bytes | None:
        return blobs.get(name, b"") if name.strip("0") else None

    return tuple(FileChange(change.path, content(change.old_id), content(change.new_id)) for change in found)
