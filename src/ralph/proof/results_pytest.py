"""pytest by name: a plugin that writes one line per test result, and the reader of those lines.

The plugin is found through an entry point on PYTHONPATH, not through `-p` or PYTEST_ADDOPTS: a command that replaces
PYTHONPATH, isolates Python or switches plugins off then runs without the report, and does not fail. One file per
process and session, so several runs add up. A pytest that a test starts, and a worker of xdist, writes none.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from ralph.core.lazy_pattern import lazy_pattern
from ralph.core.proof import Tests

_MODULE = "results_by_name"
_MAX_BYTES = 64 << 20
_MAX_FILES = 500
_ADDRESS = lazy_pattern(r"\b0x[0-9a-fA-F]{6,}")
_RANK = {"passed": 0, "skipped": 1, "failed": 2}

_PLUGIN = """\
import json
import os

_HERE = os.path.dirname(os.path.abspath(__file__))
_OUTER = "RESULTS_BY_NAME_PID"
_sessions = []


class Results(object):
    def __init__(self, config):
        self.path = os.path.join(_HERE, "pytest-%d-%d.jsonl" % (os.getpid(), len(_sessions)))
        self.is_over = False
        self.write("w", root=str(getattr(config, "rootpath", "")))

    def write(self, mode, **line):
        try:
            with open(self.path, mode, encoding="utf-8") as file:
                file.write(json.dumps(line) + "\\n")
        except Exception:
            pass

    def record(self, report):
        if report.outcome in ("passed", "failed", "skipped"):
            self.write("a", name=report.nodeid, outcome=report.outcome)

    def pytest_runtest_logreport(self, report):
        if report.when == "call" or report.outcome != "passed":
            self.record(report)

    def pytest_collectreport(self, report):
        if report.outcome != "passed":
            self.record(report)

    def pytest_sessionfinish(self, exitstatus):
        self.write("a", end=int(exitstatus))

    def pytest_unconfigure(self):
        self.is_over = True
        os.environ.pop(_OUTER, None)


def pytest_load_initial_conftests(early_config):
    pid = str(os.getpid())
    is_nested = _sessions and not _sessions[-1].is_over
    if is_nested or os.environ.get(_OUTER, pid) != pid or "PYTEST_CURRENT_TEST" in os.environ:
        return
    os.environ[_OUTER] = pid
    _sessions.append(Results(early_config))
    early_config.pluginmanager.register(_sessions[-1], "results-by-name-session")
"""


class _Line(msgspec.Struct):
    root: str = ""
    name: str = ""
    outcome: str = ""
    end: int | None = None


def environment(folder: Path, env: Mapping[str, str]) -> dict[str, str]:
    """Write the plugin into the folder and add the folder to PYTHONPATH, last."""
    package = folder / f"{_MODULE}-1.0.dist-info"
    package.mkdir(parents=True, exist_ok=True)
    (folder / f"{_MODULE}.py").write_text(_PLUGIN, encoding="utf-8")
    (package / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {_MODULE}\nVersion: 1.0\n", encoding="utf-8")
    (package / "entry_points.txt").write_text(f"[pytest11]\n{_MODULE} = {_MODULE}\n", encoding="utf-8")
    return {"PYTHONPATH": os.pathsep.join(filter(None, (env.get("PYTHONPATH", ""), str(folder))))}


def read(folder: Path, root: Path | None) -> Tests | None:
    """What the plugin recorded. None: it did not run."""
    sessions = [_session(path) for path in _files(folder)]
    if not sessions:
        return None
    roots = [start for start, _ in sessions if start]
    top = str(root) if root else os.path.commonpath(roots) if roots else ""
    totals = {"passed": 0, "failed": 0, "skipped": 0}
    names: dict[str, str] = {}
    for start, outcomes in sessions:
        prefix = os.path.relpath(start, top).replace(os.sep, "/") if start and top else "."
        if prefix == "." or prefix.startswith(".."):
            prefix = ""
        for name, outcome in outcomes.items():
            totals[outcome] += 1
            stable = _ADDRESS.sub("0x", name.replace(start, "") if len(start) > 1 else name)
            _keep_worst(names, f"{prefix}/{stable}" if prefix else stable, outcome)
    return Tests(runner="pytest", **totals, names=names)


def _files(folder: Path) -> list[Path]:
    try:
        paths = sorted(folder.glob("pytest-*.jsonl"))[:_MAX_FILES]
        return [path for path in paths if path.is_file() and not path.is_symlink()]
    except OSError:
        return []


def _session(path: Path) -> tuple[str, dict[str, str]]:
    root, outcomes, ended = "", dict[str, str](), False
    for line in _lines(path):
        root = line.root or root
        ended = ended or line.end is not None
        if line.name and line.outcome in _RANK:
            _keep_worst(outcomes, line.name, line.outcome)
    if not ended and outcomes:
        outcomes["(pytest stopped before the end of its session)"] = "failed"
    return root, outcomes


def _keep_worst(outcomes: dict[str, str], name: str, outcome: str) -> None:
    """Setup, call and teardown report one by one, and a retried test reports again."""
    if _RANK[outcome] >= _RANK[outcomes.get(name, "passed")]:
        outcomes[name] = outcome


def _lines(path: Path) -> Iterator[_Line]:
    decoder = msgspec.json.Decoder(_Line)
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_BYTES)
    except OSError:
        return
    for raw in content.splitlines():
        try:
            yield decoder.decode(raw)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            continue
