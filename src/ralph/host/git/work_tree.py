"""The engine's view of the repository, built from the functions in `host`. Checkpoints are passed as plain data."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import msgspec

from ralph.core.authorship import AT_ANY_TIME, Author, Session, file_author
from ralph.core.errors import UsageError
from ralph.core.evidence import CheckResult
from ralph.core.text import one_line
from ralph.core.work_tree import Commit, Inspection, PutBack, RolledBack, Shared
from ralph.host.clocks import WriteTimes
from ralph.host.git.authorship import OtherChanges, agent_commits, merge_texts, written_at
from ralph.host.git.checkpoint import (
    Checkpoint,
    has_tree,
    is_pinned,
    pin_tree,
    take,
    undo_tampering,
)
from ralph.host.git.command import GitFailed, ask, git, line, names, printable
from ralph.host.git.commit_hooks import Around, Hooks
from ralph.host.git.commits import candidate_tree, commit_message, commit_story
from ralph.host.git.config_files import Tampering
from ralph.host.git.ignored import KeepIgnored, losses
from ralph.host.git.locks import clear_stale_locks
from ralph.host.git.loose import NotLoose
from ralph.host.git.nested import look_inside
from ralph.host.git.objects import TreeEntry, changes, tree_with
from ralph.host.git.refs import repair_packed_refs
from ralph.host.git.repo import Repo, RepositoryReplaced, is_in_place, still_the_same
from ralph.host.git.rescue import drop, find, keep_uncommitted, roll_back, save
from ralph.host.git.restore import repair_head, restore_lost, restore_some
from ralph.host.git.shadow import shadow_of
from ralph.host.git.situation import in_progress, phrase, situation
from ralph.host.git.snapshot import LARGEST_FILE, Snapshot, file_entry, snapshot, snapshot_tree
from ralph.host.git.swap import swap_back, swapped
from ralph.host.process.signals import StopSignal

_RECENT = 50
_GC_ROUNDS = 2
_FEW = 5
_NO_USER = "git has no user.name and user.email, so commits are made as Ralph Loop <ralph@localhost>"
_UNDONE = {"changed": "restored", "removed": "restored", "added": "removed"}
_SWAPPED = "ralph: work before its checks ran against other versions of files"
_TOO_LARGE = f"is over {LARGEST_FILE >> 20} MB: it is neither committed nor removed"


class GitWorkTree:
    def __init__(
        self,
        repo: Repo,
        index_file: Path,
        hook_env: Mapping[str, str],
        stop: StopSignal | None = None,
        ignored: KeepIgnored | None = None,
        trace: Path | None = None,
        around_hooks: Around = nullcontext,
    ) -> None:
        """`trace`: where the git processes of the agents report what they do. `around_hooks`: the sandbox of hooks."""
        self._trace = trace or Path(os.devnull)
        self._sessions: list[Session] = []
        """Since the checkpoint."""
        self._times = WriteTimes()
        self._begun = time.time_ns()
        self._repo = repo
        self._index = index_file
        self._hooks = Hooks(hook_env, stop=stop, around=around_hooks)
        self._keep_ignored = ignored
        self._ignored = ""
        self._is_nobody_told = False
        self._is_unsigned_told = False
        self._seen: Snapshot | None = None
        """The files as they were when the agent's changes were told apart from those of others."""
        self._known: dict[str, bool] = {}
        """Ralph's own files → whether git tracks them."""

    def checkpoint(self) -> dict[str, Any]:
        self._sessions = []
        self._times.start()
        if self._trace.is_file():
            self._trace.unlink(missing_ok=True)
        for _ in range(_GC_ROUNDS):
            with contextlib.suppress(GitFailed):  # a `git gc --prune=now` of the user's removed what was just written
                return self._take()
        return self._take()

    def _take(self) -> dict[str, Any]:
        made = take(self._repo, self._index, ignored=self._keep_ignored, before=self._ignored)
        self._ignored = made.ignored
        return msgspec.to_builtins(made)  # type: ignore[no-any-return]

    def is_in_place(self) -> bool:
        return is_in_place(self._repo)

    def knows(self, checkpoint: dict[str, Any]) -> bool:
        if not is_pinned(self._repo, self._index, _checkpoint(checkpoint)):
            raise RepositoryReplaced("the journal and refs/ralph/checkpoint/ name different checkpoints")
        return has_tree(self._repo, self._index, _checkpoint(checkpoint))

    def note_session(self, session: Session) -> None:
        self._sessions.append(session)

    def _timed_sessions(self) -> Sequence[Session]:
        return self._sessions if self._times.are_comparable(self._index.parent) else [AT_ANY_TIME]

    def share(self, checkpoint: dict[str, Any], is_ours: Callable[[str], bool], *, files: bool = True) -> Shared:
        before = _checkpoint(checkpoint)
        tampering = undo_tampering(self._repo, before, self._index)
        repair_head(self._repo, before)  # git reads nothing before that
        repair_packed_refs(self._repo)
        others = OtherChanges(self._repo, self._index, before, self._timed_sessions(), self._trace)
        found = others.adopted(is_ours, files=files)
        self._seen = others.seen
        checkpoint = checkpoint if found.checkpoint is before else msgspec.to_builtins(found.checkpoint)
        notices = (*_told(tampering), *found.notices)
        return Shared(checkpoint, notices, found.branch.ask, found.branch.can_undo, found.final)

    def author_of(self, path: Path) -> Author:
        agents = [session for session in self._timed_sessions() if session.is_agent]  # checks do not edit the plan
        written = written_at(path.parent, os.fsencode(path.name))
        return file_author(str(path), written, 0, agents) if written is not None else Author.UNKNOWN

    def keep_uncommitted(
        self, checkpoint: dict[str, Any], tree: str, is_ours: Callable[[str], bool]
    ) -> tuple[str, ...]:
        ref, paths = keep_uncommitted(self._repo, self._index, _checkpoint(checkpoint), tree, is_ours)
        some = ", ".join(one_line(path, 60) for path in paths[:_FEW])
        return (f"the agent changed or deleted files that were not committed; {ref} has them: {some}",) if ref else ()

    def merged(self, base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
        return merge_texts(self._repo, self._index, base, ours, theirs)

    def save(self, checkpoint: dict[str, Any], name: str, message: str) -> RolledBack:
        saved = save(self._repo, name, self._index, _checkpoint(checkpoint), message)
        return RolledBack(ref=saved.ref, commit=saved.commit) if saved else RolledBack()

    def inspect(self, checkpoint: dict[str, Any], *, as_shared: bool = False) -> Inspection:
        seen, self._seen = self._seen if as_shared else None, None
        before = _checkpoint(checkpoint)
        tampering = undo_tampering(self._repo, before, self._index)
        self._unlock(before)
        lost = restore_lost(self._repo, before, self._index)
        if seen is None or lost.refs:  # the user's index may have been repaired: it says what is tracked
            seen = snapshot(self._repo, self._index, unreadable_before=before.unreadable)
        found = seen
        pin_tree(self._repo, self._index, "work", found.tree)
        changed = changes(self._repo, before.tree, found.tree) if found.tree != before.tree else ()
        committed = agent_commits(self._repo, before)
        notices = [*_told(tampering), *(f"{one_line(name, 100)} was restored" for name in lost.refs), *lost.failed]
        if lost.kept:
            notices.append(f"the commits that the agent had moved refs to are kept in {', '.join(lost.kept[:_FEW])}")
        large = [path for path in found.large if path not in before.large]
        notices += [f"{one_line(printable(path), 100)} {_TOO_LARGE}" for path in large]
        notices += losses(self._repo, self._index, before.ignored, self._begun)
        inside = look_inside(self._repo, before, self._index)
        notices += [*inside.notices, *inside.objections]
        left_open = in_progress(self._repo.git_dir)
        if left_open and not before.in_progress:
            notices.append(f"the agent left {phrase(left_open)} unfinished")
        if committed.is_rewritten:
            notices.append("the agent rewrote the history of the branch")
        if committed.has_switched:
            notices.append("the agent switched away from the branch it started on")
        return Inspection(
            tree=found.tree,
            changed=tuple(change.path for change in changed),
            commits=committed.commits,
            sound=not (
                committed.is_rewritten
                or committed.has_switched
                or (left_open and not before.in_progress)
                or inside.objections
            ),
            notices=tuple(notices),
        )

    def committed(self) -> str:
        """The tree of HEAD; without a commit, the working tree."""
        head = ask(self._repo, "rev-parse", "--verify", "--quiet", "HEAD^{tree}")
        return line(head.out) if head.code == 0 else self.tree()

    def candidate(self, checkpoint: dict[str, Any], tree: str) -> str:
        """The tree that would be committed: what git's filters make of the files, without what it ignores."""
        made = candidate_tree(self._repo, checkpoint=_checkpoint(checkpoint), tree=tree, index_file=self._index)
        pin_tree(self._repo, self._index, "candidate", made)
        return made

    @contextlib.contextmanager
    def kept(self, checkpoint: dict[str, Any], name: str, paths: Sequence[bytes]) -> Iterator[None]:
        """While other versions of these files are in place: if the loop is killed, the rescue ref has the work."""
        listed = json.dumps([os.fsdecode(path) for path in paths])
        saved = save(self._repo, name, self._index, _checkpoint(checkpoint), f"{_SWAPPED}\n\n{listed}")
        yield
        if saved is not None:  # not after an error: undoing the iteration needs it
            with contextlib.suppress(UsageError):  # the checks ran the agent's code, which may have deleted it
                drop(self._repo, name)

    def _swap_back(self, name: str) -> None:
        """Restore the work where a killed run left other versions of its files."""
        known = find(self._repo, name)
        if known is None or known.subject != _SWAPPED:
            return
        body = git(self._repo, "log", "-1", "--format=%b", known.commit)
        try:
            paths = {os.fsencode(path) for path in msgspec.convert(json.loads(body), list[str])}
        except ValueError:  # not written by the loop: an agent can create such a ref, too
            return
        now = snapshot_tree(self._repo, self._index)
        swap_back(
            shadow_of(self._repo, self._index),
            [change for change in changes(self._repo, now, known.tree) if change.raw in paths],
        )

    def put_back(
        self, checkpoint: dict[str, Any], is_protected: Callable[[str], bool], name: str, *, also_new: bool = True
    ) -> PutBack:
        before = _checkpoint(checkpoint)
        found = snapshot(self._repo, self._index, unreadable_before=before.unreadable)
        changed = changes(self._repo, before.tree, found.tree)
        known = {change.path for change in changed if change.status != "A" and is_protected(change.path)}
        if not also_new:
            return self._put_back(before, known.__contains__, name) if known else PutBack()
        rules = [change for change in changed if change.raw.rpartition(b"/")[2] == b".gitignore"]
        if not rules:
            made = {printable(folder) for folder in found.nested if folder not in before.nested}
            is_touched = any(map(is_protected, {*made, *(change.path for change in changed)}))
            return self._put_back(before, is_protected, name) if is_touched else PutBack()
        # The agent's own ignore rules may hide what it added, so those of the checkpoint apply.
        kept = self._put_back(before, is_protected, name)
        shadow = shadow_of(self._repo, self._index)
        with swapped(shadow, [change for change in rules if not is_protected(change.path)]):
            hidden = self._put_back(before, is_protected, name)
        return PutBack((*kept.paths, *hidden.paths), kept.ref or hidden.ref, hidden.left)

    def _put_back(self, before: Checkpoint, is_wanted: Callable[[str], bool], name: str) -> PutBack:
        now = snapshot(self._repo, self._index, unreadable_before=before.unreadable)
        paths = {change.path for change in changes(self._repo, before.tree, now.tree)}
        if not any(map(is_wanted, {*paths, *map(printable, now.nested)})):
            return PutBack()
        message = "ralph: work before protected files were restored"
        saved = save(self._repo, name, self._index, before, message)
        done = restore_some(self._repo, before, self._index, saved.commit if saved else None, is_wanted)
        restored = sorted({*done.removed, *done.rewritten} - {*done.left, *done.unsaved})
        return PutBack(tuple(restored), saved.ref if saved else "", (*done.unsaved, *done.left))

    def _unlock(self, before: Checkpoint) -> None:
        """A git process of the agent may have been killed: its locks would keep the loop from committing."""
        own, shared = self._repo.git_dir, self._repo.common_dir
        locks = [own / "index.lock", own / "HEAD.lock", shared / "packed-refs.lock"]
        if before.branch is not None:
            locks.append(shared / "refs" / "heads" / f"{before.branch}.lock")
        if any(lock.exists() for lock in locks):
            clear_stale_locks(self._repo)

    def dirty(self) -> frozenset[str]:
        return frozenset(entry.path for entry in situation(self._repo).dirty)

    def tree(self) -> str:
        still_the_same(self._repo)
        return snapshot_tree(self._repo, self._index)

    def roll_back(self, checkpoint: dict[str, Any], name: str, message: str, leave: Sequence[Path] = ()) -> RolledBack:
        self._swap_back(name)
        left = [os.fsencode(os.path.relpath(path, self._repo.root)) for path in leave]
        done = roll_back(self._repo, name, self._index, _checkpoint(checkpoint), message, leave=left)
        restored = done.restored
        notices = [f"{one_line(path, 100)} could not be restored" for path in (*restored.unsaved, *restored.left)]
        return RolledBack(
            ref=done.rescue.ref if done.rescue else "",
            commit=done.rescue.commit if done.rescue else "",
            removed=len(restored.removed),
            rewritten=len(restored.rewritten),
            notices=(
                *_told(restored.tampering),
                *restored.lost_refs[:_FEW],
                *notices[:_FEW],
                *done.ignored.notices(),
                *done.submodules,
            ),
        )

    def commit(
        self,
        checkpoint: dict[str, Any],
        tree: str,
        extra: Sequence[Path],
        message: str,
        trailers: Mapping[str, str | Sequence[str]],
        parents: Sequence[str] = (),
    ) -> Commit | None:
        made = commit_story(
            self._repo,
            checkpoint=_checkpoint(checkpoint),
            tree=self._tree_with(tree, extra, checkpoint["tree"]),
            message=commit_message(message, trailers),
            index_file=self._index,
            hooks=self._hooks,
            own={path: path.read_bytes() for path in extra},
            parents=parents,
        )
        if made is None:
            return None
        notices = list(_told(made.tampering))
        if made.used_fallback_identity and not self._is_nobody_told:
            self._is_nobody_told = True
            notices.append(_NO_USER)
        if made.hidden:
            some = ", ".join(one_line(path, 60) for path in made.hidden[:_FEW])
            notices.append(f"not committed, because git is told to skip changes in it (`git ls-files -v`): {some}")
        if made.unsigned and not self._is_unsigned_told:
            self._is_unsigned_told = True
            notices.append(f"commits are not signed: commit.gpgSign is set, but signing failed: {made.unsigned}")
        notices += [f"the agent changed the hook {one_line(path, 100)}" for path in made.edited_hooks]
        notices += [f"a commit hook changed {one_line(path, 100)}; restored" for path in made.restored]
        if made.left_out:
            some = ", ".join(one_line(path, 60) for path in made.left_out[:5])
            notices.append(f"a commit hook staged {some}: not part of what was checked, so not committed")
        refused = None
        if made.failure is not None:
            failure = made.failure
            refused = CheckResult(
                name=f"{failure.hook} hook",
                command=failure.hook,
                passed=False,
                code=failure.code,
                timed_out=failure.timed_out,
                tail=failure.output[-20_000:],
            )
        return Commit(made.commit, made.paths, refused, made.changed, made.changed_by, tuple(notices))

    def _tree_with(self, tree: str, extra: Sequence[Path], before: str) -> str:
        """`tree` with these files as they are on disk now. Files that git ignores are not added."""
        paths = self._seen_by_git((tree, before), extra)
        if not paths:
            return tree
        with contextlib.suppress(NotLoose):
            return tree_with(self._repo, tree, {path: self._entry(path) for path in paths})
        shadow = shadow_of(self._repo, self._index)
        index = self._index.with_name(f"{self._index.name}.settled")
        index.unlink(missing_ok=True)
        git(shadow, "read-tree", tree, index=index)
        # The agent may have replaced one of them with a folder; `--replace` lets the file replace it again.
        listed = b"".join(path + b"\0" for path in paths)
        git(shadow, "update-index", "-z", "--add", "--replace", "--stdin", index=index, stdin=listed)
        return line(git(shadow, "write-tree", index=index))

    def _entry(self, path: bytes) -> TreeEntry:
        if (entry := file_entry(self._repo, path)) is None:
            raise NotLoose
        return TreeEntry(*entry)

    def _seen_by_git(self, trees: Sequence[str], extra: Sequence[Path]) -> list[bytes]:
        """The paths that are in one of the trees: an agent may have removed the plan itself."""
        inside = [os.path.relpath(path, self._repo.root) for path in extra]
        wanted = [path for path in inside if not path.startswith("..")]
        if unknown := [path for path in wanted if path not in self._known]:
            look = ("ls-tree", "-r", "-z", "--name-only", "--full-tree")
            listed = {name for tree in trees for name in names(git(self._repo, *look, tree, "--", *unknown))}
            self._known |= {path: os.fsencode(path) in listed for path in unknown}
        return [os.fsencode(path) for path in wanted if self._known[path]]

    def find_commit(self, trailers: dict[str, str]) -> str:
        keys = "%x00".join(f"%(trailers:key={key},valueonly,separator=%x2C)" for key in trailers)
        listed = git(self._repo, "log", f"-{_RECENT}", f"--format=%H%x00{keys}", "--all", "--not", "--remotes")
        for item in listed.decode("utf-8", "replace").splitlines():
            commit, *values = item.split("\0")
            if values == list(trailers.values()):
                return commit
        return ""


def _checkpoint(data: dict[str, Any]) -> Checkpoint:
    return msgspec.convert(data, Checkpoint)


def _told(tampering: Sequence[Tampering]) -> list[str]:
    said = [(one_line(item.file, 100), item.what) for item in tampering]
    return [f"{file} in the git folder was {what} and {_UNDONE[what]}" for file, what in said]
