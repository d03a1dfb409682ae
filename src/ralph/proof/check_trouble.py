"""Distinguish a check that cannot run (a missing tool, dependency or folder) from one that ran and failed. Pure.

The patterns come from real output of the tools; `tests/proof/test_check_trouble.py` runs those that are installed. A
test that fails with `ModuleNotFoundError` is a failing test: the module may be what a story is about to write.
"""

from __future__ import annotations

import re
import shlex
from pathlib import PurePosixPath

from msgspec import Struct

from ralph.core.lazy_pattern import lazy_pattern


class NotRunnable(Struct, frozen=True):
    reason: str
    """What is missing, e.g. "jest is not installed"."""
    install: str = ""
    """A command that would install it; empty if none is known."""
    advice: str = ""
    """What to do if there is no such command."""

    @property
    def fix(self) -> str:
        return f"run `{self.install}`" if self.install else self.advice


_INSTALLED_FOLDERS = {".venv", "venv", "env", "node_modules", "vendor", ".tox", ".nox"}
_PYTHON_TOOLS = {
    "pytest", "ruff", "mypy", "tox", "nox", "flake8", "black", "isort", "pylint", "pyright", "coverage", "behave",
    "bandit", "pre-commit", "uv", "poetry", "pdm", "hatch", "pipenv", "ty", "basedpyright", "nose2",
}  # fmt: skip
_NODE_TOOLS = {
    "jest", "vitest", "eslint", "tsc", "prettier", "mocha", "ava", "biome", "playwright", "cypress", "tsx", "vite",
    "next", "turbo", "nx", "karma", "c8", "nyc", "oxlint", "xo", "standard", "tap", "wtr", "rollup", "webpack",
}  # fmt: skip
_PROGRAMS = {
    "node": "install Node.js", "npm": "install Node.js", "npx": "install Node.js",
    "cargo": "install Rust with rustup", "rustc": "install Rust with rustup", "go": "install Go",
    "docker": "install Docker", "bundle": "install Ruby and Bundler", "composer": "install Composer",
    "mvn": "install Maven", "gradle": "install Gradle", "dotnet": "install the .NET SDK", "just": "install just",
    "source": "use `.` instead of `source`: checks run in /bin/sh",
}  # fmt: skip
_NODE_INSTALLS = {"pnpm": "npm install --global pnpm", "yarn": "npm install --global yarn"}
_PYTEST_PLUGINS = {
    "--cov": "pytest-cov", "-n": "pytest-xdist", "--timeout": "pytest-timeout", "--asyncio-mode": "pytest-asyncio",
    "--numprocesses": "pytest-xdist", "--reruns": "pytest-rerunfailures", "--benchmark-only": "pytest-benchmark",
    "--mypy": "pytest-mypy", "--randomly-seed": "pytest-randomly", "--ds": "pytest-django",
}  # fmt: skip

# A shell, make or env asked for a program that is not there. Used only where something says that this
# is why the check ended: exit code 126 or 127, its own or the one that make or pnpm reports.
_ABSENT = lazy_pattern(
    r"^(?:\S*sh: (?:(?:line )?\d+: )?|zsh:\d+: |\S+: line \d+: |make(?:\[\d+\])?: |env: |\S*/env: |pyenv: |bundler: )"
    r"(?:command not found: )?[‘'\"]?(?P<name>[^\s:‘’'\"]+)[’'\"]?"
    r"(?:: (?P<why>command not found|not found|No such file or directory|Permission denied"
    r"|cannot execute: required file not found|Is a directory|Exec format error|Unknown command))?$",
    re.MULTILINE,
)
_WRAPPED = lazy_pattern(r"^(?:make(?:\[\d+\])?: \*\*\* \[.*\] Error 12[67]|\s*ELIFECYCLE\b.*)$", re.MULTILINE)

# A test runner that got as far as a result has run, whatever else is in its output.
_RAN = lazy_pattern(
    r"^=*\s*(?:\d+ (?:passed|failed|errors?)\b|no tests ran)|^Ran \d+ tests? in|^test result: |^(?:not )?ok \d+|"
    r"^\s*Tests:? +\d+ |^\s*Test Suites: |^--- FAIL: |^FAILED\b",
    re.MULTILINE,
)

