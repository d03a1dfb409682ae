"""A home folder of its own for what runs inside: settings of tools without their secrets, and where tools are."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from ralph.core.lazy_pattern import lazy_pattern
from ralph.host.files import is_special, make_folder, read_state
from ralph.host.git.command import ask, line
from ralph.host.removal import remove_tree

XDG = {
    "XDG_CACHE_HOME": ".cache",
    "XDG_CONFIG_HOME": ".config",
    "XDG_DATA_HOME": ".local/share",
    "XDG_STATE_HOME": ".local/state",
}
INSTALLED = {
    "RUSTUP_HOME": ".rustup",
    "PYENV_ROOT": ".pyenv",
    "NVM_DIR": ".nvm",
    "ASDF_DATA_DIR": ".asdf",
    "MISE_DATA_DIR": ".local/share/mise",
    "VOLTA_HOME": ".volta",
    "SDKMAN_DIR": ".sdkman",
    "RBENV_ROOT": ".rbenv",
    "PLAYWRIGHT_BROWSERS_PATH": ".cache/ms-playwright",
    "COREPACK_HOME": ".cache/node/corepack",
}
"""Programs that are installed in the user's home folder: they are used from there."""
_LINKED = (".cargo/registry/cache", ".cargo/registry/index", ".cargo/git/db")
"""Downloads that the tool compares with the checksums of a lock file when it unpacks them."""
_COPIED = (".cargo/config.toml", ".cargo/config", ".npmrc", ".yarnrc", ".config/pip/pip.conf")
"""Settings of tools, without lines that hold a password or token."""
_SECRET = lazy_pattern(rb"_auth|password|token|://[^/\s:@]*:[^/\s@]+@", re.IGNORECASE)
_GIT_SETTINGS = ("user.name", "user.email", "init.defaultBranch")
TEMPORARY = tuple(map(Path, ("/tmp", "/var/tmp", "/dev/shm")))
_TOOLS = (
    ".cargo/bin", ".cargo/registry", ".cargo/git", ".rustup", ".pyenv", ".nvm", ".fnm", ".volta", ".asdf", ".rbenv",
    ".sdkman", ".m2", ".gradle", ".deno", ".bun", ".ghcup", ".opam", ".dotnet", ".nuget", ".pub-cache", ".hex", ".mix",
    ".gem", "go/pkg/mod", ".local/share/pipx", ".local/pipx", ".local/share/uv", ".local/share/mise",
    ".local/share/fnm", ".local/share/pnpm", ".cache/ms-playwright", ".cache/node/corepack",
)  # fmt: skip
"""Where tools and what they download are in a home folder."""


def own_path(home: Path, inner: str, *, is_folder: bool = False) -> Path:
    """A path in a folder that an agent has used, without what it may have planted on the way: links lead elsewhere, a
    file can be where a folder was, and a pipe where a file was."""
    path, parts = home, Path(inner).parts
    for number, part in enumerate(parts, 1):
        path /= part
        is_last = number == len(parts)
        is_wrong = path.exists() and path.is_dir() == (is_last and not is_folder)
        if is_wrong or path.is_symlink() or is_special(path):
            remove_tree(path)
    return path


def prepare_home(home: Path, base: Mapping[str, str]) -> None:
    """Make the home folder of the checkout. What it copies is as it is now, at the start of a run."""
    user_home = Path(base.get("HOME") or Path.home())
    for inner in ("tmp", *XDG.values(), ".cargo"):
        make_folder(own_path(home, inner, is_folder=True), private=True)
    settings = [(key, ask(user_home, "config", "--global", key).out) for key in _GIT_SETTINGS]
    lines = [f"[{key.partition('.')[0]}]\n\t{key.partition('.')[2]} = {_quoted(line(v))}\n" for key, v in settings if v]
    own_path(home, ".gitconfig").write_bytes(os.fsencode("".join(lines)))
    cargo = Path(base.get("CARGO_HOME") or user_home / ".cargo")
    for inner in _LINKED:
        source, target = cargo / inner.removeprefix(".cargo/"), home / inner
        if source.is_dir():
            make_folder(own_path(home, str(Path(inner).parent), is_folder=True))
        if source.is_dir() and not os.path.lexists(target):
            target.symlink_to(source)
    for inner in _COPIED:
        _copy_file(user_home / inner, own_path(home, inner))


def _copy_file(source: Path, target: Path) -> None:
    target.unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        lines = read_state(source).splitlines(keepends=True)
        data = b"".join(text for text in lines if not _SECRET.search(text))
        make_folder(target.parent)
        target.touch(mode=0o600)
        target.write_bytes(data)


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def program_places(program: Path) -> Iterator[Path]:
    """A program, what is beside it, and what it was installed with: all of its `node_modules`, or its virtualenv."""
    for path in dict.fromkeys((program, Path(os.path.realpath(program)))):
        yield path.parent
        if not path.is_symlink():
            yield path
        outer = [folder for folder in path.parents if folder.name == "node_modules"]
        yield from outer[-1:]
        if (path.parent.parent / "pyvenv.cfg").is_file():
            yield path.parent.parent
            yield from (Path(os.path.realpath(path.parent / name)).parent.parent for name in ("python", "python3"))


def readable_folders(base: Mapping[str, str], env: Mapping[str, str], commands: Iterable[str]) -> list[Path]:
    """Folders with programs and toolchains, which checks need wherever they are."""
    own = Path(base.get("HOME") or Path.home())
    programs = [Path(entry) for entry in env.get("PATH", "").split(os.pathsep) if entry.startswith("/")]
    words = {word for command in commands for word in re.findall(r"/[^\s'\"=:;|&()]+", command)}
    programs += [Path(word).parent for word in sorted(words)]
    folders = [own / inner for inner in _TOOLS] + [Path(env[name]) for name in INSTALLED if env.get(name)]
    for folder in programs:
        folders.append(folder)
        folders += [Path(os.path.realpath(folder / name)).parent.parent for name in ("python3", "node", "ruby")]
        if folder.name in ("bin", "sbin", "shims", "Scripts"):
            folders.append(folder.parent)
    too_much = {Path("/"), own, own / ".local", *own.parents, *TEMPORARY}
    return [folder for folder in dict.fromkeys(folders) if folder not in too_much and os.access(folder, os.R_OK)]
