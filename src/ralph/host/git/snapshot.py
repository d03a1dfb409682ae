"""The working tree as one tree object: tracked, staged and untracked files, byte for byte, without the ignored ones.

A private index remembers what it saw, so only files that changed are read. The user's own index is not touched. While
few files differ from the private index, it stays as it is, and the tree is made from its tree and these files.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Sequence, Set
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from ralph.core.lazy_pattern import lazy_pattern
from ralph.host.files import disk_trouble, is_special, open_regular
from ralph.host.git.command import Answer, Call, GitFailed, ask, ask_together, git, line, names
from ralph.host.git.index_files import NotPlainIndex, Signature, read_index, signature
from ralph.host.git.loose import NOTHING, Entry, NotLoose, with_entries, write
from ralph.host.git.plain_files import has_plain_modes
from ralph.host.git.repo import Repo
from ralph.host.git.shadow import Shadow, shadow_of
from ralph.host.removal import make_readable

LARGEST_FILE = 100 * 1024 * 1024
"""Bytes. An untracked file larger than this is left in place and not read; the same limit as GitHub's."""

_OTHERS = ("ls-files", "-z", "-t", "--others", "--exclude-standard")
_LOOK = (*_OTHERS, "--modified", "--deleted")
_CHANGED = ("diff-files", "-z", "--name-only", "--ignore-submodules=dirty")
_LARGE_INDEX = 1024 * 1024
"""Bytes. From then on it is faster to let two processes look for changed and for untracked files."""
_IGNORED = ("ls-files", "-z", "--cached", "--ignored", "--exclude-standard")
_ADD = ("update-index", "-z", "--add", "--remove", "--replace", "--stdin")
_DROP = ("update-index", "-z", "--force-remove", "--stdin")
_CLOSED = lazy_pattern(rb"could not open directory '(.*?)/?': Permission denied", re.DOTALL)
_FEW = 100
"""Number of paths per command line."""
_ROUNDS = 5
_NO_LIMIT = 1 << 62

_MOST_PLAIN, _LARGEST_PLAIN = 40, 1024 * 1024
"""Files and bytes by which the tree may differ from the private index. They are read again for each snapshot."""
_MOST_EXTRA = 1000
_RULES = b".gitignore"


class Snapshot(Struct, frozen=True):
    """A tree, and what is in the folder but not in the tree. Paths are bytes, relative to the root."""

    tree: str
    nested: tuple[bytes, ...] = ()
    """Repositories in the folder that are not submodules. Git does not look into them."""
    large: tuple[bytes, ...] = ()
    unreadable: tuple[bytes, ...] = ()
    empty_folders: tuple[bytes, ...] = ()
    """Only when requested."""
    base: str = ""
    """The tree of the private index. What is as it was in it is not written again."""


class _Known(Struct):
    """Cached in this process. Not written to disk: between two runs `git gc` may remove objects."""

    index: Signature | None = None
    """The private index as it was when `tree` was made from it."""
    tree: str = ""
    real_index: Signature | None = None
    tracked: frozenset[bytes] = frozenset()
    """Entries of the user's index that a rule ignores."""
    rules: Signature | None = None
    """`info/exclude` as it was when `ignored` was asked for. None: files with rules have changed since."""
    ignored: frozenset[bytes] = frozenset()
    """Entries of the private index that a rule ignored."""


_KNOWN: dict[Path, _Known] = {}


class _Seen(Struct):
    """The pending changes to the private index, and what stays out of it."""

    add: list[bytes] = []
    drop: list[bytes] = []
    submodules: list[bytes] = []
    nested: list[bytes] = []
    large: list[bytes] = []
    unreadable: list[bytes] = []
    empty_folders: list[bytes] = []
    troubled: bool = False
    """Something could not be read."""
    again: bool = False
    """There is more to see once this is in the index."""
    is_kept: bool = False
    """The private index gets all of it: the next look is shorter then."""


