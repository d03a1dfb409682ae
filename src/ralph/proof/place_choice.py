"""Chooses how to prove, when a run starts, and tests that choice: damaged code has to turn checks red.

Ways, in this order: a checkout with copies of the workspace's dependency folders; the same with the checkout's code
first on PYTHONPATH, for an editable install outside the workspace; a checkout with the set-up command run in it; the
workspace itself. A configured set-up command is used at once.
"""

from __future__ import annotations

import hashlib
import json
import os
import posixpath
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from ralph.config.checks import ChosenCheck, set_id
from ralph.core.environment import child_environment
from ralph.core.errors import RalphError
from ralph.core.lazy_pattern import lazy_pattern
from ralph.core.text import one_line
from ralph.host.git.checkout import remove_abandoned
from ralph.host.process.enclosure import Enclosure
from ralph.host.process.fence import Fence
from ralph.proof.dependencies import Copies, dependency_folders, listed_files, local_settings
from ralph.proof.environment import HomeSettings, checkout_environment, hidden_folders, home_copies
from ralph.proof.file_table import Role, is_collected, role_of
from ralph.proof.place import (
    IN_PLACE,
    CheckoutPlace,
    Known,
    Place,
    Ran,
    Request,
    counterpart,
    elsewhere,
    last_choice,
    make_checkout,
    remember,
    setup_of,
    telling_line,
    workspace_place,
)
from ralph.sandbox.home import prepare_home, readable_folders

