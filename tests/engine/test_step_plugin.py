"""The documented example of a third-party step, installed as a user would and found by its entry point."""

from __future__ import annotations

from pathlib import Path

import pytest

from ralph.core.errors import UsageError
from ralph.core.evidence import CheckResult
from ralph.core.plan import Mode
from ralph.core.ports import StepContext
from ralph.core.registry import Registry
from ralph.engine.steps import STEPS, step
from support.plugins import install


def context(root: Path) -> StepContext:
    def run_command(name: str, command: str, *, timeout: float | None, cwd: str = "") -> CheckResult:
        raise AssertionError

    return StepContext(
        root, root, None, Mode.IMPLEMENT, 1, None, run_command, lambda c, d: (_ for _ in ()).throw(AssertionError)
    )


def test_the_example_is_found_by_its_entry_point_and_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install("step-plugin", tmp_path / "site", monkeypatch)
    assert "size" in STEPS.names()
    repo = tmp_path / "repo"
    repo.mkdir()
    (repo / "long.py").write_text("x = 1\n" * 5)
    report = step("size").execute(context(repo), {"most": 4})
    assert report.check is not None
    assert (report.ok, report.check.passed, report.check.tail) == (False, False, "long.py has 5 lines, more than 4")
    assert step("size").execute(context(repo), {"most": 5}).ok


def test_without_it_the_name_is_unknown_and_the_built_in_ones_are_listed() -> None:
    with pytest.raises(UsageError, match="unknown step type 'size'"):
        Registry("step type", {"noop": "ralph.engine.steps:NOOP"}, group="ralph.steps").get("size")
