"""Acceptance tests of stories: kept in the state folder, examined, protected, laid over candidates."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from ralph.config.checks import ChosenCheck, choose
from ralph.config.schema import Config
from ralph.core.events import IterationEnded, IterationStarted, Noted, Record
from ralph.core.plan import Mode, Plan, Story
from ralph.core.proof import Acceptance
from ralph.core.run_ports import MOST_ACCEPTANCE_SESSIONS, Attempt, Written
from ralph.core.text import one_line
from ralph.core.verdict import Kind
from ralph.core.work_tree import Inspection
from ralph.host.files import make_folder, read_state, write_bytes
from ralph.host.git.objects import entries
from ralph.host.git.repo import Repo
from ralph.host.git.situation import Kind as EntryKind
from ralph.host.git.situation import situation
from ralph.host.git.work_tree import GitWorkTree
from ralph.host.removal import remove_empty_folders
from ralph.proof.acceptance import Trial, examine
from ralph.proof.checks import Checks
from ralph.proof.files import Role, is_collected, role_of
from ralph.proof.values import Ran


class AcceptanceStore:
    """One record per story. Read once: what agents change on disk during a run has no effect on it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._records: dict[str, Acceptance] | None = None

    def of(self, story: str) -> Acceptance | None:
        return self.all().get(story)

    def all(self) -> dict[str, Acceptance]:
        if self._records is None:
            self._records = {}
            for path in sorted(self._folder.glob("*.json")):
                with contextlib.suppress(OSError, msgspec.MsgspecError):
                    record = msgspec.json.decode(read_state(path), type=Acceptance)
                    self._records[record.story] = record
        return self._records

    def pending(self, plan: Plan) -> tuple[str, ...]:
        """The files in the repository that fail because their story is still to be implemented."""
        return tuple(
            path
            for record in self.all().values()
            if record.is_visible and not record.has_joined
            if (story := plan.story(record.story)) is not None and not story.is_done
            for path in record.files
        )

    def write(self, record: Acceptance) -> None:
        self.all()[record.story] = record
        self._write(record, ".json")

    def draft(self, record: Acceptance) -> None:
        """Tests that are not accepted yet."""
        self._write(record, ".draft")

    def accept_draft(self, story: str) -> None:
        with contextlib.suppress(OSError, msgspec.MsgspecError):
            self.write(msgspec.json.decode(read_state(self._path(story, ".draft")), type=Acceptance))
        self.drop_draft(story)

    def settle_exam(self, *, is_accepted: bool) -> int:
        """Accept or drop the drafts of an exam, one per story. Returns how many were accepted."""
        accepted = 0
        for path in sorted(self._folder.glob("*.draft")):
            with contextlib.suppress(OSError, msgspec.MsgspecError):
                record = msgspec.json.decode(read_state(path), type=Acceptance)
                if record.is_exam and is_accepted:
                    self.write(record)
                    accepted += 1
                if record.is_exam:
                    path.unlink(missing_ok=True)
        return accepted

    def drop_draft(self, story: str) -> None:
        self._path(story, ".draft").unlink(missing_ok=True)

    def draft_of(self, story: str) -> bytes:
        """As it is on disk; empty if there is none."""
        with contextlib.suppress(OSError):
            return read_state(self._path(story, ".draft"))
        return b""

    def reread(self) -> None:
        """The driver of a run with several workers has written other records."""
        self._records = None

    def _write(self, record: Acceptance, ending: str) -> None:
        make_folder(self._folder, private=True)
        write_bytes(self._path(record.story, ending), msgspec.json.encode(record), mode=0o600)

    def _path(self, story: str, ending: str) -> Path:
        name = hashlib.sha256(story.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        return self._folder / f"{name}{ending}"


def is_needed(config: Config, record: Acceptance | None, story: Story) -> bool:
    if config.acceptance == "off" or story.is_review_step:
        return False
    if record is not None and record.is_exam:
        return False
    if record is None or record.key != story.content_key:
        return True
    return not record.files and record.sessions < MOST_ACCEPTANCE_SESSIONS


def has_check(config: Config, plan: Plan) -> bool:
    """Whether a check could run acceptance tests: one that is about the whole project."""
    return any(check.required and not check.story for check in choose(config, plan, None, "story"))


_TEST_SIDE = frozenset({Role.TEST, Role.FIXTURE, Role.HELPER})
_LARGEST = 1_000_000
_MOST_FILES = 50
_FEW = 5


class StoryAcceptance:
    """The engine's `AcceptanceTests`."""

    def __init__(
        self,
        config: Config,
        repo: Repo,
        store: AcceptanceStore,
        checks: Checks,
        work_tree: GitWorkTree,
        is_ours: Callable[[str], bool],
        tell: Callable[[Noted], object],
        *,
        commits: bool,
    ) -> None:
        self.is_hidden = config.acceptance == "hidden"
        self._config = config
        self._repo = repo
        self._store = store
        self._checks = checks
        self._work_tree = work_tree
        self._is_ours = is_ours
        self._tell = tell
        self._commits = commits
        self._current = ""
        self._writing: dict[str, Story] = {}
        """By ID: stories whose tests were written by a session that has not ended yet."""
        self._notes: list[str] = []
        self._said_no_checks = False

    def of(self, story: str) -> Acceptance | None:
        """The usable acceptance tests of a story."""
        record = self._store.of(story)
        return record if record is not None and record.files else None

    def needed(self, plan: Plan) -> Callable[[Story], bool]:
        while self._notes:
            self._tell(Noted(self._notes.pop(0), warning=True))
        if self._config.acceptance == "off":
            return lambda story: False
        if not has_check(self._config, plan):
            if not self._said_no_checks:
                self._tell(Noted("no acceptance tests are written: no check would run them", warning=True))
            self._said_no_checks = True
            return lambda story: False
        return lambda story: is_needed(self._config, self._store.of(story.id), story)

    def sessions(self, story: Story) -> int:
        record = self._store.of(story.id)
        return record.sessions if record is not None and record.key == story.content_key else 0

    # Over the trees that are proven.

    def overlay(self, plan: Plan, story: str) -> dict[str, bytes | None]:
        """The story's own tests, without those of other stories that are still to be implemented."""
        files: dict[str, bytes | None] = dict.fromkeys(self._store.pending(plan))
        own = self.of(story)
        return files | (own.files if own else {})

    def hidden_files(self, story: str) -> Mapping[str, bytes]:
        record = self.of(story)
        return record.files if record is not None and not record.is_visible else {}

    def protection(self, by_settings: Callable[[str], bool] | None) -> Callable[[str], bool] | None:
        """Which files agents must not change, besides those of the settings. None: there are none."""
        if self._config.acceptance == "off" and self._config.exam == "off" and not self._store.all():
            return by_settings
        return lambda path: self._protects(path) or (by_settings is not None and by_settings(path))

    def _protects(self, path: str) -> bool:
        return any(
            path in record.files and record.is_visible and (not record.has_joined or record.story == self._current)
            for record in self._store.all().values()
        )

    # Hidden tests in the workspace.

    def join(self, story: str) -> bool:
        files = self.hidden_files(story)
        root = os.path.realpath(self._repo.root)
        for name, data in files.items():
            path = self._repo.root / name
            make_folder(path.parent)
            if not Path(os.path.realpath(path.parent)).is_relative_to(root) or path.is_symlink():
                continue  # it then differs from what was proven, and is not committed
            path.write_bytes(data)
        return bool(files)

    def withdraw(self) -> None:
        for record in self._store.all().values():
            for name, data in self.hidden_files(record.story).items():
                path = self._repo.root / name
                with contextlib.suppress(OSError):
                    if not path.is_symlink() and path.read_bytes() == data:
                        self._remove(name)

    def _remove(self, name: str) -> None:
        (self._repo.root / name).unlink()
        remove_empty_folders(self._repo.root, os.fsencode(name).rpartition(b"/")[0], lambda folder: False)

    # A session that writes them.

    def take(self, attempt: Attempt, name: str) -> Written:
        assert attempt.story is not None
        self._writing[attempt.story.id] = attempt.story
        files = self._new_files(attempt)
        self._remove_hidden(files)
        left = self.restore_rest(attempt, name, () if self.is_hidden else files)
        if left.objections or not left.inspection.sound:
            return left
        examined = examine(files, self._trials(attempt, attempt.story, left.inspection, files))
        self._store.draft(
            Acceptance(
                story=attempt.story.id,
                key=attempt.story.content_key,
                files=files,
                tests=examined.tests,
                is_hidden=self.is_hidden,
            )
        )
        return msgspec.structs.replace(left, tests=examined.tests, objections=examined.objections)

    def draft_of(self, story: str) -> bytes:
        return self._store.draft_of(story)

    def receive(self, story: Story, draft: bytes) -> None:
        self._writing[story.id] = story
        with contextlib.suppress(msgspec.MsgspecError):
            record = msgspec.json.decode(draft, type=Acceptance) if draft else None
            if record is not None and record.story == story.id and not record.is_exam:
                self._store.draft(record)

    def reread(self) -> None:
        self._store.reread()

    def restore_rest(self, attempt: Attempt, name: str, files: Iterable[str]) -> Written:
        """Undo whatever a session has changed besides these new files."""
        kept = set(files)
        undone = self._work_tree.put_back(
            attempt.checkpoint, lambda path: path not in kept and not self._is_ours(path), name
        )
        inspection = self._work_tree.inspect(attempt.checkpoint)
        notices = []
        if undone.paths:
            some = ", ".join(one_line(path, 60) for path in undone.paths[:_FEW])
            notices.append(f"restored: {some}; only new test files may be added")
        objections = [f"{one_line(path, 100)} could not be restored" for path in undone.left[:_FEW]]
        if inspection.commits:
            objections.append("the session made a commit: leave the tests uncommitted")
        return Written(inspection=inspection, objections=tuple(objections), notices=tuple(notices))

    def discard(self, attempt: Attempt) -> None:
        self._remove_hidden(self._new_files(attempt) if self.is_hidden else ())

    def _remove_hidden(self, files: Iterable[str]) -> None:
        """Before a snapshot is taken: with them, they would be in the repository."""
        for path in files if self.is_hidden else ():
            self._remove(path)

    def _new_files(self, attempt: Attempt) -> dict[str, bytes]:
        """New test-side files, and those that were written for the story before it was edited."""
        earlier = self.of(attempt.story.id) if attempt.story else None
        own = set(earlier.files) if earlier is not None and earlier.is_visible else set()
        return self.new_files(attempt, own)

    def new_files(self, attempt: Attempt, own: Iterable[str] = ()) -> dict[str, bytes]:
        known = {os.fsdecode(path) for path in entries(self._repo, str(attempt.checkpoint["tree"]))}
        added = [
            entry.path for entry in situation(self._repo).dirty if entry.kind in (EntryKind.UNTRACKED, EntryKind.STAGED)
        ]
        paths = [path for path in added if path not in known and role_of(path) in _TEST_SIDE]
        files: dict[str, bytes] = {}
        for path in sorted({*paths, *own}):
            place = self._repo.root / path
            if self._is_ours(path) or place.is_symlink() or not place.is_file() or place.stat().st_size > _LARGEST:
                continue
            files[path] = place.read_bytes()
        return dict(list(files.items())[:_MOST_FILES])

    def _trials(
        self, attempt: Attempt, story: Story, inspection: Inspection, files: Mapping[str, bytes]
    ) -> list[Trial]:
        plan = attempt.reading.plan
        tree, chosen = self.begin_trial(attempt, inspection)
        others: dict[str, Any] = {path: None for path, data in self.overlay(plan, story.id).items() if data is None}
        start = self._checks.compose(tree, others | dict.fromkeys(files))
        before = self._checks.tests_before(story.id, start, chosen)
        ran = self._checks.run(self._checks.compose(tree, others | dict(files)), chosen)
        if any(one.result.failed_before for one in ran):  # a test file that cannot be loaded may keep all from running
            rest = {os.fsdecode(path): None for path in entries(self._repo, tree)}
            others |= {path: None for path in rest if is_collected(path)}
            start = self._checks.compose(tree, others | dict.fromkeys(files))
            bare = self._checks.run(start, chosen)
            ran = self._checks.run(self._checks.compose(tree, others | dict(files)), chosen)
            before = {check.command: one.tests for check, one in zip(chosen, bare, strict=False)}
            ran = tuple(_compared(new, old) for new, old in zip(ran, bare, strict=False))
        return [
            Trial(check, before.get(check.command, type(one.tests)()), one)
            for check, one in zip(chosen, ran, strict=False)
        ]

    def begin_trial(self, attempt: Attempt, inspection: Inspection) -> tuple[str, list[ChosenCheck]]:
        """The tree with the new files as it would be committed, and the checks about the whole project."""
        tree = inspection.tree
        if self._commits:
            tree = self._work_tree.candidate(attempt.checkpoint, inspection.tree)
        self._checks.begin(tree, inspection.tree)
        chosen = choose(self._config, attempt.reading.plan, None, "story")
        return tree, [check for check in chosen if check.required and not check.story]

    def listen(self, record: Record) -> None:
        event = record.event
        if isinstance(event, IterationStarted):
            self._current = event.story
        if not isinstance(event, IterationEnded):
            return
        if event.mode is Mode.ACCEPTANCE:
            self._after_session(event)
        elif event.completes and (known := self.of(event.story)) is not None:
            self._store.write(msgspec.structs.replace(known, has_joined=True))

    def _after_session(self, event: IterationEnded) -> None:
        if event.kind is Kind.ACCEPTED:
            self._store.accept_draft(event.story)
            return
        self._store.drop_draft(event.story)
        story = self._writing.get(event.story)
        if story is None or not event.kind.uses_attempt:
            return
        sessions = self.sessions(story) + 1
        self._store.write(Acceptance(story=story.id, key=story.content_key, sessions=sessions))
        if sessions >= MOST_ACCEPTANCE_SESSIONS:
            self._notes.append(f"{story.id} continues without acceptance tests: {one_line(event.headline, 200)}")


def _compared(new: Ran, old: Ran) -> Ran:
    return msgspec.structs.replace(new, result=msgspec.structs.replace(new.result, failed_before=old.is_red))
