"""The proof checkout: a folder outside the workspace that git moves from tree to tree.

The loop's own git folder and index are beside the checkout, where no check looks. The `.git` inside it is written again
on every move, for tools that ask git (`git describe`, `git ls-files`): whatever a check did to it is gone. Objects come
from the user's repository by `alternates`; nothing is written into that one. Settings, refs and ignore rules are those
that the repository had when the run started.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from msgspec import Struct

from ralph.host.clocks import newest, set_later
from ralph.host.files import disk_trouble, make_folder
from ralph.host.git.checkpoint import head_of
from ralph.host.git.command import (
    Call,
    GitFailed,
    ask,
    ask_together,
    git,
    git_together,
    identity,
    line,
    names,
    printable,
    without_settings,
)
from ralph.host.git.loose import NotLoose, find_entry, with_entries, write
from ralph.host.git.objects import (
    DIFF,
    SUBMODULE,
    TreeEntry,
    blobs,
    folders,
    no_entry,
    parse_changes,
    parse_entries,
    set_entries,
    tree_of,
)
from ralph.host.git.repo import Repo, current_settings
from ralph.host.git.shadow import excludes_of
from ralph.host.removal import make_readable, remove_empty_folders, remove_file, remove_tree

# Settings that decide which bytes git writes for a blob. How the file system behaves is found out by `git init`.
_COPIED = frozenset({"core.autocrlf", "core.eol", "core.safecrlf", "user.name", "user.email"})
_COPIED_SECTIONS = ("filter.", "lfs.")
_REFS = ("refs/heads", "refs/tags", "refs/remotes")
_LIST_REFS = ("for-each-ref", "--format=%(objectname) %(refname)%00%(*objectname)%00", *_REFS)
_PACKED = b"# pack-refs with: peeled fully-peeled sorted \n"
_AUTHOR = identity("candidate", "candidate@localhost")
_RULES = b".gitignore"
_GIT_FOLDER = ".git-folder"
_MARK = "complete"
"""In the git folder of a complete checkout: the repository that it belongs to."""
_HEADER = 16
"""Magic number, flags, modification time and size of the source: four bytes each."""


class Sources(Struct, frozen=True):
    """Of the user's repository: everything but the objects that a second git folder needs."""

    branch: str
    """Empty when HEAD is detached."""
    refs: Mapping[bytes, bytes]
    """Name → lines of `packed-refs`."""
    settings: tuple[tuple[str, str], ...]
    exclude: bytes
    attributes: bytes
    user_attributes: bytes
    shallow: bytes
    submodules: frozenset[bytes]
    """Those of HEAD. A repository that an agent makes inside the workspace is none: no clone would have it."""


def sources_of(repo: Repo) -> Sources:
    settings = current_settings(repo).all
    own = next((value for key, value in reversed(settings) if key == "core.attributesfile"), None)
    if own is None:
        own = f"{os.environ.get('XDG_CONFIG_HOME') or '~/.config'}/git/attributes"
    branch, _ = head_of(repo)
    tree = Call(repo, ("ls-tree", "-r", "-z", "--full-tree", "HEAD"))
    refs, listed = ask_together([Call(repo, _LIST_REFS), tree])
    if refs.code:
        raise GitFailed(_LIST_REFS, refs)
    return Sources(
        branch=branch or "",
        refs=_parse_refs(refs.out),
        settings=tuple(pair for pair in settings if _is_copied(pair[0])),
        exclude=excludes_of(repo),
        attributes=_content(repo.common_dir / "info" / "attributes"),
        user_attributes=_content(repo.root / os.path.expanduser(own)),  # noqa: PTH111 - an absolute one replaces it
        shallow=_content(repo.common_dir / "shallow"),
        submodules=frozenset(path for path, entry in parse_entries(listed.out).items() if entry.mode == SUBMODULE),
    )


def _is_copied(key: str) -> bool:
    return key in _COPIED or key.startswith(_COPIED_SECTIONS)