def snapshot_tree(repo: Repo, index_file: Path) -> str:
    return snapshot(repo, index_file).tree


@disk_trouble()
def snapshot(
    repo: Repo,
    index_file: Path,
    *,
    unreadable_before: Iterable[bytes] | None = None,
    rules_changed: bool = False,
) -> Snapshot:
    """Take a snapshot. `rules_changed`: ignore rules changed and the private index already reflects it.

    `unreadable_before` are the paths that were unreadable at the checkpoint. If given, everything else that is
    unreadable became so since then, and is made readable: what cannot be read cannot be saved.
    """
    shadow = shadow_of(repo, index_file)
    seen = _look(repo, shadow, rules_changed)
    if seen.troubled and unreadable_before is not None:
        make_readable(repo.root, frozenset((*unreadable_before, b".git")))
        seen = _look(repo, shadow, rules_changed)
    return _recorded(repo, shadow, seen)


def full_snapshot(repo: Repo, index_file: Path, listing: Call | None = None) -> tuple[Snapshot, bytes]:
    """A snapshot for a checkpoint: rereads all ignore rules, and records the empty folders.

    `listing` lists the ignored files. Its output comes second.
    """
    shadow = shadow_of(repo, index_file, refresh=True)
    known = _KNOWN.setdefault(shadow.index, _Known())
    knows_rules = listing is not None and known.rules is not None and known.rules == signature(_exclude(shadow))
    real = signature(_real_index(repo, shadow))
    look = _calls(shadow, "--directory")
    more = [Call(shadow, _IGNORED), Call(shadow, _IGNORED, _real_index(repo, shadow))] if not knows_rules else []
    answers = ask_together([*look, *([listing] if listing else []), *more])
    looked, asked = _joined_answer(answers[: len(look)]), answers[len(answers) - len(more) :]
    ignored_files = answers[len(look)].out if listing else b""
    empty, is_all = _empty_folders(repo.root, looked.out)
    if looked.code or (asked and asked[0].code):
        seen = _look(repo, shadow)
    else:
        found = looked.out if is_all else _looked(shadow).out
        if knows_rules and (_has_rules(found) or _has_hidden_rules(repo, shadow, ignored_files)):
            real = signature(_real_index(repo, shadow))
            asked = ask_together([Call(shadow, _IGNORED), Call(shadow, _IGNORED, _real_index(repo, shadow))])
        if asked:
            known.ignored = frozenset(names(asked[0].out))
            known.real_index, known.tracked = real, _answered(repo, asked[1])
        else:
            before = known.tracked
            if _tracked(repo, shadow, found) != before:
                known.ignored = frozenset(names(git(shadow, *_IGNORED)))
        known.rules = signature(_exclude(shadow)) if not _has_rules(found) else None
        seen = _sort(repo, shadow, found, known.tracked, known.ignored)
    seen.empty_folders, seen.is_kept = empty, not is_all
    seen.unreadable += _CLOSED.findall(looked.err)
    return _recorded(repo, shadow, seen), ignored_files


def _calls(shadow: Shadow, *options: str) -> list[Call]:
    """What differs from the private index."""
    size = (signature(shadow.index) or (0, 0))[1]
    if size < _LARGE_INDEX:
        return [Call(shadow, (*_LOOK, *options))]
    return [Call(shadow, (*_OTHERS, *options)), Call(shadow, _CHANGED)]


def _looked(shadow: Shadow) -> Answer:
    return _joined_answer(ask_together(_calls(shadow)))


def _joined_answer(answers: Sequence[Answer]) -> Answer:
    """One list, as `ls-files -t` prints it."""
    first, *rest = answers
    changed = (b"C " + path + b"\0" for answer in rest for path in names(answer.out))
    code = first.code or next((answer.code for answer in rest if answer.code), 0)
    return Answer(code, first.out + b"".join(changed), first.err + b"".join(answer.err for answer in rest))


def _exclude(shadow: Shadow) -> Path:
    return shadow.git_dir / "info/exclude"


