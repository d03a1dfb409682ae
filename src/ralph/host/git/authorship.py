"""Which changes since a checkpoint are the agent's, and which are somebody else's.

The latter become part of the checkpoint and are named in a notice: what a checkpoint has is neither committed with the
agent's work nor undone with it. Evidence are the reflog, file times, and git's own trace (`GIT_TRACE2_EVENT`) of the
commands that ran in an agent's environment.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ralph.core.authorship import Author, Branch, Move, Session, Span, branch_after, file_author, move_author
from ralph.core.lazy_pattern import lazy_pattern
from ralph.core.text import one_line
from ralph.host.file_copies import keep, kept
from ralph.host.files import disk_trouble, read_plain
from ralph.host.git.checkpoint import Checkpoint, branches_of, head_of, pin_tree, stashed
from ralph.host.git.command import ask, git, line, printable
from ralph.host.git.loose import NotLoose
from ralph.host.git.objects import TreeEntry, changes, entries, no_entry, set_entries, tree_with
from ralph.host.git.refs import BRANCHES, listing, recorded_refs
from ralph.host.git.repo import Repo
from ralph.host.git.shadow import moments_of, shadow_of
from ralph.host.git.snapshot import Snapshot, snapshot

_MOST = 8 * 1024 * 1024
_READING = frozenset((
    "blame", "cat-file", "check-attr", "check-ignore", "config", "count-objects", "describe", "diff", "diff-files",
    "diff-index", "diff-tree", "for-each-ref", "fsck", "grep", "help", "log", "ls-files", "ls-remote", "ls-tree",
    "merge-base", "name-rev", "remote", "rev-list", "rev-parse", "shortlog", "show", "show-ref", "status", "var",
    "version",
))  # fmt: skip
_MOVES_REFS_ONLY = frozenset((
    "add", "apply", "archive", "branch", "clean", "clone", "commit-graph", "commit-tree", "fetch", "gc", "hash-object",
    "init", "maintenance", "mktree", "mv", "notes", "pack-refs", "prune", "push", "reflog", "repack", "replace",
    "restore", "rm", "sparse-checkout", "tag", "update-index", "write-tree",
))  # fmt: skip
"""They write, but move neither HEAD nor the current branch, and make no stash."""
_ENTRY = lazy_pattern(rb"^([0-9a-f]{40,64}) ([0-9a-f]{40,64}) .*?> (\d+) [+-]\d{4}(?:\t(.*))?$", re.MULTILINE)
_NO_SWITCH = lazy_pattern(rb"checkout: moving from (.+) to \1")
"""`git checkout BRANCH` on that branch, as the next run does in the clone of a killed one."""
_CLOCK_STEP = 30.0
"""Seconds between the time in the reflog and the write, at most: git takes the time when a commit begins."""
_MOST_COMMITS = 1000
_FEW = 5


class _Line(Struct):
    event: str = ""
    sid: str = ""
    time: str = ""
    """Only the first and the last line of a process have it."""
    t_abs: float = 0
    """Seconds since the process started."""
    name: str = ""


class Traced(Struct, frozen=True):
    """When git commands ran."""

    moved_head: tuple[Span, ...] = ()
    """Those that can move HEAD or its branch, or make a stash."""
    moved_refs: tuple[Span, ...] = ()
    """Those that can write any ref."""


def writing_commands(file: Path, since: float) -> Traced:
    started: dict[str, float] = {}
    ended: dict[str, float] = {}
    writes: dict[str, set[str]] = {}
    for item in _lines(file):
        try:
            record = msgspec.json.decode(item, type=_Line)
            if record.sid not in started and record.time:
                started[record.sid] = datetime.fromisoformat(record.time).timestamp()
        except (msgspec.DecodeError, UnicodeDecodeError, ValueError):  # a process was killed while it wrote
            continue
        begun = started.get(record.sid)
        if begun is None:
            continue
        ended[record.sid] = max(ended.get(record.sid, begun), begun + record.t_abs)
        if record.event == "cmd_name" and record.name not in _READING:
            writes.setdefault(record.sid, set()).add(record.name)
    spans = {sid: Span(started[sid], ended[sid]) for sid in writes if ended[sid] >= since - 1}
    return Traced(
        tuple(span for sid, span in spans.items() if not writes[sid] <= _MOVES_REFS_ONLY),
        tuple(spans.values()),
    )


def _lines(file: Path) -> list[bytes]:
    with contextlib.suppress(OSError), file.open("rb") as stream:
        size = stream.seek(0, 2)
        stream.seek(max(size - _MOST, 0))
        return stream.read(_MOST).splitlines()
    return []


def moves_since(repo: Repo, checkpoint: Checkpoint) -> tuple[Move, ...]:
    """How HEAD got from the checkpoint to where it is. Empty: it is where it was."""
    branch, head = head_of(repo)
    if branch == checkpoint.branch and head == checkpoint.head:
        return ()
    log = read_plain(repo.git_dir / "logs" / "HEAD") or b""
    new = log[checkpoint.history_size :] if len(log) >= checkpoint.history_size else b""
    moves = [
        Move(old.decode(), name.decode(), float(at), is_switch=said.startswith(b"checkout: moving"))
        for old, name, at, said in _ENTRY.findall(new)
        if old != name or not _NO_SWITCH.fullmatch(said)
    ]
    if moves and moves[-1].new == (head or "") and (branch != checkpoint.branch) <= moves[-1].is_switch:
        last, written = moves[-1], written_at(repo.common_dir, os.fsencode(f"{BRANCHES}{branch}")) if branch else None
        if written is not None and not last.is_switch and last.at <= written < last.at + _CLOCK_STEP:
            moves[-1] = replace(last, at=written, lasted=0)
        return tuple(moves)
    # There is no reflog, or it does not tell: one move, at the time of the commit, or at none without a new one.
    at = line(ask(repo, "log", "-1", "--format=%ct", head).out) if head and head != checkpoint.head else ""
    is_switch = branch != checkpoint.branch
    return (Move(checkpoint.head or "", head or "", float(at or 0), is_switch=is_switch),)


def stashes_since(repo: Repo, checkpoint: Checkpoint) -> dict[str, float]:
    """New stash entries, and when they were made."""
    new = [name for name in stashed(repo) if name not in checkpoint.stash]
    found = {}
    for name in new:
        at = line(ask(repo, "log", "-1", "--format=%ct", name, "--").out)
        found[name] = float(at or 0)
    return found


def refs_since(repo: Repo, checkpoint: Checkpoint, index_file: Path) -> dict[str, tuple[str, float]]:
    """Refs that moved, other than the current branch: where to, and when. A packed one does not show when."""
    before, found = branches_of(checkpoint, index_file), {}
    for ref, name in recorded_refs(repo).items():
        if ref in before and name != before[ref] and ref != f"{BRANCHES}{checkpoint.branch}":
            at = written_at(repo.common_dir, os.fsencode(ref))
            if at is not None:
                found[ref] = (name, at)
    return found


class _Others(Struct, frozen=True):
    """What somebody else did."""

    tree: str
    """The working tree."""
    paths: Sequence[bytes]
    """The files in it that they changed."""
    head: str | None
    """Their last commit on the branch, or that of the checkpoint."""
    stashes: Sequence[str]
    refs: Mapping[str, str]
    agents: Collection[bytes]
    """Files that the agent changed. One that is also in their commits is taken as it was committed."""


@disk_trouble()
def _adopt(repo: Repo, checkpoint: Checkpoint, index_file: Path, others: _Others) -> Checkpoint:
    """The checkpoint with these changes."""
    now, head, refs = entries(repo, others.tree), others.head, others.refs
    missing = no_entry(repo)
    wanted = {path: now.get(path, missing) for path in others.paths}
    committed = changes(repo, checkpoint.head, head) if head and checkpoint.head and head != checkpoint.head else ()
    for change in committed:
        wanted[change.raw] = change.new if change.raw in others.agents else now.get(change.raw, missing)
    new_tree = _with(repo, index_file, checkpoint.tree, wanted) if wanted else checkpoint.tree
    if new_tree != checkpoint.tree:  # protected from `git gc` like that of the checkpoint
        pin_tree(repo, index_file, "shared", new_tree)
    result = replace(checkpoint, tree=new_tree, stash=(*checkpoint.stash, *others.stashes))
    moments = moments_of(index_file)
    branches = branches_of(checkpoint, index_file) | dict(refs)
    if head == checkpoint.head:
        return replace(result, branches=keep(moments, listing(branches), durable=False)) if refs else result
    if checkpoint.branch is not None and head:
        branches[f"{BRANCHES}{checkpoint.branch}"] = head
    staged = {change.raw: change.new for change in committed}
    return replace(
        result,
        head=head,
        branches=keep(moments, listing(branches), durable=False),
        index=_index_with(repo, index_file, checkpoint, staged, head),
    )


def _with(repo: Repo, index_file: Path, tree: str, wanted: Mapping[bytes, TreeEntry]) -> str:
    with contextlib.suppress(NotLoose):
        return tree_with(repo, tree, wanted)
    shadow = shadow_of(repo, index_file)
    scratch = index_file.with_name(f"{index_file.name}.shared")
    try:
        git(shadow, "read-tree", tree, index=scratch)
        set_entries(shadow, wanted, scratch)
        return line(git(shadow, "write-tree", index=scratch))
    finally:
        scratch.unlink(missing_ok=True)


def _index_with(
    repo: Repo, index_file: Path, checkpoint: Checkpoint, staged: Mapping[bytes, TreeEntry], head: str | None
) -> str:
    """The user's index of the checkpoint, with the paths of the new commits as they were committed."""
    scratch = index_file.with_name(f"{index_file.name}.shared")
    moments = moments_of(index_file)
    try:
        if checkpoint.index:
            scratch.write_bytes(kept(moments, checkpoint.index))
            set_entries(repo, staged, scratch)
        else:
            git(repo, "read-tree", head or "--empty", index=scratch)
        return keep(moments, scratch.read_bytes(), durable=False)
    finally:
        scratch.unlink(missing_ok=True)


