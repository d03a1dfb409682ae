"""How the code is laid out, as rules that a change cannot break unseen."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ralph.plans.registry import LAYOUTS
from ralph.state import names

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "ralph"
MODULES = {
    ".".join(("ralph", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__"): path
    for path in sorted(PACKAGE.rglob("*.py"))
}

# Third-party packages a layer may import. A layer that is not named here may use all that Ralph depends on.
EXTERNAL = {
    "core": {"msgspec"},
    "host": {"msgspec"},  # for its values only; `core` has imported it anyway
    "hooks": set(),
    "guard": set(),
    "results": set(),
}
DEPENDENCIES = {"minijinja", "msgspec", "yaml", "tree_sitter", "tree_sitter_typescript"}
EXTERNAL["run"] = DEPENDENCIES | {"ray"}  # an extra, and only in processes of its own
EXTERNAL["tui"] = DEPENDENCIES | {"textual", "rich"}  # extras, each imported by one command only
EXTERNAL["web"] = DEPENDENCIES | {"anyio", "starlette", "uvicorn"}
EXTERNAL["traces"] = DEPENDENCIES | {"opentelemetry"}
EXTERNAL["traces"] = {"msgspec", "opentelemetry"}  # an extra, and only in a process of its own
EXTERNAL["notify"] = {"msgspec", "apprise"}  # an extra, and only in a process of its own

# What reaches out of the process. `core` decides and never does.
OUTSIDE = {
    "asyncio",
    "io",
    "os",
    "random",
    "select",
    "shutil",
    "signal",
    "socket",
    "sys",
    "tempfile",
    "threading",
    "time",
}
# Processes and what only some systems have are the business of `host`.
HOST_ONLY = {"ctypes", "fcntl", "msvcrt", "multiprocessing", "pty", "pwd", "resource", "subprocess", "termios"}
# Scripts that run alone, where no other file of Ralph's is visible.
ALONE = {"ralph.sandbox.container_init", "ralph.sandbox.terminal_entry"}

VAGUE = {"common", "helper", "helpers", "manager", "misc", "util", "utils"}


def layer_of(module: str) -> str:
    return module.partition(".")[2].partition(".")[0]


def imports_of(path: Path) -> Iterator[str]:
    """The top-level packages a module imports, anywhere in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module.split(".")[0]


