"""The repository a run works in. Identified once; a run stops when it is no longer the same one."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from ralph.core.errors import NotARepository, NotTrusted, SetupError
from ralph.core.text import one_line
from ralph.host.files import is_special, read_plain
from ralph.host.git.command import Answer, Call, ask_together, line
from ralph.host.git.settings import Settings, settings_of

OLDEST_GIT = (2, 30)


class RepositoryReplaced(SetupError):
    """`.git` or its parent folder is not the one the run started with. Nothing may be done in it."""


class FileId(Struct, frozen=True):
    device: int
    inode: int


class Repo(Struct, frozen=True, kw_only=True):
    root: Path
    git_dir: Path
    common_dir: Path
    """The same as `git_dir`, except in a linked worktree."""
    object_format: str
    root_id: FileId
    git_dir_id: FileId
    common_dir_id: FileId
    link: bytes = b""
    """The content of `.git` where that is a file (a worktree, a submodule)."""
    settings: Mapping[str, str] = {}
    filters: tuple[tuple[str, str], ...] = ()
    """Every `filter.*` setting: the programs git starts when it adds or checks out a file."""

    @property
    def surroundings(self) -> Mapping[str, str]:
        return {}

    @property
    def no_object(self) -> str:
        return "0" * (64 if self.object_format == "sha256" else 40)

    @property
    def hooks_folder(self) -> Path:
        if own := self.settings.get("core.hookspath"):
            return self.root / os.path.expanduser(own)  # noqa: PTH111 - an absolute one replaces the root
        return self.common_dir / "hooks"


def identify(folder: Path) -> Repo:
    """The repository whose root is `folder`. Never an outer one."""
    root = Path(os.path.realpath(folder))
    _require_folder(root)
    wanted = ("--is-bare-repository", "--is-inside-work-tree", "--absolute-git-dir", "--git-common-dir")
    outer = {"GIT_CEILING_DIRECTORIES": str(root.parent)}
    look = ("rev-parse", *wanted, "--show-object-format", "--show-toplevel")
    version, found = ask_together([Call(root, ("version",)), Call(root, look, env_extra=outer)])
    _require_version(line(version.out))
    lines = found.out.decode("utf-8", "surrogateescape").split("\n")[:-1]
    if found.code != 0 or len(lines) != 6 or lines[1] != "true" or Path(lines[5]) != root:
        raise _why_not(root, found, lines)
    git_dir, common_dir = Path(lines[2]), Path(os.path.realpath(root / lines[3]))
    settings = settings_of(root, root, (common_dir, git_dir))
    dot_git = root / ".git"
    return Repo(
        root=root,
        git_dir=git_dir,
        common_dir=common_dir,
        object_format=lines[4],
        root_id=_id(root),
        git_dir_id=_id(git_dir),
        common_dir_id=_id(common_dir),
        link=dot_git.read_bytes() if dot_git.is_file() else b"",
        settings=settings.values,
        filters=settings.filters,
    )


def _require_folder(folder: Path) -> None:
    if not folder.is_dir():
        raise NotARepository(f"the folder {folder} does not exist")
    home = Path(os.path.expanduser("~"))  # noqa: PTH111 - never fails
    for path in (home / ".gitconfig", home / ".config" / "git" / "config"):
        if is_special(path):
            raise SetupError(f"{path} is not a regular file, so git would wait for it", hint="remove it")


def _require_version(said: str) -> None:
    numbers = re.search(r"(\d+)\.(\d+)", said)
    if numbers and (int(numbers[1]), int(numbers[2])) < OLDEST_GIT:
        raise SetupError(f"{said} is too old for Ralph", hint="install git 2.30 or newer")


def _why_not(root: Path, found: Answer, lines: list[str]) -> SetupError:
    said = found.err.decode("utf-8", "replace")
    if "dubious ownership" in said or "unsafe repository" in said:
        return NotTrusted(
            f"git does not trust {root}: another user owns it",
            hint=f"if you trust it, run `git config --global --add safe.directory '{root}'`",
        )
    if lines[:1] == ["true"]:
        return NotARepository(
            f"{root} is a bare repository without a working tree",
            hint=f"work in a clone or a worktree: `git -C '{root}' worktree add ../work`",
        )
    if lines[1:2] == ["false"]:
        return NotARepository(f"{root} is inside a .git folder", hint="work in the folder that contains .git")
    if found.code == 0:
        return NotARepository(
            f"{root} is not the root of its repository: git says {one_line(lines[-1], 200)}",
            hint="pass the root of the repository; its path must not contain a line break; unset core.worktree",
        )
    if (root / ".git").is_file():
        return NotARepository(
            f"{root}/.git points to a git folder that does not exist: {found.complaint}",
            hint="run `git worktree repair`",
        )
    if not (root / ".git").exists():
        return NotARepository(f"{root} is not a git repository", hint=f"run `git -C '{root}' init`")
    return NotARepository(f"{root} is not a usable git repository: {found.complaint}", hint="run `git fsck`")


def current_settings(repo: Repo) -> Settings:
    return settings_of(repo, repo.root, (repo.common_dir, repo.git_dir))


def _id(path: Path) -> FileId:
    found = path.stat()
    return FileId(found.st_dev, found.st_ino)


def still_the_same(repo: Repo) -> None:
    """Raise RepositoryReplaced unless root and git folder are the ones that were identified."""
    _require(repo.root, repo.root_id, "the workspace")
    _require(repo.git_dir, repo.git_dir_id, "the git folder")
    _require(repo.common_dir, repo.common_dir_id, "the git folder")
    dot_git = repo.root / ".git"
    try:
        same = read_plain(dot_git) == repo.link if repo.link else stat.S_ISDIR(dot_git.lstat().st_mode)
    except OSError:
        same = False
    if not same and (repo.link or repo.git_dir == dot_git):
        raise _replaced(dot_git, "was changed")
    for name in ("objects", "refs"):
        if not (repo.common_dir / name).is_dir():
            raise _replaced(repo.common_dir / name, "is gone")
    if is_special(repo.common_dir / "packed-refs"):
        raise _replaced(repo.common_dir / "packed-refs", "is no longer a file")


def is_in_place(repo: Repo) -> bool:
    """Whether the folder that holds `.git` is the one that was identified."""
    try:
        _require(repo.root, repo.root_id, "")
    except RepositoryReplaced:
        return False
    return True


def _require(path: Path, known: FileId, what: str) -> None:
    try:
        found = path.lstat()
    except OSError:
        raise _replaced(path, "is gone", what) from None
    if stat.S_ISLNK(found.st_mode):
        raise _replaced(path, "has become a link", what)
    if not stat.S_ISDIR(found.st_mode):
        raise _replaced(path, "is no longer a folder", what)
    if FileId(found.st_dev, found.st_ino) != known:
        raise _replaced(path, "was replaced by another folder", what)


def _replaced(path: Path, how: str, what: str = "") -> RepositoryReplaced:
    return RepositoryReplaced(
        f"{what + ' ' if what else ''}{path} {how}",
        hint="check what the agent did before running again; nothing else was changed since",
    )


def find_repository(workspace: Path, wanted: str | None = None, home: Path | None = None) -> Path:
    """The root of the repository to work in: the folder itself, one right in it, or the one around it.

    A subfolder counts if it is named `wanted` or like the workspace, or if there is no other candidate.
    The search upwards ends below `home`: a repository of dotfiles is not a project.
    """
    root = Path(os.path.realpath(workspace))
    inner = _inner(root)
    if wanted:
        if chosen := next((folder for folder in inner if folder.name == wanted), None):
            return chosen
        if wanted in (".", root.name) and _has_git(root):
            return root
        raise NotARepository(f"no repository {one_line(wanted, 80)} in {root}", hint=_listing(inner))
    if _has_git(root):
        return root
    if chosen := next((folder for folder in inner if folder.name == root.name), None):
        return chosen
    real_home = Path(os.path.realpath(home or Path.home()))
    for folder in root.parents:
        if folder == real_home or root == real_home:
            break
        if _has_git(folder):
            return folder
    if len(inner) == 1:
        return inner[0]
    if inner:
        raise NotARepository(f"more than one repository in {root}", hint=_listing(inner))
    raise NotARepository(f"{root} is not in a git repository", hint=f"run `git -C '{root}' init`")


def _inner(root: Path) -> list[Path]:
    try:
        with os.scandir(root) as entries:
            folders = [Path(e.path) for e in entries if e.is_dir(follow_symlinks=False) and e.name != ".git"]
    except OSError as error:
        raise SetupError(f"could not read the folder {root}: {error.strerror}") from None
    return sorted(folder for folder in folders if _has_git(folder))


def _has_git(folder: Path) -> bool:
    return os.path.lexists(folder / ".git")


def _listing(folders: list[Path]) -> str:
    if not folders:
        return "it contains no repositories"
    return "choose one of: " + ", ".join(one_line(folder.name, 60) for folder in folders[:10])