_TOOL = "{} is not installed"
_FILE = "{} does not exist"
_SCRIPT = "package.json has no script {}"
_SH = r"^\S*sh: (?:(?:line )?\d+: )?"
_PY = r"^(?:/.*/|\S*)python[\d.]*(?:\.exe)?: "
_NPM = r"^npm (?:ERR!|error) "
_PACKAGE = r"'((?:@[\w.-]+/)?\w[\w.-]*)(?:/[\w./-]*)?'"
_TABLE = (
    # what is printed; the reason ({} is the first group); what to do: a command line, or the name of a rule after `=`
    (_PY + r"No module named ([\w.]+)$", _TOOL, "=python"),
    (r"^error: Failed to spawn: `?([^\s`]+)`?$", _TOOL, "=python"),
    (r"^Command not found: (\S+)$", _TOOL, "=python"),
    (r"^(?:\S*|python\S* -m )pytest: error: unrecognized arguments: (.+)$", "pytest has no option {}", "=plugin"),
    (_NPM + r"npx canceled due to missing packages.*\[\"(@?[^@\"]+)", _TOOL, "=node"),
    (r"ERR_PNPM_RECURSIVE_EXEC_FIRST_FAIL\s+Command \"(\S+)\" not found", _TOOL, "=node"),
    (r"^error Command \"(\S+)\" not found\.", "yarn has no script or program {}", "=node"),
    (
        r"^Error \[ERR_MODULE_NOT_FOUND\]: Cannot find package " + _PACKAGE,
        "the npm package {} is not installed",
        "=node",
    ),
    (r"^Error: Cannot find module " + _PACKAGE + "\nRequire stack:", "the npm package {} is not installed", "=node"),
    (r"^Error: Cannot find module '\S*/(node_modules/\S+)'$", _FILE, "=node"),
    (r"^Error: Cannot find module '(/\S+)'\n(?!Require stack:)", _FILE, ""),
    (_NPM + r"Missing script: \"?([^\"\n]+?)\"?$", _SCRIPT, ""),
    (r"ERR_PNPM_NO_SCRIPT\s+Missing script: (\S+)", _SCRIPT, ""),
    (_NPM + r"(?:enoent )?Could not read (package\.json)", _FILE, ""),
    (r"ERR_PNPM_NO_IMPORTER_MANIFEST_FOUND\s+No (package\.json)", _FILE, ""),
    (r"^error: no such command: `([^`]+)`", "cargo has no command {}", "cargo install cargo-{}"),
    (r"^error: '(?:cargo-)?(\S+?)' is not installed for the toolchain", _TOOL, "rustup component add {}"),
    (r"^error: the '(\S+)' component which provides the command", _TOOL, "rustup component add {}"),
    (r"^error: toolchain '([^']+)' is not installed", _TOOL, "rustup toolchain install {}"),
    (r"^error: could not find `(Cargo\.toml)`", _FILE, ""),
    (r"^make(?:\[\d+\])?: \*\*\* No rule to make target [`']([^']+)'\.\s+Stop", "make target {} does not exist", ""),
    (r"^make: \*\*\* No targets specified and no (makefile) found", _FILE, ""),
    (r"^make: \*\*\* ([^\s:]+): No such file or directory\.\s+Stop", _FILE, ""),
    (r"^error: Justfile does not contain recipe [`'](\S+?)[`']", "just recipe {} does not exist", ""),
    (_SH + r"(?:\.: )?cannot open (\S+?): No such file$", _FILE, "=path"),
    (_SH + r"(\S+/activate): No such file or directory$", _FILE, "=path"),
    (_SH + r"cd: (?:can't cd to )?(\S+?)(?:: No such file or directory)?$", "folder {} does not exist", ""),
    (_PY + r"can't open file '([^']+)'", _FILE, ""),
    (r"^Could not open input file: (\S+)$", _FILE, "=path"),
    (r"^go: (go\.mod) file not found", _FILE, ""),
    (r"(Cannot connect to the Docker daemon)", "Docker is not running", "=docker"),
)
_SIGNS = tuple((lazy_pattern(pattern, re.MULTILINE), reason, remedy) for pattern, reason, remedy in _TABLE)
_FOLDER = lazy_pattern(r"could not start \S+ in (\S+): no such folder")


