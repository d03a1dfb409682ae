"""What a project needs that git does not track: where it is in the workspace, and which command installs it."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from ralph.core.errors import SetupError
from ralph.host.copy_folder import copy_tree, fingerprint, redirect
from ralph.host.files import read_state, write_bytes
from ralph.host.git.command import Located, git, names
from ralph.host.removal import remove_tree

_FOLDERS = frozenset({"node_modules", ".venv", "venv", "vendor", ".bundle", ".yarn", "deps", "bower_components"})
_FILES = frozenset({"_version.py", ".pnp.cjs", ".pnp.loader.mjs"})
"""Files that installing writes into the project and that its code or its tools load."""
_SETTINGS = (".env", ".env.*", "local_settings.py", "*.local.json", "*.local.yaml", "*.local.yml", "*.local.toml")
_LARGEST_SETTINGS = 64 * 1024
_DEEPEST = 3
_MOST = 50

_SETUP: tuple[tuple[str, str], ...] = (
    ("uv.lock", "uv sync --frozen"),
    ("poetry.lock", "poetry install --no-interaction"),
    ("pdm.lock", "pdm sync"),
    ("Pipfile.lock", "pipenv sync --dev"),
    ("package-lock.json", "npm ci --no-audit --no-fund"),
    ("npm-shrinkwrap.json", "npm ci --no-audit --no-fund"),
    ("pnpm-lock.yaml", "pnpm install --frozen-lockfile"),
    ("yarn.lock", "yarn install --frozen-lockfile"),
    ("bun.lock", "bun install --frozen-lockfile"),
    ("bun.lockb", "bun install --frozen-lockfile"),
    ("go.mod", "go mod download"),
    ("Gemfile.lock", "bundle install"),
    ("composer.lock", "composer install --no-interaction"),
    ("mix.lock", "mix deps.get"),
)
"""Lock file and the command that installs exactly what it lists; at most one per tool. Cargo needs none."""
_PYTHON = ("uv.lock", "poetry.lock", "pdm.lock", "Pipfile.lock")
_NODE = ("package-lock.json", "npm-shrinkwrap.json", "pnpm-lock.yaml", "yarn.lock", "bun.lock", "bun.lockb")
_LISTS = frozenset({name for name, _ in _SETUP} | {"go.sum", "Cargo.lock", "Gemfile", "Pipfile", "mix.exs"})
_DEPENDENCY_KEYS = ("dependencies", "devDependencies", "peerDependencies", "optionalDependencies", "workspaces")


def setup_command(files: Iterable[str], folders: Iterable[str] = ()) -> str:
    """The command that installs what the files at the root of a project list. Empty: none is known or needed.

    `folders` are its dependency folders: requirements are only installed where there is a virtual environment.
    """
    present = set(files)
    commands = []
    for group in (_PYTHON, _NODE, [name for name, _ in _SETUP if name not in (*_PYTHON, *_NODE)]):
        listed = [command for name, command in _SETUP if name in group and name in present]
        commands += listed[:1] if group in (_PYTHON, _NODE) else listed
    environment = next((name for name in (".venv", "venv") if name in set(folders)), "")
    if environment and not present.intersection(_PYTHON):
        wanted = [f"-r {name}" for name in sorted(present) if name.startswith("requirements") and name.endswith(".txt")]
        wanted += ["-e ."] if present & {"pyproject.toml", "setup.py"} else []
        if wanted:
            commands.insert(0, f"{environment}/bin/python -m pip install -q {' '.join(wanted)}")
    return " && ".join(commands)


def is_dependency_list(path: str) -> bool:
    name = path.rpartition("/")[2]
    is_requirements = name.startswith("requirements") and name.endswith((".txt", ".in"))
    return name in _LISTS or name in ("pyproject.toml", "package.json") or is_requirements


def dependencies_digest(files: Mapping[str, bytes]) -> str:
    """Changes when the dependencies do that these files list. Other settings in the same files do not count."""
    digest = hashlib.sha256()
    for path in sorted(files):
        digest.update(path.encode() + b"\0" + _dependency_part(path.rpartition("/")[2], files[path]) + b"\0")
    return digest.hexdigest()[:16]


def _dependency_part(name: str, data: bytes) -> bytes:
    try:
        if name == "package.json":
            package = msgspec.json.decode(data, type=dict[str, object])
            return msgspec.json.encode({key: package.get(key) for key in _DEPENDENCY_KEYS}, order="sorted")
        if name == "pyproject.toml":
            import tomllib  # most runs need no TOML before the first session

            return _of_pyproject(tomllib.loads(data.decode()))
    except (msgspec.DecodeError, ValueError, TypeError):  # neither JSON nor TOML
        pass
    return data


def _of_pyproject(project: dict[str, object]) -> bytes:
    main, tool = project.get("project"), project.get("tool")
    main, tool = main if isinstance(main, dict) else {}, tool if isinstance(tool, dict) else {}
    keys = ("dependencies", "optional-dependencies", "requires-python", "scripts", "entry-points")
    poetry = tool.get("poetry")
    poetry = poetry if isinstance(poetry, dict) else {}
    parts = [
        {key: main.get(key) for key in keys},
        {key: poetry.get(key) for key in ("dependencies", "dev-dependencies", "group", "extras", "scripts")},
        project.get("dependency-groups"),
        project.get("build-system"),
        tool.get("uv"),
        tool.get("pdm"),
    ]
    return msgspec.json.encode(parts, order="sorted", enc_hook=str)


def dependency_folders(repo: Located) -> tuple[str, ...]:
    """Ignored folders and files of the workspace that hold installed dependencies, with paths from its root."""
    listed = git(repo, "ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")
    paths = [raw.decode("utf-8", "surrogateescape") for raw in names(listed)]
    return tuple(sorted(path.rstrip("/") for path in paths if is_dependency_folder(repo.root, path)))[:_MOST]


def local_settings(repo: Located) -> tuple[str, ...]:
    """Ignored files with settings of this machine, which checks may need, with paths from the root."""
    listed = git(repo, "ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")
    paths = [Path(raw.decode("utf-8", "surrogateescape")) for raw in names(listed)]
    wanted = [path for path in paths if len(path.parts) < _DEEPEST and any(map(path.match, _SETTINGS))]
    files = [path for path in wanted if (repo.root / path).is_file() and not (repo.root / path).is_symlink()]
    return tuple(sorted(str(path) for path in files if (repo.root / path).stat().st_size <= _LARGEST_SETTINGS))


def is_dependency_folder(root: Path, path: str) -> bool:
    """Whether an ignored folder (its path ends with a slash) or file is an installed dependency."""
    name = path.rstrip("/").rpartition("/")[2]
    if not path.endswith("/"):
        return name in _FILES
    if path.count("/") > _DEEPEST + 1:
        return False
    if name in _FOLDERS or name.endswith(".egg-info"):
        return True
    folder = root / path
    return (folder / "pyvenv.cfg").is_file() or next(folder.glob("*/pyvenv.cfg"), None) is not None


class Copies:
    """Copies of folders, made once and again when the original or the copy has changed."""

    def __init__(self, record: Path, redirected: Sequence[tuple[Path, Path]]) -> None:
        self._record = record
        self._redirected = redirected
        """Folders that must not be named in a copy, and what takes their place."""
        self._known: dict[str, tuple[str, str]] = {}
        """Target → fingerprints of the original and of the copy."""
        try:
            self._known = msgspec.json.decode(read_state(record), type=dict[str, tuple[str, str]])
        except (OSError, msgspec.DecodeError):
            self._known = {}
        self._pairs: dict[str, Path] = {}

    def sync(self, pairs: Iterable[tuple[Path, Path]]) -> None:
        """Make every (original, copy) current. Copies of originals that are gone are removed."""
        self._pairs = {str(target): source for source, target in pairs}
        for name in [name for name in self._known if name not in self._pairs]:
            remove_tree(Path(name))
            del self._known[name]
        for name, source in self._pairs.items():
            state = fingerprint(source)
            if self._known.get(name) != (state, fingerprint(Path(name))):
                self._copy(source, Path(name), state)
        self._write()

    def state(self) -> str:
        """Changes when one of the originals has changed since the last run."""
        return hashlib.sha256(repr(sorted((name, self._known[name][0]) for name in self._pairs)).encode()).hexdigest()

    def repair(self) -> tuple[str, ...]:
        """Undo what checks changed in the copies. Returns what could not be restored: the original changed too."""
        lost = []
        for name, source in self._pairs.items():
            before, copied = self._known.get(name, ("", ""))
            if fingerprint(Path(name)) == copied:
                continue
            if fingerprint(source) == before:
                self._copy(source, Path(name), before)
            else:
                lost.append(name)
        self._write()
        return tuple(lost)

    def accept(self) -> None:
        """The copies are as they should be, for example after a set-up command."""
        self._known = {name: (known[0], fingerprint(Path(name))) for name, known in self._known.items()}
        self._write()

    def _copy(self, source: Path, target: Path, state: str) -> None:
        self._known.pop(str(target), None)
        self._write()  # a copy that is killed half-way is not taken for a whole one
        copy_tree(source, target)
        for old, new in self._redirected:
            redirect(target, old, new)
        self._known[str(target)] = (state, fingerprint(target))

    def _write(self) -> None:
        with contextlib.suppress(UnicodeEncodeError):  # a path that is not UTF-8: copied again by the next run
            write_bytes(self._record, msgspec.json.encode(self._known), mode=0o600, durable=False)


def listed_files(root: Path, patterns: Sequence[str], key: str = "proof.files") -> tuple[str, ...]:
    """The files and folders that a setting names, with paths from the root of the workspace."""
    chosen = []
    for pattern in patterns:
        if Path(pattern).is_absolute() or ".." in Path(pattern).parts:
            raise SetupError(f"{key}: {pattern} is not inside the workspace", hint="use paths relative to it")
        chosen += [str(path.relative_to(root)) for path in sorted(root.glob(pattern))]
    return tuple(dict.fromkeys(chosen))