def _parse_refs(out: bytes) -> dict[bytes, bytes]:
    fields = out.replace(b"\0\n", b"\0").split(b"\0")[:-1]
    found = {}
    for item, peeled in zip(fields[::2], fields[1::2], strict=True):
        found[item.partition(b" ")[2]] = item + b"\n" + (b"^" + peeled + b"\n" if peeled else b"")
    return found


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def config_text(sources: Sources, probed: str, attributes: Path) -> bytes:
    """`probed` is what `git init` wrote."""
    lines = [probed.rstrip("\n"), "[core]", "\tlogAllRefUpdates = false"]
    lines += [f"\tattributesFile = {_quoted(str(attributes))}", "[gc]", "\tauto = 0", "[maintenance]", "\tauto = false"]
    for key, value in sources.settings:
        section, _, name = key.partition(".")
        inner, _, name = name.rpartition(".")
        lines += [f"[{section} {_quoted(inner)}]" if inner else f"[{section}]", f"\t{name} = {_quoted(value)}"]
    return os.fsencode("\n".join(lines) + "\n")


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def write_git_folder(
    folder: Path, sources: Sources, config: bytes, alternates: list[Path], commit: str = "", index: Path | None = None
) -> None:
    """Everything but the objects. `commit` is what HEAD points to."""
    for name in ("objects/info", "refs", "info"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "objects/info/alternates").write_bytes(b"".join(os.fsencode(path) + b"\n" for path in alternates))
    (folder / "config").write_bytes(config)
    (folder / "info/exclude").write_bytes(sources.exclude)
    (folder / "info/attributes").write_bytes(sources.attributes)
    if sources.shallow:
        (folder / "shallow").write_bytes(sources.shallow)
    refs = dict(sources.refs)
    head = commit
    if sources.branch:
        own = os.fsencode(f"refs/heads/{sources.branch}")
        head = f"ref: {os.fsdecode(own)}"
        if commit:
            refs[own] = commit.encode() + b" " + own + b"\n"
    (folder / "packed-refs").write_bytes(_PACKED + b"".join(refs[ref] for ref in sorted(refs)))
    if index is not None:
        with contextlib.suppress(FileNotFoundError):
            (folder / "index").write_bytes(index.read_bytes())
    (folder / "HEAD").write_bytes(os.fsencode(head or "ref: refs/heads/none") + b"\n")


def clone_submodule(source: Path, target: Path, commit: str, env: Mapping[str, str]) -> bool:
    """Make `target` a clone of the submodule at `source`, with `commit` checked out. False: that is not possible."""
    if not (target / ".git").is_dir() or (target / ".git").is_symlink():
        remove_tree(target)
        options = ("--shared", "--no-checkout", "-q", "--template=")
        if ask(target.parent, "clone", *options, "--", str(source), str(target), env_extra=env).code:
            return False
    steps = (("checkout", "-q", "--force", "--detach", commit), ("clean", "-ffdq"))
    return all(ask(target, *step, env_extra=env).code == 0 for step in steps)


