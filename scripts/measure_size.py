"""Print how large the code is, and what it costs to start: for the working tree, or for any commit.

scripts/size             the working tree
scripts/size v0.2.0      a commit, a tag or a branch
scripts/size --modules   also the longest modules and functions, and the rooms by size
"""

from __future__ import annotations

import ast
import io
import os
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LONG_MODULE, LONG_FUNCTION, MANY_PARAMETERS = 400, 50, 6

# The rooms of each row, with the names they had before.
LOOP = [
    "core",
    "host",
    "journal",
    "state",
    "engine",
    "run",
    "app/running.py",
    "app/launching.py",
    "app/wiring.py",
    "app/worktree.py",
]
GUARD = ["guard", "hooks/guard"]
STATIC = ["files", "file_table", "file_uses", "moved", "test_code", "inline_tests", "story_words"]
TAMPER = [*(f"proof/{name}.py" for name in STATIC), "checks/tamper"]
RESULTS = ["results", "hooks/results"]
PLANS = ["plans", "importing", "app/importing.py", "app/converting.py"]


def main(arguments: list[str]) -> int:
    if {"-h", "--help"} & set(arguments):
        print(__doc__, end="")
        return 0
    commits = [argument for argument in arguments if not argument.startswith("-")]
    if len(commits) > 1 or any(a.startswith("-") and a != "--modules" for a in arguments):
        print("usage: scripts/size [COMMIT] [--modules]", file=sys.stderr)
        return 64
    with tempfile.TemporaryDirectory() as folder:
        tree = unpacked(commits[0], Path(folder)) if commits else ROOT
        if tree is None:
            return 65
        for label, value in table(tree):
            print(f"{label:<58} {value}")
        if "--modules" in arguments:
            print()
            report_modules(tree)
    return 0


def unpacked(commit: str, folder: Path) -> Path | None:
    done = subprocess.run(["git", "-C", ROOT, "archive", commit], capture_output=True, check=False)
    if done.returncode:
        print(f"scripts/size: {done.stderr.decode().strip()}", file=sys.stderr)
        return None
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder


def table(tree: Path) -> Iterator[tuple[str, str]]:
    package = tree / "src" / "ralph"
    yield "lines in src/", f"{lines_of(package):,}"
    yield "files in src/", str(len(sources(package)))
    yield "the loop: core, host, journal, state, engine, run", rooms(package, LOOP)
    yield "command guard", rooms(package, GUARD)
    yield "static reading of changes, for the proof", rooms(package, TAMPER)
    yield "test results and limits in text", rooms(package, RESULTS)
    yield "plans with importing", rooms(package, PLANS)
    yield "commands in docs/cli.md", str((tree / "docs" / "cli.md").read_text().count("\n## ralph "))
    name, fields = largest_value(package)
    yield "fields of the largest value that is not a settings file", f"{fields} ({name})"
    project = tomllib.loads((tree / "pyproject.toml").read_text())["project"]
    yield "required dependencies", str(len(project["dependencies"]))
    yield "modules of Ralph and others loaded by `ralph learn --help`", str(modules_of(tree, "learn", "--help"))
    yield "`ralph --version`, × bare Python", ratio(tree, "--version")


def sources(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.py")) if folder.is_dir() else [folder] if folder.is_file() else []


def lines_of(folder: Path) -> int:
    return sum(len(path.read_bytes().splitlines()) for path in sources(folder))


def rooms(package: Path, names: list[str]) -> str:
    return f"{sum(lines_of(package / name) for name in names):,}"


def largest_value(package: Path) -> tuple[str, int]:
    """The Struct with most fields. The settings are what users write, one field per key: they are left out."""
    most = ("", 0)
    for path in sources(package):
        if path.parent.name == "config":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and any(getattr(base, "id", "") == "Struct" for base in node.bases):
                fields = sum(isinstance(part, ast.AnnAssign) for part in node.body)
                most = max(most, (node.name, fields), key=lambda pair: pair[1])
    return most


def python(tree: Path, code: str, *arguments: str) -> list[str]:
    return [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(tree / 'src')!r})\n{code}", *arguments]


COUNT = """
before = set(sys.modules)
import contextlib, io
from ralph.cli.main import main
with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
    main(sys.argv[1:])
print(sum(name.partition(".")[0] not in sys.stdlib_module_names for name in set(sys.modules) - before))
"""


def modules_of(tree: Path, *arguments: str) -> int:
    done = subprocess.run(python(tree, COUNT, *arguments), capture_output=True, text=True, check=True)
    return int(done.stdout)


def ratio(tree: Path, *arguments: str) -> str:
    """The least of many turns, taken in alternation: these machines are noisy."""
    code = "from ralph.__main__ import main; sys.argv[0] = 'ralph'; sys.exit(main())"
    turns = [(seconds(python(tree, "pass")), seconds(python(tree, code, *arguments))) for _ in range(25)]
    return f"{min(ours for _, ours in turns) / min(bare for bare, _ in turns):.2f}"


def seconds(command: list[str]) -> float:
    """The CPU time of a command: less noisy than the clock, where other programs run too."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, _, used = os.wait4(process.pid, 0)
    process.returncode = 0
    return used.ru_utime + used.ru_stime


def report_modules(tree: Path) -> None:
    package = tree / "src" / "ralph"
    print("rooms by size:")
    for room in sorted((p for p in package.iterdir() if sources(p) and p.is_dir()), key=lines_of, reverse=True):
        print(f"  {room.name:<12} {lines_of(room):>6} lines {len(sources(room)):>4} files")
    print(f"modules of more than {LONG_MODULE} lines:")
    for path in sorted(sources(package), key=lines_of, reverse=True):
        if lines_of(path) > LONG_MODULE:
            print(f"  {path.relative_to(package)} {lines_of(path)}")
    print(f"functions of more than {LONG_FUNCTION} lines or {MANY_PARAMETERS} parameters:")
    for path in sources(package):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                length = (node.end_lineno or node.lineno) - node.lineno + 1
                given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
                count = sum(argument.arg not in ("self", "cls") for argument in given)
                if length > LONG_FUNCTION or count > MANY_PARAMETERS:
                    print(
                        f"  {path.relative_to(package)}:{node.lineno} {node.name}: {length} lines, {count} parameters"
                    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
