"""The loop's commit: exactly what changed since the checkpoint, and nothing the user had staged.

It is signed if the user's git signs commits and the key needs no passphrase: at night nobody can type one.
"""

from __future__ import annotations

import hashlib
import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from ralph.core.errors import SetupError
from ralph.core.plan import Mode
from ralph.core.text import one_line
from ralph.host.files import disk_trouble
from ralph.host.git.checkpoint import Checkpoint, head_of, real_index, undo_tampering, written_at
from ralph.host.git.command import (
    Call,
    ask,
    git,
    git_together,
    identity_from_environment,
    line,
    names,
    printable,
    try_ask,
)
from ralph.host.git.commit_hooks import HookFailure, Hooks, hook_of, hooks_in_tree, restore_own
from ralph.host.git.config_files import Tampering
from ralph.host.git.index_files import NotPlainIndex, read_index
from ralph.host.git.locks import clear_stale_locks
from ralph.host.git.loose import NotLoose
from ralph.host.git.objects import (
    Changed,
    TreeEntry,
    changes,
    entries,
    no_entry,
    objects_of,
    parse_entries,
    set_entries,
    tree_of,
    tree_with,
)
from ralph.host.git.plain_files import require_plain
from ralph.host.git.refs import MovedMeanwhile
from ralph.host.git.repo import Repo, current_settings
from ralph.host.git.rescue import AUTHOR
from ralph.host.git.restore import end_operations, put_index, restore_index
from ralph.host.git.shadow import moments_of
from ralph.host.git.snapshot import entry_on_disk, snapshot_tree
from ralph.host.redaction import redact
from ralph.host.removal import is_file

_WIDTH = 72
_SIGNING_TIMEOUT = 20.0
"""Seconds. A signing program that takes longer waits for somebody."""
_NO = ("false", "no", "off", "0")
_NO_PROMPT = {
    "GPG_TTY": "",
    "DISPLAY": "",
    "WAYLAND_DISPLAY": "",
    "SSH_ASKPASS": "/bin/false",
    "SSH_ASKPASS_REQUIRE": "force",  # otherwise ssh-keygen asks at the terminal
}
_ADD = ("update-index", "-z", "--add", "--remove", "--replace", "--stdin")
_DROP = ("update-index", "-z", "--force-remove", "--stdin")
_GONE = "000000"
"""The mode of a path that does not exist."""
_FEW = 500
"""Number of paths per command line."""


def commit_subject(story_id: str, title: str, mode: Mode, outcome: str = "") -> str:
    """`feat(US-001): title`, `test(US-001): title`, `review(US-001): approved`, `fix(US-001): …`, `chore(US-001): …`.

    At most 72 wide.
    """
    story = one_line(story_id, 30)
    match mode:
        case Mode.REVIEW:
            return one_line(f"review({story}): {outcome or title}", _WIDTH)
        case Mode.FIX:
            return one_line(f"fix({story}): {outcome or 'address review feedback'}", _WIDTH)
        case Mode.SETUP:
            return one_line(f"chore({story}): {title}" if story else f"chore: {title}", _WIDTH)
        case Mode.ACCEPTANCE | Mode.EXAM:
            return one_line(f"test({story}): {title}" if story else f"test: {title}", _WIDTH)
        case Mode.IMPLEMENT:
            return one_line(f"feat({story}): {title}", _WIDTH)


def commit_message(subject_line: str, trailers: Mapping[str, str | Sequence[str]]) -> str:
    """Subject and trailers such as `Ralph-Story`, each where git expects it, without secrets."""
    listed = [(name, [value] if isinstance(value, str) else value) for name, value in trailers.items()]
    ends = [f"{name}: {line}" for name, values in listed for value in values if (line := one_line(value))]
    parts = [one_line(subject_line, _WIDTH), "\n".join(ends)]
    return redact("\n\n".join(part for part in parts if part)) + "\n"


class Signing(Struct, frozen=True):
    """Settings and environment for one git command that signs. `is_wanted`: the user's git signs commits."""

    is_wanted: bool = False
    settings: tuple[str, ...] = ()
    env: Mapping[str, str] = {}


