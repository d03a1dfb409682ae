"""Trees and blobs of a repository: read them and compare them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from ralph.host.git import loose
from ralph.host.git.command import Located, ask, git, head_of_output, line, names, printable
from ralph.host.git.repo import Repo

SUBMODULE = "160000"
_NO_MODE = "000000"
DIFF = ("--no-ext-diff", "--no-textconv", "--no-renames")
_SMALL = 100_000
_REMEMBERED = 3
_FEW = 1000
_MOST_COMPARED = 30


def tree_of(repo: Repo, commit: str) -> str:
    """The tree of a commit, given by its ID. Empty: there is no such commit."""
    key = (repo.common_dir, commit)
    if key not in _TREES:
        try:
            _TREES[key] = loose.tree_of_commit(objects_of(repo), commit)
        except loose.NotLoose:
            answer = ask(repo, "rev-parse", "--verify", "--quiet", f"{commit}^{{tree}}")
            if answer.code:
                return ""
            _TREES[key] = line(answer.out)
        if len(_TREES) > _MOST_COMPARED:
            del _TREES[next(iter(_TREES))]
    return _TREES[key]


def has_tree(repo: Repo, name: str) -> bool:
    """Whether there is such a tree, or a commit with its tree. `name` is an ID."""
    with contextlib.suppress(loose.NotLoose):
        return loose.read(objects_of(repo), loose.as_tree(objects_of(repo), name))[0] == b"tree"
    return ask(repo, "cat-file", "-e", f"{name}^{{tree}}").code == 0


def objects_of(repo: Repo) -> loose.Objects:
    return (repo.common_dir / "objects",)


def empty_tree(repo: Repo) -> str:
    return line(git(repo, "hash-object", "-t", "tree", "--stdin"))


def read_blobs(repo: Repo, names: Sequence[str], *, largest: int, most: int) -> dict[str, bytes]:
    """The content of blobs by ID, in the order given, until `most` bytes are read. Larger ones are left out."""
    found = _loose_blobs(repo, dict.fromkeys(names), largest)
    sizes = {name: len(data) for name, data in found.items()}
    if packed := [name for name in dict.fromkeys(names) if name not in found]:
        listed = "\n".join(packed).encode() + b"\n"
        check = git(repo, "cat-file", "--batch-check=%(objectname) %(objectsize)", stdin=listed)
        for item in check.decode().splitlines():
            name, _, told = item.partition(" ")
            if told.isdigit():
                sizes[name] = int(told)
    wanted: list[str] = []
    total = 0
    for name in dict.fromkeys(names):
        if (size := sizes.get(name, largest + 1)) <= largest and total + size <= most:
            wanted.append(name)
            total += size
    if packed := [name for name in wanted if name not in found]:
        found |= blobs(repo, packed)
    return {name: found[name] for name in wanted if name in found}


def _loose_blobs(repo: Repo, names: Iterable[str], largest: int) -> dict[str, bytes]:
    found = {}
    for name in names:
        with contextlib.suppress(loose.NotLoose):
            found[name] = loose.read_blob(objects_of(repo), name, largest)
    return found


def blobs(where: Located, names: Iterable[str]) -> dict[str, bytes]:
    """The content of these blobs by ID; what is missing or no blob is left out."""
    data = git(where, "cat-file", "--batch", stdin="".join(f"{name}\n" for name in names).encode())
    found, at = {}, 0
    while at < len(data):
        end = data.index(b"\n", at)
        name, kind, *size = data[at:end].decode().split(" ")
        length = int(size[0]) if size else -1
        if kind == "blob":
            found[name] = data[end + 1 : end + 1 + length]
        at = end + 2 + length
    return found


class TreeEntry(Struct, frozen=True):
    mode: str
    id: str


class Changed(Struct, frozen=True):
    """One path that differs. `path` is printable, `raw` is exact."""

    path: str
    status: str
    """"A" added, "M" modified, "T" another type, "D" deleted."""
    old_mode: str
    new_mode: str
    old_id: str
    new_id: str
    raw: bytes

    @property
    def old(self) -> TreeEntry:
        return TreeEntry(self.old_mode, self.old_id)

    @property
    def new(self) -> TreeEntry:
        return TreeEntry(self.new_mode, self.new_id)

    @property
    def is_submodule(self) -> bool:
        return SUBMODULE in (self.old_mode, self.new_mode)


_COMPARED: dict[tuple[Path, str, str], tuple[Changed, ...]] = {}
"""By IDs of objects, whose content never changes: one iteration asks for the same few several times."""
_TREES: dict[tuple[Path, str], str] = {}
_RECENT: dict[tuple[Path, str], dict[bytes, TreeEntry]] = {}


def changes(repo: Repo, old: str, new: str) -> tuple[Changed, ...]:
    """Every path that differs between two trees or commits. A rename is a deletion and an addition."""
    if old == new:
        return ()
    key = (repo.common_dir, old, new)
    if (known := _COMPARED.get(key)) is not None:
        return known
    try:
        found = _compared(repo, old, new)
    except loose.NotLoose:
        found = parse_changes(git(repo, "diff-tree", "-r", "-z", "--raw", *DIFF, old, new))
    if len(found) <= _FEW and loose.is_id(old) and loose.is_id(new):
        _COMPARED[key] = found
        if len(_COMPARED) > _MOST_COMPARED:
            del _COMPARED[next(iter(_COMPARED))]
    return found


def _compared(repo: Repo, old: str, new: str) -> tuple[Changed, ...]:
    objects, nothing = objects_of(repo), (_NO_MODE, repo.no_object)
    before, after = loose.as_tree(objects, old), loose.as_tree(objects, new)
    found = []
    for path, was, now in sorted(loose.compare(objects, before, after)):
        (old_mode, old_id), (new_mode, new_id) = was or nothing, now or nothing
        status = "A" if not was else "D" if not now else "M" if old_mode[:2] == new_mode[:2] else "T"
        found.append(Changed(printable(path), status, old_mode, new_mode, old_id, new_id, path))
    return tuple(found)


def parse_changes(out: bytes) -> tuple[Changed, ...]:
    fields = names(out)
    found = []
    for entry, path in zip(fields[::2], fields[1::2], strict=True):
        old_mode, new_mode, old_id, new_id, status = entry.decode()[1:].split(" ")
        found.append(Changed(printable(path), status[:1], old_mode, new_mode, old_id, new_id, path))
    return tuple(found)


def diff_text(repo: Repo, old: str, new: str, limit: int = 200_000) -> tuple[str, bool]:
    """The difference as a patch of at most `limit` bytes, and whether it was cut."""
    shown, cut = head_of_output(repo, "diff-tree", "-r", "-p", *DIFF, old, new, limit=limit)
    return shown.decode("utf-8", "replace"), cut


def entries(repo: Repo, tree: str) -> Mapping[bytes, TreeEntry]:
    """Every file of a tree or commit, by id. Cached, because a rollback asks for the same few repeatedly."""
    key = (repo.common_dir, tree)
    if (known := _RECENT.get(key)) is not None:
        return known
    found = _from_another(repo, tree) or parse_entries(git(repo, "ls-tree", "-r", "-z", "--full-tree", tree))
    if len(found) <= _SMALL:
        _RECENT[key] = found
        for old in list(_RECENT)[:-_REMEMBERED]:
            del _RECENT[old]
    return found


def _from_another(repo: Repo, tree: str) -> dict[bytes, TreeEntry]:
    """The entries of a tree that was asked for before, with what differs. Empty: there is none, or git has to tell."""
    for (folder, name), known in reversed(_RECENT.items()):
        if folder == repo.common_dir:
            try:
                differing = _compared(repo, name, tree)
            except loose.NotLoose:
                return {}
            found = dict(known)
            for change in differing:
                if change.status == "D":
                    del found[change.raw]
                else:
                    found[change.raw] = change.new
            is_longer = any(change.status == "A" for change in differing)
            return dict(sorted(found.items())) if is_longer else found
    return {}


def parse_entries(out: bytes) -> dict[bytes, TreeEntry]:
    """The output of `ls-tree -z` (mode, type, object) or `ls-files -z --stage` (mode, object, stage), by path."""
    found = {}
    for item in names(out):
        head, _, path = item.partition(b"\t")
        mode, second, third = head.decode().split(" ")
        found[path] = TreeEntry(mode, third if len(third) > 1 else second)
    return found


def folders(paths: Iterable[bytes]) -> set[bytes]:
    """Every folder that holds one of these, directly or indirectly."""
    found: set[bytes] = set()
    for path in paths:
        parent = path.rpartition(b"/")[0]
        while parent and parent not in found:
            found.add(parent)
            parent = parent.rpartition(b"/")[0]
    return found


def no_entry(repo: Repo) -> TreeEntry:
    """That of a path that does not exist."""
    return TreeEntry(_NO_MODE, repo.no_object)


def tree_with(repo: Repo, tree: str, wanted: Mapping[bytes, TreeEntry]) -> str:
    """The tree with these entries set; `no_entry` removes one. Raises NotLoose if git has to do it."""
    plain = {path: (entry.mode, entry.id) for path, entry in wanted.items()}
    return loose.with_entries(objects_of(repo), tree, plain, repo.no_object)


def set_entries(where: Located, wanted: Mapping[bytes, TreeEntry], index: Path | None = None) -> None:
    """Set these entries in an index, in this order, whatever is on disk; `no_entry` removes one."""
    if wanted:
        lines = (f"{entry.mode} {entry.id}\t".encode() + path + b"\0" for path, entry in wanted.items())
        git(where, "update-index", "-z", "--index-info", index=index, stdin=b"".join(lines))
