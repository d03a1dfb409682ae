"""The proof tests itself: which source files to damage, how, and where an import is really read from. Pure.

Tests in the checkout can import the workspace's code by an editable install. Then they stay green whatever the
checkout holds, and prove nothing.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence

from ralph.proof.file_table import Role, role_of

_MOST = 3
_MOST_ROOTS = 8
_DAMAGE = "this file is damaged on purpose"
_SHEBANG = re.compile(rb"\A#![^\n]*\n")
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
_SETUP_NAME = re.compile(r"(?:^|\.)(?:config|setup|conf|rc)\.\w+$|^(?:setup|noxfile|tasks|manage)\.py$|\.d\.ts$")
_PY_IMPORT = re.compile(
    rb"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import[ \t]+\(?([\w, \t]*)|import[ \t]+([\w., \t]+))", re.M
)
_JS_IMPORT = re.compile(rb"""(?:from|import|require\(|import\()\s*["'](\.{1,2}/[^"'\n]*)["']""")


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
