"""Programs that some tests need and that may be missing here. `scripts/test --everything` insists on them."""

from __future__ import annotations

import importlib.util
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CLIENT = ROOT / ".venv" / "client" / "claude_agent_sdk" / "_bundled" / "claude"
OTHER_CLIENTS = ROOT / ".venv" / "clients" / "node_modules" / ".bin"
MKDOCS = ROOT / ".venv" / "site" / "bin" / "mkdocs"
WHEELS = ROOT / ".venv" / "wheels"
"""What `scripts/fetch_wheels.py` fetched, to install from."""
AXE = ROOT / ".venv" / "browser" / "node_modules" / "axe-core" / "axe.min.js"
PROJECTS = ROOT / ".venv" / "projects"
OPTIONAL = frozenset({"codex", "goose", "srt"})
"""Clients, and a sandbox, for which there may be no package here, so not even `--everything` insists on them."""
PACKAGES = frozenset({"playwright", "ray"})
"""Python packages that are large. `scripts/test --everything` installs them."""
EVERYTHING = "TEST_EVERYTHING"
QUICK = "TEST_QUICK"
SLOW_TESTS = ROOT / "tests" / "slow_tests.txt"
"""Tests that take seconds. `scripts/slow_tests.py` writes it."""


def is_installed(tool: str) -> bool:
    if tool in OPTIONAL:
        return (OTHER_CLIENTS / tool).exists()
    if tool in PACKAGES:
        return importlib.util.find_spec(tool) is not None
    if tool == "wheels":
        return (WHEELS / "stamp").exists()
    if tool == "projects":
        return any(PROJECTS.glob("shortuuid-*"))
    if tool == "axe-core":
        return AXE.exists()
    if tool == "mkdocs":
        return MKDOCS.exists()
    return CLIENT.exists() if tool == "claude" else shutil.which(tool) is not None


def is_everything() -> bool:
    return bool(os.environ.get(EVERYTHING))


def slow_tests() -> frozenset[str]:
    return frozenset(SLOW_TESTS.read_text().split())


def needed_by(item: pytest.Item) -> Iterator[str]:
    """`@pytest.mark.needs("zsh")`; `client` tests need the real Claude Code client."""
    if item.get_closest_marker("client"):
        yield "claude"
    for marker in item.iter_markers("needs"):
        yield from marker.args


def require(item: pytest.Item) -> None:
    """Skip a test whose program is missing, or fail it when everything is to be tested."""
    for tool in needed_by(item):
        if not is_installed(tool):
            if is_everything() and tool not in OPTIONAL:
                pytest.fail(f"{tool} is not installed, and --everything tests it", pytrace=False)
            pytest.skip(f"not installed: {tool}")


def missing_tools(skipped: list[pytest.TestReport]) -> dict[str, int]:
    """Tool → how many tests were skipped because it is missing."""
    counts: dict[str, int] = {}
    for report in skipped:
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
        _, marker, tool = reason.partition("not installed: ")
        if marker:
            counts[tool] = counts.get(tool, 0) + 1
    return counts
