"""What is between the tests and their result: a shim for the runner, a forged outcome, an early exit."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ralph.checks.tamper.commands import Used
from ralph.checks.tamper.lexing import lex
from ralph.checks.tamper.paths import is_test_file, language_of
from ralph.checks.tamper.python_expression import dotted, truth
from ralph.checks.tamper.python_file import parse
from ralph.checks.tamper.source import line_at, word_set
from ralph.checks.tamper.values import Finding

_MODULES = word_set(
    "pytest _pytest unittest nose nose2 coverage mypy ruff flake8 pylint tox nox doctest "
    "hypothesis pluggy sitecustomize usercustomize "
    "pytest_cov xdist behave"
)
_STANDARD = word_set(
    "abc argparse ast asyncio base64 builtins collections contextlib copy csv datetime decimal "
    "enum fractions functools hashlib importlib "
    "inspect io itertools json logging math operator os pathlib pickle random re shutil socket "
    "statistics string subprocess sys tempfile "
    "threading time traceback types typing uuid warnings"
)
_PROGRAMS = word_set(
    "pytest py.test python python3 node npm npx yarn pnpm jest vitest mocha go cargo make tox "
    "nox ruff mypy eslint tsc phpunit rspec bundle rake "
    "mvn gradle dotnet bats unittest coverage pip git bash sh env"
)
_INSTALLED = re.compile(r"(?:^|/)(?:node_modules|vendor|\.?venv|site-packages|\.tox|\.nox)/")
_INSTALLED_BINARY = re.compile(r"(?:^|/)(?:node_modules/\.bin|vendor/bin|\.?venv/bin|\.?venv/Scripts)/[^/]+$|\.pth$")
_FORGING_HOOKS = word_set(
    "pytest_runtest_makereport pytest_runtest_call pytest_pyfunc_call pytest_runtest_protocol "
    "pytest_sessionfinish pytest_exception_interact "
    "pytest_runtestloop pytest_report_teststatus pytest_cmdline_main pytest_runtest_logreport pytest_unconfigure"
)
_DROPPING_HOOKS = word_set(
    "pytest_collection_modifyitems pytest_ignore_collect pytest_collect_file "
    "pytest_pycollect_makeitem pytest_itemcollected "
    "pytest_deselected pytest_generate_tests pytest_runtest_setup pytest_collection_finish "
    "pytest_load_initial_conftests"
)
_FORGES = re.compile(
    r"\boutcome\b|\bexitstatus\b|\bexcinfo\b|\bpassed\b|\bpassed\b|\bos\._exit\b|\bsys\.exit\b"
    r"|\bforce_result\b|_exitcode|longrepr|TestReport|testsfailed|return True"
)
_DROPS = re.compile(
    r"\bskip\w*|\bxfail\b|\bdeselect\w*|items\s*\[|items\.(?:clear|remove|pop)|del\s+items"
    r"|return\s+(?:True|\[\])|ignore"
)
_PATCHED = re.compile(
    r"(?:sys\.exit|os\._exit|builtins\.\w+|pytest\.(?:fail|raises|skip|main|exit)|_pytest[\w.]*"
    r"|unittest\.TestCase\.\w+|TestCase\.(?:assert\w+|fail|run)"
    r"|AssertionError|TestReport[\w.]*|TestResult[\w.]*|CallInfo[\w.]*)\s*=(?!=)"
    r"|setattr\(\s*(?:(?:sys|os)\s*,\s*[\"']_?exit[\"']|(?:builtins|pytest|_pytest[\w.]*"
    r"|unittest[\w.]*|TestCase|TestReport|CallInfo)\s*,)"
    r"|\b(?:jest\.setup|expect)\s*=(?!=)|\bexpect\.extend\(\s*\{\s*(?:toBe|toEqual|toStrictEqual)\b"
    r"|global(?:This)?\.(?:expect|it|test|describe|assert)\s*=(?!=)|assert\.\w+\s*=\s*(?:\(|function|\w+\s*=>)"
    r"|process\.exit\s*=(?!=)|process\.on\(\s*['\"]exit['\"]|process\.exitCode\s*=\s*0"
)
_EXITS = re.compile(
    r"\bos\._exit\(\s*0?\s*\)|\bprocess\.(?:exit|reallyExit)\(\s*0?\s*\)|\bos\.Exit\(\s*0\s*\)"
    r"|\bstd::process::exit\(\s*0\s*\)"
    r"|\bSystem\.exit\(\s*0\s*\)|\bEnvironment\.Exit\(\s*0\s*\)|\bexit!\s*(?:\(?\s*(?:0"
    r"|true)\s*\)?)?|\batexit\.register\("
)
_TEST_MAIN = re.compile(r"^func\s+TestMain\s*\(", re.MULTILINE)


def shim_findings(path: str, old: bytes | None, new: bytes | None, used: Used) -> Iterator[Finding]:
    """Files whose name alone replaces something the checks rely on."""
    if _INSTALLED_BINARY.search(path) and new is not None:
        yield Finding("runner-shadowed", path, 1, f"{path} is run instead of the installed program", "high")
        return
    if old is not None or new is None:
        if _INSTALLED.search(path):
            yield Finding("runner-shadowed", path, 1, f"{path} belongs to an installed package", "high")
        return
    folder, _, name = path.rpartition("/")
    if name == "__init__.py":
        folder, _, name = folder.rpartition("/")
    stem = name.removesuffix(".py")
    at_import_root = folder in ("", "src", "lib", "tests", "test", "python")
    if (path.endswith(".py") and stem in _MODULES and (at_import_root or stem.endswith("customize"))) or name.endswith(
        ".pth"
    ):
        yield Finding("runner-shadowed", path, 1, f"{name} is imported instead of the real {stem}", "high")
    elif path.endswith(".py") and stem in _STANDARD and folder in ("", "tests", "test"):
        yield Finding("runner-shadowed", path, 1, f"{name} shadows {stem} of the standard library", "low")
    elif (
        "." not in name
        and (name in _PROGRAMS or name in used.programs)
        and folder in ("", "bin", ".bin", "scripts", "tools")
        and name not in ("env",)
    ):
        yield Finding("runner-shadowed", path, 1, f"{path} can be run instead of the real {name}", "high")
    elif re.fullmatch(r"(?:jest|mocha|vitest|tsc|eslint)\.[cm]?js", name) and folder == "":
        yield Finding("runner-shadowed", path, 1, f"{path} is named like a test runner", "high")
    elif _INSTALLED.search(path):
        yield Finding("runner-shadowed", path, 1, f"{path} was added to the installed packages", "high")


def forgery_findings(path: str, old: str | None, new: str | None, added: str) -> Iterator[Finding]:
    """New code that ends the run, or rewrites its result."""
    if new is None or not language_of(path):
        return
    before = old or ""
    beside_tests = (
        is_test_file(path)
        or re.search(r"(?:^|/)(?:jest|vitest|mocha)[\w.-]*(?:setup|config)\.\w+$|setupTests", path) is not None
    )
    if beside_tests and _PATCHED.search(added):
        yield from _patched(path, before, new)
    if (beside_tests or path.endswith(".py")) and _EXITS.search(added):
        yield from _exits(path, before, new)
    if path.endswith(".py") and _SUSPECT.search(added):
        yield from _python(path, before, new)
    if path.endswith("_test.go") and _TEST_MAIN.search(new) and "m.Run()" not in new:
        yield Finding(
            "outcome-forged", path, line_at(new, new.index("TestMain")), "TestMain does not run the tests", "high"
        )


def _in_code(text: str, path: str, pattern: re.Pattern[str]) -> list[re.Match[str]]:
    """Matches in code, not in a comment or a string: a test may contain a program as text."""
    if not pattern.search(text):
        return []
    lexed = lex(text, language_of(path))
    return [match for match in pattern.finditer(lexed.code) if lexed.bare[match.start()] == match[0][0]]


def _patched(path: str, old: str, new: str) -> Iterator[Finding]:
    known = {match[0] for match in _in_code(old, path, _PATCHED)}
    for match in _in_code(new, path, _PATCHED):
        if match[0] in known:
            continue
        inside = new[new.rfind("\n", 0, match.start()) + 1 :][:1] in " \t"
        is_local = inside and path.endswith(".py") and not path.endswith("conftest.py")
        message = f"`{match[0].strip()[:60]}` rewrites what the test runner relies on"
        yield Finding("outcome-forged", path, line_at(new, match.start()), message, "low" if is_local else "high")


def _exits(path: str, old: str, new: str) -> Iterator[Finding]:
    before = len(_in_code(old, path, _EXITS))
    for match in _in_code(new, path, _EXITS)[before:]:
        if match[0].startswith("atexit") and "_exit" not in new:
            continue
        above = new[max(0, match.start() - 600) : match.start()]
        if "fork(" in above or "Process(" in above:
            continue  # a child that must not run what its parent registered
        message = f"`{match[0][:40]}` ends the run as successful"
        yield Finding("outcome-forged", path, line_at(new, match.start()), message, "high")
        return


_SUSPECT = re.compile(
    r"__eq__|__ne__|__bool__|pytest_\w+|\breport\b|\boutcome\b|\bitems\b|\bsession\b|return True"
    r"|sys\.exit|SystemExit|\bexit\(|\bquit\("
)


def _python(path: str, old: str, new: str) -> Iterator[Finding]:
    if (tree := parse(new)) is None:
        return
    known = set(_suspects(parse(old), path)) if old else set()
    said = {(kind, name) for kind, name, _ in known}
    for kind, name, line in _suspects(tree, path):
        if (kind, name) in said:
            continue
        told = {
            "equal": f"{name} is equal to everything",
            "exit": f"{name} ends the program on import",
            "hook": f"{name} decides how a test ends",
            "drop": f"{name} decides which tests run",
        }[kind]
        yield Finding("tests-narrowed" if kind == "drop" else "outcome-forged", path, line, told, "high")


def _suspects(tree: ast.Module | None, path: str) -> Iterator[tuple[str, str, int]]:
    if tree is None:
        return
    for node in tree.body:
        if isinstance(node, ast.Expr | ast.Raise) and (call := _exit_call(node)):
            yield "exit", call, node.lineno
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and is_test_file(path):
            source = ast.unparse(node) if node.name.startswith("pytest_") else ""
            if node.name in _FORGING_HOOKS and _FORGES.search(source):
                yield "hook", node.name, node.lineno
            elif node.name in _DROPPING_HOOKS and _DROPS.search(source.partition("\n")[2]):
                yield "drop", node.name, node.lineno
    for found in ast.walk(tree):
        if isinstance(found, ast.ClassDef):
            for item in found.body:
                if isinstance(item, ast.FunctionDef) and item.name == "__eq__" and _always_true(item):
                    yield "equal", found.name, item.lineno


def _exit_call(node: ast.Expr | ast.Raise) -> str:
    value = node.value if isinstance(node, ast.Expr) else node.exc
    if not (isinstance(value, ast.Call) and dotted(value.func) in ("sys.exit", "exit", "quit", "SystemExit")):
        return ""
    is_success = not value.args or truth(value.args[0]) is False
    return dotted(value.func) + "()" if is_success else ""


def _always_true(node: ast.FunctionDef) -> bool:
    returns = [item for item in ast.walk(node) if isinstance(item, ast.Return)]
    return bool(returns) and all(item.value is not None and truth(item.value) for item in returns)