def remove_abandoned(folder: Path) -> None:
    """Remove the checkouts in a folder whose repositories no longer exist."""
    for mark in folder.glob(f"*/{_GIT_FOLDER}/{_MARK}"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            if not Path(os.fsdecode(mark.read_bytes().splitlines()[1])).exists():
                remove_tree(mark.parent.parent)


class Checkout:
    """One at a time per folder: the lock of the run sees to that."""

    def __init__(self, repo: Repo, folder: Path) -> None:
        self._repo = repo
        self.folder = folder
        self.root = self.path = folder / (repo.root.name or "repository")
        """The checkout itself."""
        self.git_dir = folder / _GIT_FOLDER
        self._sources = sources_of(repo)
        self._index = self.git_dir / "index"
        self._config = b""
        self.kept: tuple[str, ...] = ()
        """Files and folders that were put here and stay, even if the tree does not ignore them."""
        self._identity = f"{repo.common_dir}\n{repo.root}\n{repo.object_format}\n"

    @property
    def surroundings(self) -> Mapping[str, str]:
        """No configuration but that of the start of the run: a filter driver is a program."""
        return without_settings(self.git_dir)

    @disk_trouble()
    def compose(self, base: str, files: Mapping[str, bytes | None]) -> str:
        """The tree `base` with these files replaced, added or, if None, removed. A replaced file keeps its mode."""
        self._prepare()
        with contextlib.suppress(NotLoose):
            return self._composed(base, files)
        index = self.git_dir / "compose"
        index.with_name("compose.lock").unlink(missing_ok=True)
        git(self, "read-tree", base, index=index)
        known = parse_entries(git(self, "ls-files", "-z", "--stage", index=index))
        exact = {printable(raw): raw for raw in known if not raw.isascii() or b"\\" in raw}
        wanted = {}
        # Removals first, so that a file can take the place of a folder.
        for path, data in sorted(files.items(), key=lambda item: item[1] is not None):
            raw = exact.get(path) or os.fsencode(path)
            wanted[raw] = self._entry(data, known[raw].mode if raw in known else "")
        set_entries(self, wanted, index)
        return line(git(self, "write-tree", index=index))

    def _composed(self, base: str, files: Mapping[str, bytes | None]) -> str:
        """Without git."""
        objects = (self.git_dir / "objects", self._repo.common_dir / "objects")
        wanted = {}
        for path, data in files.items():
            if not path.isascii() or "\\" in path:  # it may stand for another
                raise NotLoose
            raw = path.encode()
            known = find_entry(objects, base, raw) if data is not None else None
            entry = self._entry(data, known[0] if known else "")
            wanted[raw] = entry.mode, entry.id
        return with_entries(objects, base, wanted, self._repo.no_object)

    def _entry(self, data: bytes | None, mode: str) -> TreeEntry:
        if data is None:
            return no_entry(self._repo)
        return TreeEntry("100644" if mode in ("", SUBMODULE) else mode, self._blob(data))

    def _blob(self, data: bytes) -> str:
        return write((self.git_dir / "objects",), b"blob", data, self._repo.no_object)

    def files(self, tree: str) -> dict[str, str]:
        """Path → object of every file of a tree. Submodules and paths that are not UTF-8 are left out."""
        self._prepare()
        listed = parse_entries(git(self, "ls-tree", "-r", "-z", tree)).items()
        plain = {os.fsdecode(raw): entry.id for raw, entry in listed if entry.mode.startswith("1006")}
        return {path: name for path, name in plain.items() if path.isprintable()}

    def contents(self, objects: Collection[str]) -> dict[str, bytes]:
        """Object → content."""
        self._prepare()
        return blobs(self, objects)

    @disk_trouble()
    def move(self, tree: str) -> None:
        """Make the folder equal to the tree. Ignored files stay; other untracked files and all edits go."""
        self._prepare()
        try:
            self._move(tree)
        except GitFailed:
            make_readable(self.path, frozenset())  # a check may have locked a folder
            try:
                self._move(tree)
            except GitFailed:
                self._remove()
                self._prepare()
                self._move(tree)

    def _move(self, tree: str) -> None:
        calls = [
            Call(self, ("diff-index", "--cached", "-z", "--raw", *DIFF, tree)),
            Call(self, ("diff-files", "-z", "--name-only", "--ignore-submodules=all")),
            Call(self, ("ls-files", "-z", "--others", "--exclude-standard")),
        ]
        moved, changed, untracked = git_together(calls)
        is_first = not self._index.exists()
        moving = parse_changes(moved)  # from the tree to the index, so "A" is a file that vanishes
        edited = names(changed)
        self._remove_untracked(names(untracked))
        written = {change.raw for change in moving if change.status != "A"}.union(edited)
        gone = [change.raw for change in moving if change.status == "A"]
        last = self._newest(written)
        if moving or edited or is_first:
            git(self, "read-tree", "-u", "--reset", tree)
            if any(path.rpartition(b"/")[2] == _RULES for path in (*written, *gone)):
                self._remove_untracked(names(git(self, "ls-files", "-z", "--others", "--exclude-standard")))
            self._stamp(written, last, is_first=is_first)
            self._forget_compiled(gone)
            ask(self, "update-index", "-q", "--refresh")
        self._submodules()
        remove_tree(self.path / ".git")
        alternates = [self.git_dir / "objects", self._repo.common_dir / "objects"]
        write_git_folder(self.path / ".git", self._sources, self._config, alternates, self._commit(tree), self._index)

    def scrub(self, keep: Collection[str] = ()) -> None:
        """Remove ignored files too, except `kept` and folders named `keep`: code that ran here may have written them.

        Of compiled Python only what matches its source stays. Call it after a move.
        """
        exempt = {os.fsencode(name) for name in keep}
        listed = names(git(self, "ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory"))
        self._remove_untracked(path for path in listed if exempt.isdisjoint(path.split(b"/")))
        for path in listed:
            if path.endswith(b"__pycache__/"):
                remove_stale_bytecode(self.path / os.fsdecode(path))

    def commit_parent(self) -> tuple[str, str]:
        """The user's HEAD and its tree, or two empty strings."""
        head = head_of(self._repo)[1] or ""
        tree = tree_of(self._repo, head) if head else ""
        return (head, tree) if tree else ("", "")

    def _commit(self, tree: str) -> str:
        head, head_tree = self.commit_parent()
        if head and head_tree == tree:
            return head
        parent = ("-p", head) if head else ()
        return line(git(self, "commit-tree", tree, *parent, "-m", "candidate", env_extra=_AUTHOR))

    def _prepare(self) -> None:
        """Make the folder and its git folder unless they are there and complete."""
        mark = self.git_dir / _MARK
        try:
            is_complete = (
                mark.read_bytes() == os.fsencode(self._identity) and self.path.is_dir() and not self.path.is_symlink()
            )
        except OSError:
            is_complete = False
        if is_complete and self._config:
            for lock in self.git_dir.glob("*.lock"):
                lock.unlink(missing_ok=True)
            return
        if not is_complete:
            self._remove()
            make_folder(self.folder, private=True)
            made = ("init", "-q", "--template=", f"--object-format={self._repo.object_format}")
            git(self.folder, *made, "--", str(self.path), env_extra=self.surroundings)
            (self.path / ".git").rename(self.git_dir)
            (self.git_dir / "config").rename(self.git_dir / "config.probed")
        (self.git_dir / "user-attributes").write_bytes(self._sources.user_attributes)
        probed = (self.git_dir / "config.probed").read_text()
        self._config = config_text(self._sources, probed, self.git_dir / "user-attributes")
        write_git_folder(self.git_dir, self._sources, self._config, [self._repo.common_dir / "objects"])
        (self.git_dir / "HEAD").write_text("ref: refs/heads/none\n")
        mark.write_bytes(os.fsencode(self._identity))

    def _remove(self) -> None:
        remove_tree(self.git_dir / _MARK)  # first: what is half removed must not look complete
        remove_tree(self.git_dir)
        remove_tree(self.path)

    def _remove_untracked(self, paths: Iterable[bytes]) -> None:
        kept = {os.fsencode(path) for path in self.kept}
        inside = tuple(path + b"/" for path in kept)
        around = {folder + b"/" for folder in folders(kept)}
        for path in paths:
            if path in kept or path.startswith(inside):
                continue
            if path in around:  # ignored as a whole
                self._remove_untracked(self._below(path))
                continue
            if path.endswith(b"/"):  # a repository, or a folder that is ignored
                remove_tree(self.path / os.fsdecode(path))
            else:
                remove_file(self.path, path)
            remove_empty_folders(self.path, path.rstrip(b"/").rpartition(b"/")[0], lambda folder: False)

    def _below(self, folder: bytes) -> list[bytes]:
        """What is in a folder, spelled as git does: names of folders end with a slash."""
        with os.scandir(os.fsencode(self.path) + b"/" + folder) as entries:
            return [folder + e.name + (b"/" if e.is_dir(follow_symlinks=False) else b"") for e in entries]

    def _newest(self, paths: Iterable[bytes]) -> float:
        times = [0.0]
        with contextlib.suppress(OSError, ValueError):
            times.append(float((self.git_dir / "stamp").read_text()))
        return max(*times, newest(self.path, paths))

    def _stamp(self, paths: Collection[bytes], last: float, *, is_first: bool) -> None:
        at = set_later(self.path, () if is_first else paths, last)
        (self.git_dir / "stamp").write_text(str(at + is_first))

    def _forget_compiled(self, gone: Iterable[bytes]) -> None:
        """Remove the bytecode of Python files that no longer exist."""
        for path in gone:
            folder, _, name = path.rpartition(b"/")
            if not name.endswith(b".py"):
                continue
            inner = folder + b"/" if folder else b""
            cache = inner + b"__pycache__"
            compiled = [path + b"c", path + b"o"]
            with contextlib.suppress(OSError):
                inside = os.listdir(os.fsencode(self.path) + b"/" + cache)  # noqa: PTH208 - bytes
                compiled += [cache + b"/" + entry for entry in inside if entry.startswith(name[:-2])]
            for item in compiled:
                remove_file(self.path, item)
            remove_empty_folders(self.path, cache, lambda folder: False)

    def _submodules(self) -> None:
        """Fill the folders of submodules that the workspace has filled."""
        if not self._sources.submodules:
            return
        for raw, entry in parse_entries(git(self, "ls-files", "-z", "--stage")).items():
            source, path = self._repo.root / os.fsdecode(raw), self.path / os.fsdecode(raw)
            is_submodule = entry.mode == SUBMODULE and raw in self._sources.submodules
            if is_submodule and os.path.lexists(source / ".git"):
                clone_submodule(source, path, entry.id, self.surroundings)


def remove_stale_bytecode(folder: Path) -> None:
    """Remove from a `__pycache__` what Python would load without comparing it with the source, or not load at all."""
    with contextlib.suppress(OSError):
        for path in folder.iterdir():
            if not _matches(path, folder.parent / f"{path.name.partition('.')[0]}.py"):
                with contextlib.suppress(OSError):
                    path.unlink()


def _matches(path: Path, source: Path) -> bool:
    try:
        with path.open("rb") as stream:
            header = stream.read(_HEADER)
        found = os.lstat(source)
    except OSError:
        return False
    flags, modified, size = (int.from_bytes(header[start : start + 4], "little") for start in (4, 8, 12))
    is_current = modified == int(found.st_mtime) & 0xFFFFFFFF and size == found.st_size & 0xFFFFFFFF
    return flags == 0 and is_current and not path.is_symlink()
