"""The environment of checks in the proof checkout: its own home and caches, nothing that points to the workspace."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from ralph.core.environment import run_marks
from ralph.host.copy_folder import size_of
from ralph.host.files import make_folder
from ralph.host.removal import remove_tree
from ralph.sandbox.home import INSTALLED, TEMPORARY, XDG

_DROPPED = ("VIRTUAL_ENV", "VIRTUAL_ENV_PROMPT", "PWD", "OLDPWD", "INIT_CWD", "npm_config_local_prefix", "_")
"""Where the caller was when the run started; `VIRTUAL_ENV` comes back, redirected, if it is in the workspace."""
_CACHES = {
    "PIP_CACHE_DIR": ".cache/pip",
    "UV_CACHE_DIR": ".cache/uv",
    "npm_config_cache": ".npm",
    "YARN_CACHE_FOLDER": ".cache/yarn",
    "CARGO_HOME": ".cargo",
    "GOPATH": "go",
    "GOCACHE": ".cache/go-build",
    "GOMODCACHE": "go/pkg/mod",
    "COMPOSER_HOME": ".composer",
}
"""Caches of tools, in the home folder of the checkout. Code can read what a cache holds."""
_OWN_PROGRAMS = (".local/bin", "bin")
_LARGEST_COPY = 1_000_000_000
"""Bytes. What is larger is used where it is."""


def checkout_environment(
    base: Mapping[str, str], *, workspace: Path, checkout: Path, home: Path, run: str, import_roots: Iterable[Path] = ()
) -> dict[str, str]:
    """`base` is the environment that checks get in the workspace. `import_roots` come first on PYTHONPATH."""
    user_home = Path(base.get("HOME") or Path.home())
    env = {name: value for name, value in base.items() if name not in _DROPPED and not name.startswith("RALPH_")}
    own = {str(user_home / inner): str(home / inner) for inner in _OWN_PROGRAMS if (home / inner).is_dir()}
    env["PATH"] = os.pathsep.join(own.get(entry, entry) for entry in env.get("PATH", os.defpath).split(os.pathsep))
    env |= {name: os.pathsep.join(_redirected(env[name], workspace, checkout)) for name in _PATHS if env.get(name)}
    if inside := _inside(base.get("VIRTUAL_ENV", ""), workspace):
        env["VIRTUAL_ENV"] = str(checkout / inside)
    env |= {"HOME": str(home), "TMPDIR": str(home / "tmp"), "TEMP": str(home / "tmp"), "TMP": str(home / "tmp")}
    env |= {name: str(home / inner) for name, inner in (XDG | _CACHES).items()}
    for name, inner in INSTALLED.items():
        if name not in base and (user_home / inner).is_dir():
            env[name] = str(user_home / inner)
    is_copied = (home / ".local/lib").is_dir() or not (user_home / ".local/lib").is_dir()
    env |= {} if is_copied else {"PYTHONUSERBASE": str(user_home / ".local")}
    env["GOPROXY"] = _go_proxy(base, user_home)
    env["GOFLAGS"] = f"{base.get('GOFLAGS', '')} -modcacherw".strip()
    if roots := [str(root) for root in import_roots]:
        env["PYTHONPATH"] = os.pathsep.join([*roots, *filter(None, [env.get("PYTHONPATH", "")])])
    return env | dict([run_marks(run)[1]])


_PATHS = ("PATH", "PYTHONPATH", "NODE_PATH", "GEM_PATH", "CLASSPATH", "PERL5LIB")


def _redirected(value: str, workspace: Path, checkout: Path) -> list[str]:
    """The entries of a path list, with those in the workspace at their place in the checkout."""
    entries = value.split(os.pathsep)
    return [str(checkout / inside) if (inside := _inside(entry, workspace)) else entry for entry in entries]


def _inside(path: str, workspace: Path) -> Path | None:
    if not path:
        return None
    for plain in (Path(path), Path(os.path.realpath(path))):
        with contextlib.suppress(ValueError):
            return plain.relative_to(workspace)
    return None


def _go_proxy(base: Mapping[str, str], user_home: Path) -> str:
    """The user's downloaded modules serve as a proxy: `go` compares them with go.sum, as with any other proxy."""
    cache = Path(base.get("GOMODCACHE") or Path(base.get("GOPATH") or user_home / "go") / "pkg/mod") / "cache/download"
    own = base.get("GOPROXY", "")
    rest = own or "https://proxy.golang.org,direct"
    return f"file://{cache},{rest}" if cache.is_dir() and own != "off" else rest


class HomeSettings:
    """Settings of tools in the home folder of the checkout, as they were when the run started.

    An agent can find that folder: a `.npmrc` there with `node-options` would load code into every check."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._contents = {path: path.read_bytes() for path in self._paths() if not path.is_symlink()}
        self._kept = {*self._paths(), *self._packages()}

    def restore(self) -> None:
        """Restore changed settings, and remove new ones and new folders of Python packages."""
        for path in [*self._paths(), *self._packages()]:
            if path not in self._kept or (path in self._contents and path.is_symlink()):
                remove_tree(path)
        for path, content in self._contents.items():
            if not path.is_file() or path.read_bytes() != content:
                remove_tree(path)
                make_folder(path.parent, private=True)
                path.touch(mode=0o600)
                path.write_bytes(content)

    def _paths(self) -> list[Path]:
        """A link at the top comes before what is behind it, so that nothing is removed there."""
        places = (self._home.glob("*"), self._home.glob(".cargo/*"), self._home.glob(".config/**/*"))
        return [path for found in places for path in found if path.is_symlink() or path.is_file()]

    def _packages(self) -> list[Path]:
        return list(self._home.glob(".local/lib/python3.*"))


def home_copies(home: Path, base: Mapping[str, str]) -> list[tuple[Path, Path]]:
    """The user's own programs and Python packages, and where a copy of them belongs: an agent could write there."""
    user_home = Path(base.get("HOME") or Path.home())
    packages = [str(path.relative_to(user_home)) for path in sorted(user_home.glob(".local/lib/python3.*"))]
    folders = [inner for inner in (*_OWN_PROGRAMS, *packages) if (user_home / inner).is_dir()]
    return [(user_home / inner, home / inner) for inner in folders if size_of(user_home / inner) <= _LARGEST_COPY]


def hidden_folders(base: Mapping[str, str], workspaces: Iterable[Path], *, home: bool) -> list[Path]:
    """What checks in the checkout must not read: code there is in no commit. With `home`, also where an agent could
    put some elsewhere."""
    own = Path(base.get("HOME") or Path.home())
    return [*workspaces, *((own, *TEMPORARY) if home else ())]