def _has_rules(listing: bytes) -> bool:
    return _RULES + b"\0" in listing


def _has_hidden_rules(repo: Repo, shadow: Shadow, ignored_files: bytes) -> bool:
    """Whether a file of rules that is ignored itself may be about an entry of the private index."""
    if not _has_rules(ignored_files):
        return False
    folders = tuple({path.rpartition(_RULES)[0] for path in names(ignored_files) if path.endswith(_RULES)})
    try:
        return any(path.startswith(folders) for path in read_index(shadow.index, repo.object_format).paths)
    except NotPlainIndex:
        return True


def _tracked(repo: Repo, shadow: Shadow, looked: bytes, *, rules_changed: bool = False) -> frozenset[bytes]:
    """Entries of the user's index that a rule ignores. Only asked for if there can be other ones than before.

    Asked in the shadow: no configuration is read, and the rules are those of the checkpoint.
    """
    known, index = _KNOWN.setdefault(shadow.index, _Known()), _real_index(repo, shadow)
    now = signature(index)
    if rules_changed or known.real_index is None or known.real_index != now:
        same = _still_tracked(repo, shadow, looked) if not rules_changed and known.real_index is not None else None
        if same is not None:
            known.real_index, known.tracked = now, same
        else:
            known.rules = None
            known.real_index, known.tracked = now, _answered(repo, ask(shadow, *_IGNORED, index=index))
    return known.tracked


def _answered(repo: Repo, answer: Answer) -> frozenset[bytes]:
    if answer.code:  # a split index has its other half in the git folder, where only git itself finds it
        answer = ask(repo, *_IGNORED)
    return frozenset(names(answer.out))


def _still_tracked(repo: Repo, shadow: Shadow, looked: bytes) -> frozenset[bytes] | None:
    """Those of before that are still in the user's index. None: it has entries that may be ignored."""
    known = _KNOWN[shadow.index]
    if known.rules is None:
        return None
    try:
        real = read_index(_real_index(repo, shadow), repo.object_format).paths
        private = read_index(shadow.index, repo.object_format).paths
    except NotPlainIndex:
        return None
    new = real - (private - known.ignored) - known.tracked
    new -= {item[2:] for item in names(looked) if item.startswith(b"? ")}
    root = os.fsencode(repo.root) + b"/"
    is_same = len(new) <= _MOST_EXTRA and not any(os.path.lexists(root + path) for path in new)
    return known.tracked & real if is_same else None


def _real_index(repo: Repo, shadow: Shadow) -> Path:
    """The user's index; a path that does not exist if it is a pipe, on which git would hang."""
    path = repo.git_dir / "index"
    return shadow.git_dir / "no-index" if is_special(path) else path


def _look(repo: Repo, shadow: Shadow, rules_changed: bool = False) -> _Seen:
    looked = _looked(shadow)
    if looked.code:  # a damaged index; it is only a cache
        shadow.index.unlink(missing_ok=True)
        looked = _looked(shadow)
    if looked.code:
        raise GitFailed(_LOOK, looked)
    rules_changed = rules_changed or _has_rules(looked.out)
    ignored = set(names(git(shadow, *_IGNORED))) if rules_changed else set()
    if rules_changed:
        _KNOWN.setdefault(shadow.index, _Known()).rules = None
    tracked = _tracked(repo, shadow, looked.out, rules_changed=rules_changed)
    seen = _sort(repo, shadow, looked.out, tracked, ignored)
    seen.unreadable += _CLOSED.findall(looked.err)
    seen.troubled = bool(seen.unreadable)
    return seen


def _sort(repo: Repo, shadow: Shadow, listing: bytes, tracked_anyway: frozenset[bytes], ignored: Set[bytes]) -> _Seen:
    paths = {item[2:] for item in names(listing)}
    seen = _Seen(drop=list(ignored - tracked_anyway))
    folders, large = [], []
    for path in paths | (tracked_anyway - ignored):
        if path.endswith(b"/"):
            if _is_repository(repo.root, path[:-1]):
                folders.append(path[:-1])
        elif (kind := _kind(repo.root, path)) == "large":
            large.append(path)
        else:
            getattr(seen, kind).append(path)
    _sort_by_index(repo, shadow, seen, folders, large)
    return seen