def test_imports_point_down_only() -> None:
    lint = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([str(lint), "--no-logo", "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_module_says_what_it_is() -> None:
    assert [m for m, path in MODULES.items() if not ast.get_docstring(ast.parse(path.read_text()))] == []
    assert [m for m in MODULES if VAGUE & set(m.split("."))] == []


def test_a_package_is_only_a_docstring() -> None:
    for module, path in MODULES.items():
        if path.name != "__init__.py":
            continue
        body = ast.parse(path.read_text()).body[1:]
        names = [ast.unparse(node.targets[0]) for node in body if isinstance(node, ast.Assign)]
        assert len(names) == len(body), module
        assert names == (["__version__"] if module == "ralph" else []), module


def test_only_the_output_module_prints() -> None:
    printing = {
        module
        for module, path in MODULES.items()
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("print", "input")
    }
    assert {module for module in printing if layer_of(module) != "hooks"} <= {"ralph.cli.output"}


def layout_names(node: ast.AST) -> set[str]:
    """The built-in layouts that an expression names, by itself or in a tuple, a list or a set."""
    parts = node.elts if isinstance(node, ast.Tuple | ast.List | ast.Set) else [node]
    return {part.value for part in parts if isinstance(part, ast.Constant) and part.value in LAYOUTS.built_in()}


def test_only_plans_knows_what_a_layout_is_called() -> None:
    """A layout is one file and one line: other code asks for its traits. `config` has settings called `steps` and
    `feature`; its profiles and the progress logs are tables by layout. `importing` recognises files by their keys.
    """
    comparing, listing = set(), set()
    for module, path in MODULES.items():
        if layer_of(module) in ("plans", "config", "importing"):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Compare) and any(map(layout_names, (node.left, *node.comparators))):
                comparing.add(f"{module}:{node.lineno}")
            if isinstance(node, ast.Dict) and sum(bool(layout_names(key)) for key in node.keys if key) > 1:
                listing.add(module)
            if isinstance(node, ast.Assign | ast.AnnAssign) and node.value and len(layout_names(node.value)) > 1:
                comparing.add(f"{module}:{node.lineno}")
    assert comparing == set(), "use a trait of the layout"
    assert listing == {"ralph.journal.sinks.table"}


def state_names() -> set[str]:
    return {
        value for name, value in vars(names).items() if name.isupper() and name[0] != "_" and isinstance(value, str)
    }


FOLDERS = ("state", "plan_state", "workspace_state", "state_home", "planning_folder")
"""Variables, attributes and functions that hold a folder of the state."""
ELSEWHERE = {"settings.json", "learnings.md"}
"""Names that files outside the state folder have too."""


def holder(node: ast.AST) -> str:
    """The last name of what a path is made from. The folder of a plan in the workspace, `ref.folder`, is none."""
    if isinstance(node, ast.Call):
        node = node.func
    if isinstance(node, ast.Attribute):
        return "" if ast.unparse(node) == "ref.folder" else node.attr.lstrip("_")
    return node.id if isinstance(node, ast.Name) else ""


def test_only_state_spells_the_names_in_the_state_folder() -> None:
    """Old state stays readable, and a file has one owner. `hooks.policy` has the names that hooks share with the loop.

    A name with a dot or a dash means that file wherever it is spelled; a plain word only beside a folder of the state.
    """
    distinct = {name for name in state_names() - ELSEWHERE if "." in name or "-" in name}
    generic = state_names() - ELSEWHERE - distinct
    spelled = set()
    for module, path in MODULES.items():
        if layer_of(module) in ("state", "guard", "results") or module == "ralph.hooks.policy":
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and node.value in distinct:
                spelled.add(f"{module}:{node.lineno} {node.value}")
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and isinstance(node.right, ast.Constant):
                left, name = holder(node.left), node.right.value
                if left in FOLDERS or (left in ("folder", "home") and name in generic and layer_of(module) != "host"):
                    spelled.add(f"{module}:{node.lineno} {name!r}")
    assert spelled == set(), "import it from ralph.state.names"


def test_the_table_of_the_state_folder_is_complete() -> None:
    listed = {part for file in names.FILES for part in file.path.split("/")}
    assert state_names() - listed - {names.GIT_LOCK} == set()
    rooms = {path.name for path in PACKAGE.iterdir() if path.is_dir()}
    assert {file.writer for file in names.FILES} <= rooms
    assert len({file.path for file in names.FILES}) == len(names.FILES)
    page = (ROOT / "ARCHITECTURE.md").read_text()
    assert [file.path for file in names.FILES if f"| `{file.path}` |" not in page] == [], "run scripts/write_docs.py"


def imported() -> dict[str, set[str]]:
    return {module: set(imports_of(path)) - {"ralph", "__future__"} for module, path in MODULES.items()}


def test_a_layer_imports_only_the_packages_it_may() -> None:
    for module, used in imported().items():
        external = {name for name in used if name not in sys.stdlib_module_names}
        assert external <= EXTERNAL.get(layer_of(module), DEPENDENCIES), module


def test_the_core_has_no_way_out() -> None:
    reaching = {m: used & OUTSIDE for m, used in imported().items() if layer_of(m) == "core" and used & OUTSIDE}
    assert reaching == {}


def test_only_the_host_layer_knows_the_system() -> None:
    """Hooks and the command guard stand alone: they have no host layer to ask. What a sandbox shows of `/proc` is its
    own subject. A trial stands outside as well: it watches a whole run, and has a network of its own."""
    own = ("host", "hooks", "guard", "trial")
    others = {module: used for module, used in imported().items() if layer_of(module) not in own}
    others = {module: used for module, used in others.items() if module not in ALONE}
    assert {module: used & HOST_ONLY for module, used in others.items() if used & HOST_ONLY} == {}
    silent = [module for module in others if layer_of(module) != "sandbox"]
    assert {module for module in silent if _literals_with("/proc/", MODULES[module])} == set()


def _literals_with(part: str, path: Path) -> list[str]:
    nodes = ast.walk(ast.parse(path.read_text()))
    return [n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str) and part in n.value]


# Runs in a fresh interpreter. Writes, folders, sockets, processes, output and a look at the environment by a module of
# ralph, while all modules are imported, are reported on stderr.
IMPORT_ALL = """
import os, sys
wrong = []
def hear(event, arguments):
    if event == "open":
        path, mode, flags = arguments
        if isinstance(mode, str) and set(mode) & set("wax+") or flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            wrong.append(f"{current} opens {path} for writing")
    elif event.startswith(("os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.symlink", "os.link", "os.putenv",
                           "os.chmod", "os.fork", "os.exec", "os.system", "os.posix_spawn", "subprocess", "socket")):
        wrong.append(f"{current}: {event} {arguments}")
def look(self, key, _real=os._Environ.__getitem__):
    frame = sys._getframe(1)
    while frame and frame.f_globals.get("__name__") in ("os", "collections.abc"):
        frame = frame.f_back
    if frame and str(frame.f_globals.get("__name__")).startswith("ralph"):
        wrong.append(f"{current} reads the environment variable {key}")
    return _real(self, key)
os._Environ.__getitem__ = look
current = ""
sys.addaudithook(hear)
import importlib
for current in sys.argv[1:]:
    importlib.import_module(current)
    sys.stdout.flush()
print("\\n".join(wrong), file=sys.stderr)
"""


def test_nothing_happens_at_import() -> None:
    modules = [module for module in MODULES if not module.endswith("__main__")]
    done = subprocess.run(
        [sys.executable, "-B", "-W", "error", "-c", IMPORT_ALL, *modules],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "\n")


@pytest.mark.parametrize(
    "body",
    [
        "open('x', 'w').close()",
        "import os; os.mkdir('made')",
        "import os; os.environ.get('HOME')",
        "import socket; socket.socket().close()",
        "import subprocess; subprocess.run(['true'])",
    ],
)
def test_something_that_happens_at_import_is_seen(body: str, tmp_path: Path) -> None:
    (tmp_path / "ralph_bad.py").write_text(body)
    done = subprocess.run(
        [sys.executable, "-B", "-c", IMPORT_ALL, "ralph_bad"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stderr.startswith("ralph_bad")