def why_not_runnable(command: str, code: int | None, output: str) -> NotRunnable | None:
    """Why a check that exited with `code` after printing `output` did not run. None: it ran, and failed or passed."""
    if code == 0:
        return None
    if folder := _FOLDER.search(output):
        return NotRunnable(f"folder {folder[1]} does not exist", advice="fix the check's cwd")
    if code in (126, 127) or _WRAPPED.search(output):
        if absent := next((m for m in _ABSENT.finditer(output) if m["why"] or code in (126, 127)), None):
            return _absent(absent["name"], absent["why"] or "", command)
        if code in (126, 127):
            return _absent(_first_word(command), "", command)
    if _RAN.search(output):
        return None
    for pattern, reason, remedy in _SIGNS:
        if match := pattern.search(output):
            return _with_remedy(reason.format(match[1]), match[1], remedy, command)
    return None


_NO_TESTS = lazy_pattern(
    r"^(?:=+ )?no tests ran|^NO TESTS RAN|^No test(?: file)?s found, exiting|no test specified", re.M
)


def finds_no_tests(code: int | None, output: str) -> bool:
    """Whether a test runner failed because there are no tests yet: pytest, unittest, jest, vitest, npm's
    placeholder.
    """
    return code != 0 and _NO_TESTS.search(output) is not None


def _absent(name: str, why: str, command: str) -> NotRunnable:
    if why in ("Permission denied", "Exec format error"):
        return NotRunnable(f"{name} cannot be executed", install=f"chmod +x {name}" if "/" in name else "")
    if why == "cannot execute: required file not found":
        return NotRunnable(f"the interpreter of {name} does not exist", advice="fix its first line")
    if "/" not in name:
        return _with_remedy(_TOOL.format(name), name, "=program", command)
    return _with_remedy(_FILE.format(name), name, "=path", command)


def _with_remedy(reason: str, subject: str, remedy: str, command: str) -> NotRunnable:
    if remedy and not remedy.startswith("="):
        return NotRunnable(reason, install=remedy.format(subject))
    install = advice = ""
    match remedy:
        case "=python":
            install = _python_install(subject.partition(".")[0].replace("_", "-"), command)
        case "=node":
            install = _node_install(command)
        case "=plugin":
            option = re.split(r"[=\s]", subject)[0]
            plugin = _PYTEST_PLUGINS.get(option, "")
            install = _python_install(plugin, command) if plugin else ""
            advice = "install the pytest plugin it belongs to, or fix the command"
        case "=docker":
            advice = "start Docker"
        case "=path":
            install, advice = _path_install(subject, command)
        case "=program":
            install, advice = _program_install(subject, command)
    if install:
        return NotRunnable(reason, install)
    return NotRunnable(reason, advice=advice or "fix the command, or add what is missing")


def _program_install(name: str, command: str) -> tuple[str, str]:
    if name in _NODE_TOOLS:
        return _node_install(command), ""
    if name in _PYTHON_TOOLS:
        return _python_install(name, command), ""
    if name in _NODE_INSTALLS:
        return _NODE_INSTALLS[name], ""
    if _first_word(command) in ("npm", "npx", "pnpm", "yarn", "bun") and name != _first_word(command):
        return _node_install(command), ""
    return "", _PROGRAMS.get(name, f"install {name}, or fix the command")


def _path_install(path: str, command: str) -> tuple[str, str]:
    """Whether the path is inside a folder that an installer creates; any other is a file of the project."""
    folders = PurePosixPath(path).parts[:-1]
    if "node_modules" in folders:
        return _node_install(command), ""
    if "vendor" in folders:
        return "composer install", ""
    if made := next((folder for folder in folders if folder in _INSTALLED_FOLDERS), ""):
        return "", f"create the virtual environment {made} and install the project's dependencies into it"
    return "", "fix the command, or add the file"


def _node_install(command: str) -> str:
    tool = _first_word(command)
    return f"{tool} install" if tool in ("pnpm", "yarn", "bun") else "npm install"


def _python_install(package: str, command: str) -> str:
    try:
        words = shlex.split(command)
    except ValueError:
        words = command.split()
    if words[:2] == ["uv", "run"] and package != "uv":
        return f"uv add --dev {package}"
    if words[:2] == ["poetry", "run"] and package != "poetry":
        return f"poetry add --group dev {package}"
    if words and "/" in words[0] and PurePosixPath(words[0]).name.startswith("python"):
        return f"{shlex.quote(words[0])} -m pip install {package}"
    return f"pip install {package}"


def _first_word(command: str) -> str:
    """The program of a command line, without leading variable assignments."""
    words = [word for word in command.split() if not re.match(r"\w+=", word)]
    return words[0] if words else command