@contextmanager
def signing(repo: Repo) -> Iterator[Signing]:
    """How to sign without a prompt. The programs are those of the user's settings when the run started."""
    settings = repo.settings
    if settings.get("commit.gpgsign", "false").lower() in _NO:
        yield Signing()
        return
    kind = settings.get("gpg.format", "openpgp")
    if kind == "ssh":
        yield Signing(is_wanted=True, env=_NO_PROMPT)
        return
    from tempfile import TemporaryDirectory  # 5 ms that no run has to wait for at its start

    program, options = ("gpgsm", "--batch") if kind == "x509" else ("gpg", "--batch --no-tty --pinentry-mode error")
    program = (
        settings.get(f"gpg.{kind}.program") or (settings.get("gpg.program") if kind == "openpgp" else "") or program
    )
    with TemporaryDirectory(prefix="ralph-sign-") as folder:
        wrapper = Path(folder) / "sign"
        wrapper.write_text(f'#!/bin/sh\nexec {shlex.quote(program)} {options} "$@"\n')
        wrapper.chmod(0o700)
        yield Signing(is_wanted=True, settings=("-c", f"gpg.{kind}.program={wrapper}"), env=_NO_PROMPT)


def commit_tree(repo: Repo, args: tuple[str, ...], text: bytes, fallback: Mapping[str, str]) -> tuple[str, bool, str]:
    """Make a commit: its name, whether it has the `fallback` identity because git has none, and why it is not signed.

    `args` are those of `git commit-tree`, `text` is the message.
    """
    settings = ("-c", "user.useConfigOnly=true", "-c", "i18n.commitEncoding=utf-8")
    identity, why = identity_from_environment(), ""
    with signing(repo) as sign:
        if sign.is_wanted:
            signed = (*settings, *sign.settings, "commit-tree", "-S", *args)
            made = try_ask(repo, *signed, stdin=text, env_extra={**identity, **sign.env}, timeout=_SIGNING_TIMEOUT)
            if made.code == 0:
                return line(made.out), False, ""
            why = made.complaint
    made = ask(repo, *settings, "commit-tree", *args, stdin=text, env_extra=identity)
    if made.code == 0:
        return line(made.out), False, why
    return line(git(repo, *settings, "commit-tree", *args, stdin=text, env_extra=fallback)), True, why


class HeadMoved(SetupError):
    """The loop cannot commit at HEAD: it is on another branch, or has moved in the meantime."""


class Committed(Struct, frozen=True, kw_only=True):
    commit: str = ""
    """Empty when nothing was committed: `failure` or `changed` says why."""
    failure: HookFailure | None = None
    paths: tuple[str, ...] = ()
    used_fallback_identity: bool = False
    changed: tuple[str, ...] = ()
    """Files that changed after they were judged. Nothing was committed."""
    changed_by: str = ""
    """The hook that did it; empty: it was before the hooks, while the checks ran."""
    left_out: tuple[str, ...] = ()
    """What a hook staged beyond the judged tree. It is not in the commit."""
    restored: tuple[str, ...] = ()
    """The loop's own files that a hook changed."""
    edited_hooks: tuple[str, ...] = ()
    """Hooks inside the project that the agent changed in this iteration."""
    tampering: tuple[Tampering, ...] = ()
    hidden: tuple[str, ...] = ()
    """Changed files with the skip-worktree or assume-unchanged bit. They are not in the commit."""
    unsigned: str = ""
    """Why the commit is not signed although commit.gpgSign is set."""


class _Start(Struct, frozen=True):
    """Where the commit starts from."""

    head: str | None
    tree: str
    todo: tuple[Changed, ...]
    has_moved: bool
    """Commits the agent made since the checkpoint."""
    hidden: tuple[str, ...] = ()
    """Changed files that the user told git to ignore changes of: they stay out of commits."""
    settings: Mapping[str, str] = {}


class _Pending(Struct, frozen=True):
    """HEAD plus the judged changes: an index with them, its tree, and its entries for the changed paths."""

    start: _Start
    index: Path | None
    """None: the tree was made without one."""
    tree: str
    staged: dict[bytes, TreeEntry]

    def remember(self) -> None:
        """The next commit can reuse the index."""
        if self.index is not None:
            _note(self.index).write_text(self.tree)