def _kind(root: Path, path: bytes, limit: int = LARGEST_FILE) -> str:
    full = os.fsencode(root) + b"/" + path
    try:
        found = os.lstat(full)
    except PermissionError:
        return "unreadable"
    except OSError:
        return "drop"
    is_file = stat.S_ISREG(found.st_mode)
    if _is_beyond_link(root, path) or any(part.lower() == b".git" for part in path.split(b"/")):
        return "drop"  # not in the working tree, or a name that git does not take
    if stat.S_ISDIR(found.st_mode):
        return "submodules" if _is_repository(root, path) else "drop"
    if not is_file and not stat.S_ISLNK(found.st_mode):
        return "drop"  # a pipe or a socket
    if is_file and not os.access(full, os.R_OK):
        return "unreadable"
    return "large" if is_file and found.st_size > limit else "add"


def _is_beyond_link(root: Path, path: bytes) -> bool:
    """Whether a folder on the path is a link, so that the file is elsewhere."""
    base, parts = os.fsencode(root), path.split(b"/")[:-1]
    return any(os.path.islink(base + b"/" + b"/".join(parts[: n + 1])) for n in range(len(parts)))  # noqa: PTH114


def _is_repository(root: Path, path: bytes) -> bool:
    return os.path.lexists(os.fsencode(root) + b"/" + path + b"/.git")


def _sort_by_index(repo: Repo, shadow: Shadow, seen: _Seen, folders: Sequence[bytes], large: Sequence[bytes]) -> None:
    """Nested repositories and large files: their entries in the user's index belong to the tree."""
    modes: dict[bytes, bytes] = {}
    asked = [*folders, *large]
    for start in range(0, len(asked), _FEW):
        question: tuple[str | bytes, ...] = ("ls-files", "-z", "--stage", "--", *asked[start : start + _FEW])
        answer = ask(shadow, *question, index=_real_index(repo, shadow))
        out = answer.out if answer.code == 0 else git(repo, *question)
        modes |= {item.partition(b"\t")[2]: item.partition(b" ")[0] for item in names(out)}
    for path in large:
        (seen.add if path in modes else seen.large).append(path)
    seen.drop += seen.large
    for folder in folders:
        if modes.get(folder) == b"160000":
            seen.submodules.append(folder)
        elif inner := [p for p in modes if p.startswith(folder + b"/") and _kind(repo.root, p, _NO_LIMIT) == "add"]:
            seen.add += inner  # someone ran `git init` inside a project; its files are still the project's
            seen.again = True
        else:
            seen.nested.append(folder)


def _recorded(repo: Repo, shadow: Shadow, seen: _Seen) -> Snapshot:
    for _ in range(_ROUNDS):
        try:
            tree = _record(repo, shadow, seen)
        except GitFailed:
            # The index names objects that a `git gc` has removed, or files came and went meanwhile. From scratch.
            shadow.index.unlink(missing_ok=True)
        else:
            if not seen.again:
                return _result(shadow, tree, seen)
        empty = seen.empty_folders
        seen = _look(repo, shadow)
        seen.empty_folders = empty
    return _result(shadow, _record(repo, shadow, seen), seen)


def _result(shadow: Shadow, tree: str, seen: _Seen) -> Snapshot:
    nested, large, unreadable = (tuple(sorted(paths)) for paths in (seen.nested, seen.large, seen.unreadable))
    return Snapshot(tree, nested, large, unreadable, tuple(seen.empty_folders), _KNOWN[shadow.index].tree)


