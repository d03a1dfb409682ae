"""A private git folder next to the private index, for reading the working tree as raw bytes.

It shares the objects of the repository and nothing else: neither its configuration, attributes and filters, nor the
user's. So a snapshot holds the bytes on disk, whatever line endings or filters a commit would convert, and nothing an
agent wrote into `.git` can run a program or hide a file while the loop looks.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from ralph.host.files import keep_aside, make_folder
from ralph.host.git.command import without_settings
from ralph.host.git.repo import Repo

_ATTRIBUTES = "* -text -eol -crlf -ident -filter -working-tree-encoding\n"
_FILES = ("config", "info/attributes", "info/exclude", "HEAD")
_COPIED = ("filemode", "symlinks", "ignorecase", "precomposeunicode", "trustctime", "checkstat")


class Shadow(Struct, frozen=True):
    root: Path
    git_dir: Path
    objects: Path
    index: Path

    @property
    def surroundings(self) -> Mapping[str, str]:
        """No file outside this folder is read as configuration."""
        own = {"GIT_OBJECT_DIRECTORY": str(self.objects), "GIT_INDEX_FILE": str(self.index)}
        return own | without_settings(self.git_dir)


def shadow_of(repo: Repo, index_file: Path, *, refresh: bool = False) -> Shadow:
    """The shadow next to `index_file`, created if missing.

    With `refresh` the ignore rules that are not in the tree (`info/exclude`, the user's own) are read again. That is
    for a checkpoint; after an agent ran, the rules of the checkpoint hold.
    """
    folder = index_file.with_name(f"{index_file.name}.git")
    shadow = Shadow(repo.root, folder, repo.common_dir / "objects", index_file)
    for path in (index_file, *(folder / name for name in _FILES)):
        _remove_special(path)
    is_new = not all((folder / name).exists() for name in _FILES)
    if is_new:
        make_folder(folder / "refs", private=True)
        make_folder(folder / "info", private=True)
    if is_new or refresh:
        _write(folder / "config", _config(repo).encode())
        _write(folder / "info/attributes", _ATTRIBUTES.encode())
        _write(folder / "info/exclude", excludes_of(repo))
        _write(folder / "HEAD", b"ref: refs/heads/none\n")  # last: it says that the others are there
    with contextlib.suppress(FileNotFoundError):
        # Runs are exclusive, so a lock on our own index is from a git that was killed.
        index_file.with_name(f"{index_file.name}.lock").unlink()
    return shadow


def store_of(index_file: Path) -> Path:
    """Where copies of the repository's configuration and hooks are stored, and of what an agent replaced them with."""
    return index_file.with_name(f"{index_file.name}.kept")


def moments_of(index_file: Path) -> Path:
    """Where copies of the user's index and the branch lists are stored, for the last few checkpoints only."""
    return index_file.with_name(f"{index_file.name}.moments")


def ignored_of(index_file: Path) -> Path:
    """Where copies of small ignored files are stored."""
    return index_file.with_name(f"{index_file.name}.ignored")


def _remove_special(path: Path) -> None:
    """git would wait for a named pipe for ever. All of these files can be made again."""
    with contextlib.suppress(FileNotFoundError):
        mode = path.lstat().st_mode
        if stat.S_ISDIR(mode):
            keep_aside(path)
        elif not stat.S_ISREG(mode):
            path.unlink()


def _write(path: Path, data: bytes) -> None:
    try:
        if path.read_bytes() == data:
            return
    except OSError:
        pass
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_bytes(data)
    temporary.replace(path)


def _config(repo: Repo) -> str:
    lines = [
        "[core]",
        "bare = false",
        "autocrlf = false",
        "safecrlf = false",
        "protectNTFS = false",
        "protectHFS = false",
    ]
    lines += [f"{name} = {value}" for name in _COPIED if (value := repo.settings.get(f"core.{name}", "")).isalnum()]
    if repo.object_format == "sha1":
        return "\n".join([*lines, "repositoryformatversion = 0", ""])
    lines += ["repositoryformatversion = 1", "[extensions]", f"objectFormat = {repo.object_format}", ""]
    return "\n".join(lines)


def excludes_of(repo: Repo) -> bytes:
    """The user's ignore file, then the repository's, which wins."""
    own = repo.settings.get("core.excludesfile")
    if own is None:
        base = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
        own = f"{base}/git/ignore"
    path = repo.root / os.path.expanduser(own)  # noqa: PTH111 - an absolute one replaces the root
    texts = []
    for source in (path, repo.common_dir / "info" / "exclude"):
        with contextlib.suppress(OSError):
            texts.append(source.read_bytes())
    return b"\n".join(texts) + b"\n"