@disk_trouble()
def commit_story(
    repo: Repo,
    *,
    checkpoint: Checkpoint,
    tree: str,
    message: str,
    index_file: Path,
    hooks: Hooks | None = None,
    own: Mapping[Path, bytes] | None = None,
    parents: Sequence[str] = (),
) -> Committed | None:
    """Commit the difference between the checkpoint and `tree`, the snapshot that was judged. None: no difference.

    Only that tree is committed. If a hook changes files, the caller judges the result. `own`: the loop's files, which
    hooks cannot change. `parents`: further ones, after HEAD, which make it a merge commit.

    Commits the agent made stay, and the remaining changes go on top of them; if nothing remains, the commit is empty,
    because its message is their proof. The user's index gets the committed paths and otherwise stays as it was at the
    checkpoint. After a crash the same call can be repeated.
    """
    tampering = undo_tampering(repo, checkpoint, index_file)
    if any((repo.git_dir / name).exists() for name in ("index.lock", "HEAD.lock")):
        clear_stale_locks(repo)
    user_index = moments_of(index_file) / checkpoint.index
    hook = hook_of(repo, "pre-commit") or hook_of(repo, "commit-msg")
    pending = _prepare(repo, checkpoint, tree, index_file, user_index, is_for_hooks=hook is not None)
    start = pending.start
    if pending.tree == start.tree:
        made = _made_before(repo, checkpoint, start, message)
        if made or not start.has_moved:
            pending.remember()
            return made
    result = Committed(edited_hooks=_edited_hooks(repo, start.todo), tampering=tampering)
    written = {os.fsencode(os.path.relpath(path, repo.root)) for path in own or ()}
    mine = [change for change in start.todo if change.raw not in written]
    now = tree if hook is None and _is_as_judged(repo, mine) else snapshot_tree(repo, index_file)
    if late := {change.path for change in _changes(repo, tree, now)}.intersection(change.path for change in mine):
        return replace(result, changed=tuple(sorted(late)))
    if hook is not None and pending.index is not None:
        failure, message = _run_hooks(repo, hooks or Hooks(), pending.index, index_file, now, message)
        result = replace(result, restored=restore_own(own or {}, repo.root))
        if failure:
            return replace(result, failure=failure)
        if changed := _changes(repo, now, snapshot_tree(repo, index_file)):
            return replace(result, changed=tuple(change.path for change in changed), changed_by=hook.name)
        left = _between(repo, pending.tree, line(git(repo, "write-tree", index=pending.index)))
        result = replace(result, left_out=tuple(path for path in map(printable, left) if path not in result.restored))
        if left:
            git(repo, "read-tree", pending.tree, index=pending.index)
    # Commits of the agent's own have some of the paths already.
    paths = _between(repo, start.tree, pending.tree) if start.has_moved else pending.staged
    commit, is_fallback, unsigned = _publish(repo, checkpoint, index_file, pending, message, parents)
    pending.remember()
    if not checkpoint.in_progress:
        end_operations(repo)
    return replace(
        result,
        commit=commit,
        paths=tuple(printable(path) for path in paths),
        used_fallback_identity=is_fallback,
        hidden=start.hidden,
        unsigned=unsigned,
    )


@disk_trouble()
def candidate_tree(repo: Repo, *, checkpoint: Checkpoint, tree: str, index_file: Path) -> str:
    """The tree that `commit_story` would commit if no hook changed it. Only objects are written."""
    own = index_file.with_name(f"{index_file.name}.candidate")  # the index of the commit keeps its file times
    pending = _prepare(repo, checkpoint, tree, own, moments_of(index_file) / checkpoint.index)
    pending.remember()
    return pending.tree


def _prepare(
    repo: Repo, checkpoint: Checkpoint, tree: str, index_file: Path, user_index: Path, *, is_for_hooks: bool = False
) -> _Pending:
    """`is_for_hooks`: they need the index."""
    start = _start(repo, checkpoint, tree, user_index)
    if not is_for_hooks:
        with suppress(NotLoose):
            return _prepared_plainly(repo, start)
    index = _story_index(repo, index_file, start)
    _stage(repo, index, start.todo)
    new_tree, staged = _written(repo, index, start.todo)
    _require_all(repo, start.todo, staged)
    return _Pending(start, index, new_tree, staged)


def _prepared_plainly(repo: Repo, start: _Start) -> _Pending:
    """Without a process: the files that were judged are added as they are."""
    require_plain(repo, start.settings, start.todo, objects_of(repo), start.tree)
    staged = {change.raw: change.new for change in start.todo}
    return _Pending(start, None, tree_with(repo, start.tree, staged), staged)


def _require_all(repo: Repo, todo: Sequence[Changed], staged: Mapping[bytes, TreeEntry]) -> None:
    """Git skips names like `git~1` without an error. The commit would not be what was judged."""
    skipped = [c for c in todo if c.status != "D" and staged[c.raw].mode == _GONE and is_file(repo.root, c.raw)]
    if skipped:
        some = ", ".join(one_line(change.path, 60) for change in skipped[:3])
        raise SetupError(f"git does not accept these file names, so they cannot be committed: {some}")