_MOST = 3
_MOST_ROOTS = 8
_DAMAGE = "this file is damaged on purpose"
_SHEBANG = lazy_pattern(rb"\A#![^\n]*\n")
_LINES: dict[str, str] = {
    ".py": f"raise RuntimeError({_DAMAGE!r})",
    **dict.fromkeys((".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".cts", ".tsx"), f"throw new Error({_DAMAGE!r});"),
    ".go": f")]}} {_DAMAGE}",
    ".rs": f'compile_error!("{_DAMAGE}");',
    ".rb": f"raise {_DAMAGE!r}",
    ".php": f"<?php throw new Exception({_DAMAGE!r}); ?>",
    ".ex": f"raise {_DAMAGE!r}".replace("'", '"'),
    ".sh": "exit 97",
    ".bash": "exit 97",
    **dict.fromkeys((".c", ".cc", ".cpp", ".h", ".hpp"), f"#error {_DAMAGE}"),
    **dict.fromkeys((".java", ".kt", ".scala", ".swift", ".cs", ".lua", ".pl", ".hs"), f")]}} {_DAMAGE}"),
}
"""Ending → the line that is put at the top of a file."""
_OTHER_FOLDERS = frozenset({"docs", "doc", "examples", "example", "scripts", "bench", "benchmarks", "migrations"})
_SETUP_NAME = lazy_pattern(r"(?:^|\.)(?:config|setup|conf|rc)\.\w+$|^(?:setup|noxfile|tasks|manage)\.py$|\.d\.ts$")
_PY_IMPORT = lazy_pattern(
    rb"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import[ \t]+\(?([\w, \t]*)|import[ \t]+([\w., \t]+))", re.M
)
_JS_IMPORT = lazy_pattern(rb"""(?:from|import|require\(|import\()\s*["'](\.{1,2}/[^"'\n]*)["']""")


def is_source(path: str) -> bool:
    *folders, name = path.split("/")
    is_known = posixpath.splitext(name)[1] in _LINES and role_of(path) is Role.SOURCE
    return is_known and not _SETUP_NAME.search(name) and not _OTHER_FOLDERS.intersection(folders)


def to_damage(paths: Iterable[str], tests: Mapping[str, bytes]) -> tuple[str, ...]:
    """At most three source files: first those that tests import, then those next to tests, then any."""
    sources = sorted(path for path in paths if is_source(path))
    imported = imported_by(tests, sources)
    homes = {posixpath.dirname(path) for path in tests}

    def order(path: str) -> tuple[int, bool, str]:
        return -imported.get(path, 0), posixpath.dirname(path) not in homes, path

    return tuple(sorted(sources, key=order)[:_MOST])


def imported_by(tests: Mapping[str, bytes], sources: Sequence[str]) -> dict[str, int]:
    """Source file → how many tests import it directly."""
    known = set(sources)
    modules: dict[str, list[str]] = {}
    for path in sources:
        if path.endswith(".py"):
            parts = path[:-3].removesuffix("/__init__").split("/")
            for start in range(len(parts)):
                modules.setdefault(".".join(parts[start:]), []).append(path)
    count: dict[str, int] = {}
    for path, data in tests.items():
        for source in {*_python_imports(data, modules), *_script_imports(path, data, known)}:
            count[source] = count.get(source, 0) + 1
    return count


def _python_imports(data: bytes, modules: Mapping[str, list[str]]) -> Iterable[str]:
    for match in _PY_IMPORT.finditer(data):
        module, members, plain = (part.decode() if part else "" for part in match.groups())
        wanted = [f"{module}.{name.split()[0]}" for name in members.split(",") if name.strip()] if module else []
        wanted += [module] if module else [name.split()[0] for name in plain.split(",") if name.strip()]
        for name in wanted:
            yield from modules.get(name.lstrip("."), ())


def _script_imports(path: str, data: bytes, known: set[str]) -> Iterable[str]:
    for match in _JS_IMPORT.finditer(data):
        target = posixpath.normpath(posixpath.join(posixpath.dirname(path), match[1].decode("utf-8", "replace")))
        stem = posixpath.splitext(target)[0]
        endings = [ending for ending in _LINES if ending.endswith(("s", "sx"))]
        yield from {target, *(base + e for base in (target, stem, f"{target}/index") for e in endings)} & known


def damaged(path: str, data: bytes) -> bytes:
    """The file with a first line that fails when it is compiled or loaded."""
    start = match[0] if (match := _SHEBANG.match(data)) else b""
    return start + _LINES[posixpath.splitext(path)[1]].encode() + b"\n" + data[len(start) :]


def import_roots(paths: Iterable[str]) -> tuple[str, ...]:
    """Folders from which the project's Python packages are imported; the root of the project is `.`."""
    present = set(paths)
    roots: dict[str, None] = {}
    for path in sorted(path for path in present if path.endswith(".py") and is_source(path)):
        folder = posixpath.dirname(path)
        while folder and f"{folder}/__init__.py" in present:
            folder = posixpath.dirname(folder)
        roots[folder or "."] = None
    if any(path.startswith("src/") for path in present):
        roots.setdefault("src")
    return tuple(sorted(roots, key=lambda root: (root == ".", root.count("/"), root))[:_MOST_ROOTS])


def python_of(command: str) -> str:
    """The command for the Python interpreter that a check uses. Empty: it does not look like Python."""
    words = _words(command)
    for number, word in enumerate(words):
        folder, _, name = word.rpartition("/")
        if re.fullmatch(r"python[\d.]*", name):
            return shlex.join(words[: number + 1])
        if name in ("pytest", "py.test", "nose2", "tox", "coverage", "green", "trial"):
            return shlex.join([*words[:number], f"{folder}/python" if folder else "python3"])
    return ""


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError:
        return command.split()


def where_python_reads(command: str, path: str) -> str:
    """A shell command that prints the file from which the check would import the package of a source file."""
    interpreter = python_of(command)
    if not interpreter or not path.endswith(".py"):
        return ""
    name = next((part for part in path[:-3].split("/") if part not in ("src", "lib", "python")), "")
    code = (
        "import importlib.util as u, sys\n"
        f"{'' if ' -m ' in f' {command} ' else 'sys.path.pop(0)'}\n"
        f"s = u.find_spec({name!r})\n"
        "print(s and (list(s.submodule_search_locations or ()) or [s.origin])[0] or '')"
    )
    return f"{interpreter} -c {shlex.quote(code)}"


def where_node_reads(package: str) -> str:
    """A shell command that prints the file that `require` finds for a package."""
    code = f"console.log(require('fs').realpathSync(require.resolve({package!r})))"
    return f"node -e {shlex.quote(code)}"


_MOST_TESTS = 300
_BESIDE = (".venv", "venv", "node_modules")
HOME, WORKSPACE = "home", "workspace"
COPIED, IMPORT_ROOTS, SET_UP = "copied", "import-roots", "set-up"


class Chosen(Struct, frozen=True):
    place: Place
    ran: tuple[Ran, ...] = ()
    """The checks on the first tree, if they ran."""


def choose_place(request: Request, tree: str, checks: Sequence[ChosenCheck], without: Sequence[str] = ()) -> Chosen:
    """`checks` are those that pass in the workspace without some files; `tree` is what is committed there."""
    if without:
        tree = make_checkout(request).compose(tree, dict.fromkeys(without))
    return _Choice(request, tree, tuple(checks)).choose()


class _Choice:
    def __init__(self, request: Request, tree: str, checks: tuple[ChosenCheck, ...]) -> None:
        self._request = request
        self._tree = tree
        self._checks = checks
        self._checkout = make_checkout(request)
        self._base = child_environment(request.env, request.agent_env, everything=request.pass_all_env)
        self._home = self._checkout.folder / ".home"
        self._root = counterpart(request, self._checkout.folder)
        self._copies = Copies(self._checkout.folder / "copies.json", self._redirections())
        self._paths = self._checkout.files(tree) if request.where != IN_PLACE else {}

    def choose(self) -> Chosen:
        if self._request.where == IN_PLACE:
            return Chosen(workspace_place(self._request, "proof runs in the workspace (proof.where: in-place)"))
        if self._root is None:
            return Chosen(workspace_place(self._request, elsewhere(self._request)))
        try:
            return self._choose()
        except (RalphError, OSError) as error:
            return Chosen(
                workspace_place(
                    self._request, f"proof runs in the workspace: no clean checkout: {one_line(str(error), 200)}"
                )
            )

    def _choose(self) -> Chosen:
        remove_abandoned(self._checkout.folder.parent)
        prepare_home(self._home, self._base)
        ways = self._ways()
        first = self._open(ways[0])
        key = self._key(first)
        known = last_choice(self._request)
        if known is not None and known.key == key:
            if known.way == IN_PLACE:
                return Chosen(workspace_place(self._request, known.note))
            place = first if known.way == ways[0] else self._open(known.way)
            if not place.prepare(self._tree):
                place.note = known.note
                self._enclose(place, known.hidden)
                place.watched, place.settings = self._packages(place), HomeSettings(self._home)
                return Chosen(place)
        reasons = []
        for way in ways:
            place = first if way == ways[0] else self._open(way)
            reason, ran = self._try(place)
            if not reason:
                remember(self._request, self._known(key, way, place.note, self._hide(place)))
                place.watched, place.settings = self._packages(place), HomeSettings(self._home)
                return Chosen(place, ran)
            reasons.append(reason)
        note = f"proof runs in the workspace: {reasons[0]}"
        if not self._is_stopped():
            remember(self._request, self._known(key, IN_PLACE, note))
        return Chosen(workspace_place(self._request, note))

    def _known(self, key: str, way: str, note: str, hidden: str = "") -> Known:
        return Known(key, way, note, hidden, self._request.setup, self._request.files)

    def _ways(self) -> list[str]:
        if self._request.setup not in ("auto", "none"):
            return [SET_UP]
        ways = [COPIED]
        if any(path.endswith(".py") for path in self._paths):
            ways.append(IMPORT_ROOTS)
        return [*ways, SET_UP] if setup_of(self._request, dependency_folders(self._request.repo)) else ways

    def _open(self, way: str) -> CheckoutPlace:
        assert self._root is not None
        folders = dependency_folders(self._request.repo)
        self._copy(way)
        roots = [self._checkout.path / root for root in import_roots(self._paths)] if way == IMPORT_ROOTS else []
        env = checkout_environment(
            self._base,
            workspace=self._request.workspace,
            checkout=self._root,
            home=self._home,
            run=self._request.run,
            import_roots=roots,
        )
        if way != SET_UP:
            env = {"UV_NO_SYNC": "1"} | env  # `uv run` would build the project again, for which it needs the network
        place = CheckoutPlace(
            self._checkout,
            self._request.runner,
            env,
            root=self._root,
            copies=self._copies,
            setup=setup_of(self._request, folders),
            is_set_up=way == SET_UP,
            recopy=lambda: self._copy(way),
        )
        if walls := self._request.runner.walls:
            hidden = (self._request.repo.root, self._request.workspace)
            place.fence = walls.around_checkout(self._checkout.folder, self._needed(place), hidden)
            place.is_walled = place.fence is not None
        return place

    def _copy(self, way: str) -> None:
        """Copy what git does not track and the checks need. The checkout has to exist before it is filled."""
        request, checkout = self._request, self._checkout
        if not checkout.path.is_dir():
            checkout.move(self._tree)
        folders = dependency_folders(request.repo) if way != SET_UP else ()
        inner = [*folders, *listed_files(request.repo.root, request.files)]
        checkout.kept = (*inner, *(dependency_folders(checkout) if way == SET_UP else ()))
        pairs = [(request.repo.root / path, checkout.path / path) for path in inner]
        if self._root == checkout.folder:
            beside = [(request.workspace / name, checkout.folder / name) for name in _BESIDE]
            pairs += [pair for pair in beside if pair[0].is_dir()]
        self._copies.sync([*pairs, *home_copies(self._home, self._base)])

    def _redirections(self) -> list[tuple[Path, Path]]:
        request, checkout = self._request, self._checkout
        pairs = [(request.repo.root, checkout.path)]
        if self._root == checkout.folder:
            pairs.append((request.workspace, checkout.folder))
        return pairs

    def _try(self, place: CheckoutPlace) -> tuple[str, tuple[Ran, ...]]:
        """Why proof does not work there, or an empty string; and the checks that ran."""
        if reason := place.prepare(self._tree):
            return f"{reason} (set proof.setup)", ()
        ran = place.run(self._tree, self._checks)
        for check, one in zip(self._checks, ran, strict=False):
            if check.required and not one.result.passed:
                return self._why_not(check.command, one.output.decode("utf-8", "replace")), ()
        if self._is_stopped():
            return "the run was stopped", ()
        return self._self_test(place), ran

    def _why_not(self, command: str, output: str) -> str:
        line = telling_line(output).replace(str(self._checkout.path), ".")
        why = f"`{command}` passes there but fails in a clean checkout: {one_line(line, 200)}"
        if needed := [path for path in local_settings(self._request.repo) if Path(path).name in output]:
            files = json.dumps([*self._request.files, *needed])
            return f"{why} (git ignores {', '.join(needed)}: run `ralph config set proof.files {shlex.quote(files)}`)"
        return f"{why} (set proof.setup or proof.files)"

    def _self_test(self, place: CheckoutPlace) -> str:
        """Why checks there say nothing about the checkout's code, or an empty string."""
        if not self._checks:
            return ""
        tests = {path: name for path, name in sorted(self._paths.items()) if is_collected(path)}
        tests = dict(list(tests.items())[:_MOST_TESTS])
        contents = self._checkout.contents(set(tests.values()))
        targets = to_damage(self._paths, {path: contents.get(name, b"") for path, name in tests.items()})
        if not targets:
            return ""
        originals = self._checkout.contents({self._paths[path] for path in targets})
        changed = {path: damaged(path, originals.get(self._paths[path], b"")) for path in targets}
        ran = place.run(place.compose(self._tree, changed), self._checks)
        green = [check for check, one in zip(self._checks, ran, strict=False) if one.result.passed]
        reading = next((said for check in green if (said := self._reads_workspace(place, check, targets))), "")
        place.checkout.move(self._tree)
        if reading:
            return reading
        if len(green) == len(self._checks) and not self._is_stopped():
            place.note = f"no check notices when {', '.join(targets)} is damaged"
        return ""

    def _hide(self, place: CheckoutPlace) -> str:
        """Hide as much from the checks as they can do without. Returns what is hidden."""
        if place.is_walled:
            return ""
        for hidden in (HOME, WORKSPACE):
            self._enclose(place, hidden)
            if place.fence is None:
                return ""
            ran = place.run(self._tree, self._checks)
            if all(one.result.passed or not one.result.required for one in ran):
                return hidden
            if isinstance(place.fence, Fence):
                place.fence.close()
        place.fence = None
        return ""

    def _enclose(self, place: CheckoutPlace, hidden: str) -> None:
        if place.is_walled:
            return
        place.fence = self._fence(place, hidden)
        place.tried = frozenset((check.command, check.cwd) for check in self._checks)
        weaker = self._fence(place, WORKSPACE) if hidden == HOME else place.fence

        def weaker_for(check: ChosenCheck) -> tuple[Enclosure | None, ...]:
            names_workspace = str(self._request.workspace) in check.command
            return (weaker, None) if names_workspace else (weaker,)

        place.weaker = weaker_for

    def _fence(self, place: CheckoutPlace, hidden: str) -> Fence | None:
        if not hidden:
            return None
        request = self._request
        workspaces = {request.repo.root, request.workspace}
        return Fence.make(hidden_folders(self._base, workspaces, home=hidden == HOME), self._needed(place))

    def _needed(self, place: CheckoutPlace) -> list[Path]:
        """What checks have to read, although it may be in a hidden folder."""
        request, checkout = self._request, self._checkout
        commands = [check.command for check in self._checks]
        needed = [request.repo.common_dir / name for name in ("objects", "modules", "lfs")]
        needed += [checkout.folder, *readable_folders(self._base, place.env, commands)]
        pythons = [os.path.realpath(checkout.path / folder / "bin/python") for folder in checkout.kept]
        needed += [Path(python).parent.parent for python in pythons if not python.startswith(str(checkout.folder))]
        return [path for path in needed if path.is_relative_to(request.repo.common_dir) or self._is_outside(path)]

    def _is_outside(self, path: Path) -> bool:
        """Neither in the workspace nor around it: such a rule would show it again."""
        roots = (self._request.repo.root, self._request.workspace)
        real = Path(os.path.realpath(path))
        return not any(real.is_relative_to(root) or root.is_relative_to(real) for root in roots)

    def _reads_workspace(self, place: CheckoutPlace, check: ChosenCheck, targets: Sequence[str]) -> str:
        for target in targets:
            commands = [where_python_reads(check.command, target) or where_python_reads("python3", target)]
            if package := self._package_of(target):
                commands.append(where_node_reads(package))
            for command in filter(None, commands):
                answer = place.shell(command, check.cwd).out.decode("utf-8", "replace").strip()
                found = Path(os.path.realpath(answer)) if answer.startswith("/") else None
                if found and found.is_relative_to(self._request.repo.root):
                    return f"`{check.command}` reads {found} even in a clean checkout (set proof.setup)"
        return ""

    def _packages(self, place: CheckoutPlace) -> tuple[Path, ...]:
        """The folders outside the checkout from which Python imports packages, if this user may write there."""
        if not any(path.endswith(".py") for path in self._paths):
            return ()
        python = next((found for check in self._checks if (found := python_of(check.command))), "python3")
        code = shlex.quote("import sys; print(chr(10).join(sys.path))")
        listed = place.shell(f"{python} -c {code}").out.decode("utf-8", "replace").split("\n")
        folders = [Path(entry) for entry in listed if entry.startswith("/") and entry.endswith("-packages")]
        own = self._checkout.folder
        return tuple(each for each in folders if not each.is_relative_to(own) and os.access(each, os.W_OK))

    def _package_of(self, path: str) -> str:
        """The name of the Node package that a source file belongs to."""
        if path.endswith(".py"):
            return ""
        folder = Path(path).parent
        while str(folder) != "." and f"{folder}/package.json" not in self._paths:
            folder = folder.parent
        name = self._paths.get(str(folder / "package.json"), "")
        try:
            package = msgspec.json.decode(self._checkout.contents({name})[name], type=dict[str, object])
        except (msgspec.DecodeError, KeyError):
            return ""
        return str(package.get("name", ""))

    def _key(self, place: CheckoutPlace) -> str:
        parts = [
            "2" if not place.is_walled else "walled",
            set_id(self._checks),
            self._request.setup,
            *self._request.files,
            str(self._checkout.path),
            self._copies.state(),
            place.dependencies(self._tree),
        ]
        return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()

    def _is_stopped(self) -> bool:
        stop = self._request.runner.stop
        return stop is not None and stop.requested