def _record(repo: Repo, shadow: Shadow, seen: _Seen) -> str:
    known = _KNOWN.setdefault(shadow.index, _Known())
    if known.index is not None and known.index == signature(shadow.index):
        with suppress(NotLoose):
            return _with_changes(repo, shadow, known.tree, seen)
    if drop := [*seen.drop, *seen.unreadable]:
        git(shadow, *_DROP, stdin=_joined(drop))
    if seen.add:
        git(shadow, *_ADD, stdin=_joined(seen.add))
    for path in seen.submodules:
        ask(shadow, *_ADD, stdin=_joined([path]))  # one without a commit is left out
    if known.index is not None and known.index == signature(shadow.index) and _exists(shadow, known.tree):
        return known.tree
    known.tree = line(git(shadow, "write-tree"))
    known.index = signature(shadow.index)
    return known.tree


def _with_changes(repo: Repo, shadow: Shadow, tree: str, seen: _Seen) -> str:
    """Without git, and without a change to the index."""
    drop = [*seen.drop, *seen.unreadable]
    is_little = len(drop) + len(seen.add) <= _MOST_PLAIN and not (seen.is_kept and seen.add)
    if not is_little or seen.submodules or seen.again or any(path.endswith(_RULES) for path in (*seen.add, *drop)):
        raise NotLoose
    gone = NOTHING, repo.no_object
    wanted = dict.fromkeys(drop, gone)
    wanted |= {path: file_entry(repo, path, _LARGEST_PLAIN // len(seen.add)) or gone for path in seen.add}
    return with_entries((shadow.objects,), tree, wanted, repo.no_object)


def entry_on_disk(repo: Repo, path: bytes) -> Entry | None:
    """The same for a path of the working tree, which a link may lead out of."""
    if _is_beyond_link(repo.root, path):
        raise NotLoose
    return file_entry(repo, path)


def file_entry(repo: Repo, path: bytes, largest: int = _LARGEST_PLAIN) -> Entry | None:
    """That of a file or link as it is on disk. None: there is none. Raises NotLoose if git has to add it."""
    full = os.fsencode(repo.root) + b"/" + path
    if not has_plain_modes(repo.settings):
        raise NotLoose
    try:
        found = os.lstat(full)
        if stat.S_ISLNK(found.st_mode) and not path.rpartition(b"/")[2].lower().startswith(b".git"):
            mode, data = "120000", os.readlink(full)  # noqa: PTH115 - bytes
        elif stat.S_ISREG(found.st_mode) and found.st_size <= largest:
            mode = "100755" if found.st_mode & stat.S_IXUSR else "100644"
            with open(open_regular(Path(os.fsdecode(full))), "rb") as stream:  # noqa: PTH123 - a descriptor
                data = stream.read(largest + 1)
        else:
            raise NotLoose
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError:
        raise NotLoose from None
    if len(data) > largest:
        raise NotLoose
    return mode, write((repo.common_dir / "objects",), b"blob", data, repo.no_object)


def _exists(shadow: Shadow, name: str) -> bool:
    """Most trees that were just written are loose objects."""
    return (shadow.objects / name[:2] / name[2:]).exists() or ask(shadow, "cat-file", "-e", name).code == 0


def _joined(paths: Iterable[bytes]) -> bytes:
    return b"".join(path + b"\0" for path in sorted(paths))  # git appends in this order, and inserts in others


def _empty_folders(root: Path, listing: bytes) -> tuple[list[bytes], bool]:
    """The empty folders among the untracked ones, and whether all other files are listed one by one."""
    base = os.fsencode(root)
    empty: list[bytes] = []
    is_all = True
    for item in names(listing):
        if item.startswith(b"? ") and item.endswith(b"/") and not _is_repository(root, item[2:-1]):
            for where, folders, files in os.walk(base + b"/" + item[2:-1]):
                is_all = is_all and not files and not any(os.path.islink(where + b"/" + f) for f in folders)  # noqa: PTH114
                if not folders and not files:
                    empty.append(os.path.relpath(where, base))
                folders[:] = [f for f in folders if f != b".git"]
    return sorted(empty), is_all