def written_at(root: Path, path: bytes) -> float | None:
    """When the inode of a file last changed. An old time can be written to a file, but not this one."""
    try:
        return os.lstat(os.fsencode(root) + b"/" + path).st_ctime
    except OSError:
        return None


def merge_texts(repo: Repo, index_file: Path, base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    """The text with both changes; None if they conflict."""
    places = {index_file.with_name(f"{index_file.name}.{n}"): text for n, text in enumerate((ours, base, theirs))}
    try:
        for path, text in places.items():
            path.write_bytes(text)
        answer = ask(repo, "merge-file", "--stdout", "--quiet", *map(str, places))
        return answer.out if answer.code == 0 else None
    finally:
        for path in places:
            path.unlink(missing_ok=True)


class AgentCommits(Struct, frozen=True, kw_only=True):
    commits: tuple[str, ...] = ()
    """Oldest first."""
    is_rewritten: bool = False
    """The checkpoint's commit is no longer part of the history."""
    has_switched: bool = False
    """HEAD is on another branch, or detached."""


def agent_commits(repo: Repo, checkpoint: Checkpoint) -> AgentCommits:
    """The commits the agent made since the checkpoint."""
    branch, head = head_of(repo)
    has_switched = branch != checkpoint.branch
    if head == checkpoint.head:
        return AgentCommits(has_switched=has_switched)
    if head is None:
        return AgentCommits(is_rewritten=True, has_switched=has_switched)
    since = (f"^{checkpoint.head}",) if checkpoint.head else ()
    listed = git(repo, "rev-list", "--reverse", f"--max-count={_MOST_COMMITS}", head, *since).decode().split()
    kept = not checkpoint.head or ask(repo, "merge-base", "--is-ancestor", checkpoint.head, head).code == 0
    return AgentCommits(commits=tuple(listed), is_rewritten=not kept, has_switched=has_switched)


class Adopted(Struct, frozen=True):
    checkpoint: Checkpoint
    """With the changes of somebody else."""
    branch: Branch
    """What becomes of the branch at a rollback."""
    notices: tuple[str, ...] = ()
    final: tuple[str, ...] = ()
    """The files that somebody else committed and that are still as committed."""


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
        self.seen: Snapshot | None = None
        """The files, if they were looked at."""

    def adopted(self, is_ours: Callable[[str], bool], *, files: bool) -> Adopted:
        """`is_ours`: files that the loop writes itself. `files`: also look for changed files, not only for commits."""
        before = self._before
        moves, stashes = moves_since(self._repo, before), stashes_since(self._repo, before)
        moved = refs_since(self._repo, before, self._index)
        traced = writing_commands(self._trace, before.taken_at) if moves or stashes or moved else Traced()
        authors = [self._author(move, traced.moved_head) for move in moves]
        branch = branch_after(moves, authors)
        head = moves[branch.kept - 1].new if branch.kept else before.head
        if branch.ask:
            branch = replace(branch, ask=f"{branch.ask} ({_named(moves)})")
        head_times = traced.moved_head, self._sessions
        theirs = [name for name, at in stashes.items() if move_author(at, *head_times) is not Author.AGENT]
        refs = {ref: name for ref, (name, at) in moved.items() if self._is_others(at, traced.moved_refs)}
        tree, written = before.tree, dict[bytes, Author]()
        if files or head != before.head:
            self.seen = snapshot(self._repo, self._index, unreadable_before=before.unreadable)
            tree = self.seen.tree
            written = self._authors(tree, is_ours)
        paths = [path for path, author in written.items() if author is Author.OTHER and files]
        agents = {path for path, author in written.items() if author is Author.AGENT}
        if not paths and not theirs and not refs and head == before.head:
            return Adopted(before, branch)
        committed = {change.raw for change in changes(self._repo, before.head, head)} if before.head and head else ()
        notices = []
        if shown := [printable(path) for path in paths if path not in committed]:
            notices.append(f"left as they are, because the agent did not change them: {_some(shown)}")
        for move, author in zip(moves[: branch.kept], authors, strict=False):
            why = "the agent did not make it" if author is Author.OTHER else "it is not known to be the agent's"
            notices.append(f"kept commit {move.new[:9]} on {before.branch}: {why}")
        notices += [f"{ref} stays where it was moved to: the agent did not move it" for ref in refs]
        notices += [f"kept stash entry {name[:9]}: it is not known to be the agent's" for name in theirs]
        others = _Others(tree, paths, head or None, theirs, refs, agents)
        after = _adopt(self._repo, before, self._index, others)
        is_known = all(author is Author.OTHER for author in authors[: branch.kept])
        later = {change.raw for change in changes(self._repo, head, tree)} if head and committed and is_known else set()
        final = tuple(printable(path) for path in committed if path not in later) if is_known else ()
        return Adopted(after, branch, tuple(notices), final)

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
