"""What somebody else changed in the working tree of an iteration becomes part of its checkpoint, and is named."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import msgspec

from ralph.core.authorship import Author, Branch, Move, Session, Span, branch_after, file_author, move_author
from ralph.core.text import one_line
from ralph.host.git.checkpoint import Checkpoint
from ralph.host.git.command import printable
from ralph.host.git.repo import Repo
from ralph.host.git.shared_tree import adopt, moves_since, refs_since, stashes_since, written_at
from ralph.host.git.snapshot import snapshot
from ralph.host.git.trace import Traced, writing_commands
from ralph.host.git.tree_diff import changes

_FEW = 5


class OtherChanges:
    """`sessions`: when agents and checks could write. `trace`: where the agents' git processes report."""

    def __init__(
        self, repo: Repo, index_file: Path, checkpoint: Checkpoint, sessions: Sequence[Session], trace: Path
    ) -> None:
        self._repo = repo
        self._index = index_file
        self._before = checkpoint
        self._sessions = sessions
        self._trace = trace

    def adopted(
        self, is_ours: Callable[[str], bool], *, files: bool
    ) -> tuple[Checkpoint, tuple[str, ...], Branch, tuple[str, ...]]:
        """The checkpoint with these changes, notices about them, what becomes of the branch at a rollback, and the
        files that somebody else committed and that are still as committed.

        `is_ours`: files that the loop writes itself. `files`: also look for changed files, not only for commits.
        """
        before = self._before
        moves, stashes = moves_since(self._repo, before), stashes_since(self._repo, before)
        moved = refs_since(self._repo, before, self._index)
        traced = writing_commands(self._trace, before.taken_at) if moves or stashes or moved else Traced()
        authors = [self._author(move, traced.moved_head) for move in moves]
        branch = branch_after(moves, authors)
        head = moves[branch.kept - 1].new if branch.kept else before.head
        if branch.ask:
            branch = msgspec.structs.replace(branch, ask=f"{branch.ask} ({_named(moves)})")
        theirs = [
            name
            for name, at in stashes.items()
            if move_author(at, traced.moved_head, self._sessions) is not Author.AGENT
        ]
        refs = {ref: name for ref, (name, at) in moved.items() if self._is_others(at, traced.moved_refs)}
        tree, paths, agents = before.tree, [], {}
        if files or head != before.head:
            tree = snapshot(self._repo, self._index, unreadable_before=before.unreadable).tree
            written = self._authors(tree, is_ours)
            paths = [path for path, author in written.items() if author is Author.OTHER and files]
            agents = {path: author is Author.AGENT for path, author in written.items()}
        if not paths and not theirs and not refs and head == before.head:
            return before, (), branch, ()
        committed = {change.raw for change in changes(self._repo, before.head, head)} if before.head and head else ()
        notices = []
        if shown := [printable(path) for path in paths if path not in committed]:
            notices.append(f"left as they are, because the agent did not change them: {_some(shown)}")
        for move, author in zip(moves[: branch.kept], authors, strict=False):
            why = "the agent did not make it" if author is Author.OTHER else "it is not known to be the agent's"
            notices.append(f"kept commit {move.new[:9]} on {before.branch}: {why}")
        notices += [f"{ref} stays where it was moved to: the agent did not move it" for ref in refs]
        notices += [f"kept stash entry {name[:9]}: it is not known to be the agent's" for name in theirs]
        after = adopt(self._repo, before, self._index, tree, paths, head or None, theirs, refs, agents)
        is_known = all(author is Author.OTHER for author in authors[: branch.kept])
        later = {change.raw for change in changes(self._repo, head, tree)} if head and committed and is_known else set()
        final = tuple(printable(path) for path in committed if path not in later) if is_known else ()
        return after, tuple(notices), branch, final

    def _author(self, move: Move, traced: Sequence[Span]) -> Author:
        """A branch that names no commit any more, or a switch without a new commit, has nothing that could be lost.

        Unless somebody else is known to have done it, it is undone with the agent's work.
        """
        author = move_author(move.at, traced, self._sessions, move.lasted) if move.new else Author.AGENT
        is_empty = move.is_switch and move.new == self._before.head
        return Author.AGENT if is_empty and (author is Author.UNKNOWN or not move.at) else author

    def _is_others(self, at: float, traced: Sequence[Span]) -> bool:
        """Whether a ref whose file was written then is known not to have been moved by the agent."""
        if any(span.has(at, 1, 1) for span in traced):
            return False
        return file_author("", at, self._before.taken_at, self._sessions) is Author.OTHER

    def _authors(self, tree: str, is_ours: Callable[[str], bool]) -> dict[bytes, Author]:
        """Who wrote the files that differ from the checkpoint."""
        found = {}
        for change in changes(self._repo, self._before.tree, tree):
            written = written_at(self._repo.root, change.raw)
            if written is not None and not change.is_submodule and not is_ours(change.path):
                name = str(self._repo.root / os.fsdecode(change.raw))
                found[change.raw] = file_author(name, written, self._before.taken_at, self._sessions)
        return found


def _named(moves: Sequence[Move]) -> str:
    return ", ".join(dict.fromkeys(move.new[:9] for move in moves))


def _some(paths: Iterable[str]) -> str:
    listed = [one_line(path, 100) for path in paths]
    more = f" and {len(listed) - _FEW} more" if len(listed) > _FEW else ""
    return ", ".join(listed[:_FEW]) + more