def _start(repo: Repo, checkpoint: Checkpoint, tree: str, user_index: Path) -> _Start:
    """`user_index`: the user's index at the checkpoint; an agent can set bits in the current one."""
    branch, head = head_of(repo)
    if branch != checkpoint.branch:
        raise HeadMoved(
            f"HEAD is on {branch or 'no branch'}, but the work belongs on {checkpoint.branch or 'no branch'}",
            hint="roll back, or switch to the branch",
        )
    settings = current_settings(repo)
    if settings.filters != repo.filters:
        raise SetupError(
            "git's filter settings changed since the run started; adding files could run a different program",
            hint="check filter.* in `git config --list --show-origin`, then run again",
        )
    head_tree = tree_of(repo, head) if head else ""
    if not head_tree and checkpoint.head:
        raise HeadMoved(f"HEAD is invalid: there is no commit {head}", hint="roll back")
    commit = head if head and head_tree else ""
    has_moved = (commit or None) != checkpoint.head
    todo = changes(repo, checkpoint.tree, tree)
    if has_moved and commit:
        todo = (*todo, *_taken_back(repo, checkpoint, tree, commit, {change.raw for change in todo}))
    hidden = _hidden(repo, user_index) if checkpoint.index and todo else frozenset()
    shown = tuple(change for change in todo if change.raw not in hidden)
    left = tuple(change.path for change in todo if change.raw in hidden)
    return _Start(commit or None, head_tree, shown, has_moved, left, settings.values)


def _hidden(repo: Repo, index: Path) -> frozenset[bytes]:
    """Files with the skip-worktree bit (S) or the assume-unchanged bit (lower case): often secrets of the user."""
    with suppress(NotPlainIndex):
        return read_index(index, repo.object_format).hidden
    listed = ask(repo, "ls-files", "-z", "-v", index=index)
    flagged = (item for item in names(listed.out) if item[:1] == b"S" or item[:1].islower())
    return frozenset(item[2:] for item in flagged) if listed.code == 0 else frozenset()


def _taken_back(repo: Repo, checkpoint: Checkpoint, tree: str, head: str, known: set[bytes]) -> list[Changed]:
    """Paths the agent committed that are unchanged in the judged tree: the commit has to revert those."""
    found = []
    for change in changes(repo, checkpoint.head, head) if checkpoint.head else ():
        if change.raw in known or change.is_submodule:
            continue
        now = entries(repo, tree).get(change.raw)
        if now is not None:
            found.append(Changed(change.path, "M", change.new_mode, now.mode, change.new_id, now.id, change.raw))
        elif not is_file(repo.root, change.raw):  # one that is there, and in no tree, is ignored
            zero = (change.new_mode, _GONE, change.new_id, repo.no_object)
            found.append(Changed(change.path, "D", *zero, change.raw))
    return found


def _story_index(repo: Repo, index_file: Path, start: _Start) -> Path:
    """An index with exactly the content of HEAD. The one from the last commit is reused when it matches."""
    index = index_file.with_name(f"{index_file.name}.story")
    index.with_name(f"{index.name}.lock").unlink(missing_ok=True)
    note = _note(index)
    try:
        fits = index.exists() and note.read_text() == start.tree != ""
    except OSError:
        fits = False
    note.unlink(missing_ok=True)  # from here on the index is on its way to something else
    if not fits:
        git(repo, "read-tree", start.tree or "--empty", index=index)
    return index


def _note(index: Path) -> Path:
    return index.with_name(f"{index.name}.tree")


def _stage(repo: Repo, index: Path, todo: tuple[Changed, ...]) -> None:
    """Add them to the index as git would: with the project's line endings and filters."""
    if gone := b"".join(change.raw + b"\0" for change in todo if change.status == "D"):
        git(repo, *_DROP, index=index, stdin=gone)
    if here := b"".join(change.raw + b"\0" for change in todo if change.status != "D"):
        git(repo, *_ADD, index=index, stdin=here)


