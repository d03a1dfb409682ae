"""The proof checkout: a folder outside the workspace that git moves from tree to tree.

The loop's own git folder and index are beside the checkout, where no check looks. The `.git` inside it is written again
on every move, for tools that ask git (`git describe`, `git ls-files`): whatever a check did to it is gone. Objects come
from the user's repository by `alternates`; nothing is written into that one.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import time
import zlib
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from ralph.host.bytecode import remove_stale_bytecode
from ralph.host.files import make_folder
from ralph.host.git.checkout_git import clone_submodule, config_text, sources_of, write_git_folder
from ralph.host.git.command import Call, GitFailed, ask, ask_together, git, line, names, printable
from ralph.host.git.repo import Repo
from ralph.host.git.tree_diff import DIFF, SUBMODULE, folders, index_line, parse_changes
from ralph.host.plain_file import disk_trouble
from ralph.host.removal import make_readable, remove_empty_folders, remove_file, remove_tree

_AUTHOR = {
    f"GIT_{who}_{what}": value
    for who in ("AUTHOR", "COMMITTER")
    for what, value in (("NAME", "candidate"), ("EMAIL", "candidate@localhost"))
}
_RULES = b".gitignore"
_GIT_FOLDER = ".git-folder"
_MARK = "complete"
"""In the git folder of a complete checkout: the repository that it belongs to."""


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
        nowhere = str(self.git_dir)
        return {
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_ATTR_NOSYSTEM": "1",
            "HOME": nowhere,
            "XDG_CONFIG_HOME": nowhere,
        }

    @disk_trouble()
    def compose(self, base: str, files: Mapping[str, bytes | None]) -> str:
        """The tree `base` with these files replaced, added or, if None, removed. A replaced file keeps its mode."""
        self._prepare()
        index = self.git_dir / "compose"
        index.with_name("compose.lock").unlink(missing_ok=True)
        git(self, "read-tree", base, index=index)
        modes = {}
        for item in names(git(self, "ls-files", "-z", "--stage", index=index)):
            head, _, raw = item.partition(b"\t")
            modes[raw] = head[:6].decode()
        exact = {printable(raw): raw for raw in modes if not raw.isascii() or b"\\" in raw}
        lines = []
        # Removals first, so that a file can take the place of a folder.
        for path, data in sorted(files.items(), key=lambda item: item[1] is not None):
            raw = exact.get(path) or os.fsencode(path)
            if data is None:
                lines.append(index_line(raw, "000000", self._repo.no_object))
            else:
                mode = modes.get(raw, "100644")
                lines.append(index_line(raw, "100644" if mode == SUBMODULE else mode, self._blob(data)))
        git(self, "update-index", "--replace", "-z", "--index-info", index=index, stdin=b"".join(lines))
        return line(git(self, "write-tree", index=index))

    def _blob(self, data: bytes) -> str:
        content = b"blob %d\0" % len(data) + data
        name = hashlib.new(self._repo.object_format, content, usedforsecurity=False).hexdigest()
        path = self.git_dir / "objects" / name[:2] / name[2:]
        if not path.exists():
            path.parent.mkdir(exist_ok=True)
            temporary = path.with_name("new")
            temporary.write_bytes(zlib.compress(content, 1))
            temporary.replace(path)
        return name

    def files(self, tree: str) -> dict[str, str]:
        """Path → object of every file of a tree. Submodules and paths that are not UTF-8 are left out."""
        self._prepare()
        found = {}
        for item in names(git(self, "ls-tree", "-r", "-z", tree)):
            head, _, raw = item.partition(b"\t")
            if head.startswith(b"1006") and (path := os.fsdecode(raw)).isprintable():
                found[path] = head[-len(self._repo.no_object) :].decode()
        return found

    def contents(self, objects: Collection[str]) -> dict[str, bytes]:
        """Object → content."""
        self._prepare()
        out = git(self, "cat-file", "--batch", stdin="".join(f"{name}\n" for name in objects).encode())
        found, start = {}, 0
        while start < len(out):
            end = out.index(b"\n", start)
            name, kind, *size = out[start:end].decode().split(" ")
            length = int(size[0]) if size else -1
            if kind == "blob":
                found[name] = out[end + 1 : end + 1 + length]
            start = end + 1 + length + 1
        return found

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
        answers = ask_together(calls)
        for call, answer in zip(calls, answers, strict=True):
            if answer.code:
                raise GitFailed(call.args, answer)
        is_first = not self._index.exists()
        moving = parse_changes(answers[0].out)  # from the tree to the index, so "A" is a file that vanishes
        edited = names(answers[1].out)
        self._remove_untracked(names(answers[2].out))
        written = {change.raw for change in moving if change.status != "A"}.union(edited)
        gone = [change.raw for change in moving if change.status == "A"]
        newest = self._newest(written)
        if moving or edited or is_first:
            git(self, "read-tree", "-u", "--reset", tree)
            if any(path.rpartition(b"/")[2] == _RULES for path in (*written, *gone)):
                self._remove_untracked(names(git(self, "ls-files", "-z", "--others", "--exclude-standard")))
            self._stamp(written, newest, is_first=is_first)
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
        answer = ask(self._repo, "log", "-1", "--format=%H %T", "HEAD", "--")
        head, _, tree = line(answer.out).partition(" ") if answer.code == 0 else ("", "", "")
        return head, tree

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
        base = os.fsencode(self.path) + b"/"
        for path in paths:
            with contextlib.suppress(OSError):
                times.append(os.lstat(base + path).st_mtime)
        return max(times)

    def _stamp(self, paths: Collection[bytes], newest: float, *, is_first: bool) -> None:
        """Caches of compiled files compare size and whole seconds: two versions must never share both.

        And never a moment before now: build tools rebuild what is newer than their last result.
        """
        at = max(time.time(), math.floor(newest) + 1)
        if not is_first:
            base = os.fsencode(self.path) + b"/"
            for path in paths:
                with contextlib.suppress(OSError, NotImplementedError):
                    os.utime(base + path, (at, at), follow_symlinks=False)
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
        listed = git(self, "ls-files", "-z", "--stage")
        for item in names(listed):
            head, _, raw = item.partition(b"\t")
            mode, commit, _ = head.decode().split(" ")
            path = os.fsdecode(raw)
            if (
                mode == SUBMODULE
                and raw in self._sources.submodules
                and os.path.lexists(self._repo.root / path / ".git")
            ):
                clone_submodule(self._repo.root / path, self.path / path, commit, self.surroundings)