def _run_hooks(
    repo: Repo, hooks: Hooks, index: Path, index_file: Path, tree: str, message: str
) -> tuple[HookFailure | None, str]:
    """The failure or None, and the message as the hooks left it. `tree`: the snapshot before them."""
    if hook := hook_of(repo, "pre-commit"):
        ask(repo, "update-index", "-q", "--refresh", index=index)
        failure = hooks.run(repo, hook, index=index)
        is_refusal = failure is not None and not failure.timed_out
        if is_refusal and (rewritten := _changes(repo, tree, snapshot_tree(repo, index_file))):
            # A formatter that repairs files and fails all the same is content the second time.
            _stage(repo, index, rewritten)
            failure = hooks.run(repo, hook, index=index)
        if failure:
            return failure, message
    if hook := hook_of(repo, "commit-msg"):
        file = index.with_name(f"{index.name}.message")
        file.write_text(message)
        if failure := hooks.run(repo, hook, index=index, message=file):
            return failure, message
        message = file.read_text(errors="replace")
    return None, message


def _is_as_judged(repo: Repo, mine: Sequence[Changed]) -> bool:
    """Whether these files are on disk as they were judged. False: it takes a look at everything to tell."""
    if len(mine) > _FEW:
        return False
    gone = no_entry(repo)
    try:
        now = [TreeEntry(*entry) if (entry := entry_on_disk(repo, change.raw)) else gone for change in mine]
    except NotLoose:
        return False
    return now == [change.new for change in mine]


def _changes(repo: Repo, old: str, new: str) -> tuple[Changed, ...]:
    return changes(repo, old, new) if old != new else ()


def _edited_hooks(repo: Repo, todo: tuple[Changed, ...]) -> tuple[str, ...]:
    folder = hooks_in_tree(repo)
    return tuple(c.path for c in todo if folder is not None and c.raw.startswith(folder + b"/"))


def _written(repo: Repo, index: Path, todo: Sequence[Changed]) -> tuple[str, dict[bytes, TreeEntry]]:
    """The tree of the index, and its entries for the changed paths; the zero entry for removed ones."""
    paths = [change.raw for change in todo]
    is_short = len(paths) <= _FEW and sum(map(len, paths)) <= _FEW * 200
    some: tuple[str | bytes, ...] = ("--", *paths) if is_short else ()
    calls = [Call(repo, ("write-tree",), index), Call(repo, ("ls-files", "-z", "--stage", *some), index)]
    written, listed = git_together(calls)
    found = parse_entries(listed)
    return line(written), {path: found.get(path, no_entry(repo)) for path in paths}


def _between(repo: Repo, old: str, new: str) -> dict[bytes, TreeEntry]:
    old = old or line(git(repo, "mktree"))  # the empty tree
    return {change.raw: change.new for change in changes(repo, old, new)}


def _made_before(repo: Repo, checkpoint: Checkpoint, start: _Start, message: str) -> Committed | None:
    """The commit of an earlier call that was killed right after it, recognized by its unique trailers."""
    trailers = message.strip().rpartition("\n\n")[2]
    if not start.head or start.head == checkpoint.head or "Ralph-Run:" not in trailers:
        return None
    if trailers not in line(git(repo, "log", "-1", "--format=%B", start.head)):
        return None
    paths = changes(repo, f"{start.head}^", start.head) if checkpoint.head else ()
    return Committed(commit=start.head, paths=tuple(change.path for change in paths))


def _publish(
    repo: Repo, checkpoint: Checkpoint, index_file: Path, pending: _Pending, message: str, parents: Sequence[str]
) -> tuple[str, bool, str]:
    """Make the commit, then update the user's index, then HEAD: a kill in between leaves the work staged.

    Returns the commit, whether Ralph is its author because no git user is configured, and why it is not signed.
    """
    before, since = real_index(repo), written_at(repo.git_dir / "index")
    start, staged, tree = pending.start, pending.staged, pending.tree
    if before is not None and hashlib.sha256(before).hexdigest() != checkpoint.index:
        # What the agent staged goes; what it committed itself is in the index like the rest.
        restore_index(repo, checkpoint, index_file)
        staged = _between(repo, checkpoint.head or "", tree) | staged
    every = dict.fromkeys([*((start.head,) if start.head else ()), *parents])
    args = (tree, *(part for parent in every for part in ("-p", parent)), "-F", "-")
    text = message.encode("utf-8", "replace")
    try:
        set_entries(repo, staged)
        commit, is_fallback, unsigned = commit_tree(repo, args, text, AUTHOR)
        subject = message.partition("\n")[0]
        moved = ask(repo, "update-ref", "-m", f"commit: {subject}", "HEAD", commit, start.head or repo.no_object)
        if moved.code:
            raise MovedMeanwhile(f"HEAD moved during the commit: {moved.complaint}", hint="run again")
    except SetupError:
        put_index(repo, before, since)
        raise
    return commit, is_fallback, unsigned
