"""The documented example of a third-party step, installed as a user would and found by its entry point."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ralph.core.errors import UsageError
from ralph.core.evidence import CheckResult
from ralph.core.plan import Mode
from ralph.core.ports import StepContext
from ralph.core.registry import Registry
from ralph.steps.registry import STEPS, step

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "step-plugin"


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """On the path with the metadata that an installer writes; pip itself would need a network for its build tools."""
    site = tmp_path / "site"
    info = site / "ralph_step_size-0.1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: ralph-step-size\nVersion: 0.1.0\n")
    (info / "entry_points.txt").write_text("[ralph.steps]\nsize = ralph_step_size\n")
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.syspath_prepend(str(EXAMPLE / "src"))
    monkeypatch.delitem(sys.modules, "ralph_step_size", raising=False)
    return site


def context(root: Path) -> StepContext:
    def run_command(name: str, command: str, *, timeout: float | None, cwd: str = "") -> CheckResult:
        raise AssertionError

    return StepContext(
        root, root, None, Mode.IMPLEMENT, 1, None, run_command, lambda c, d: (_ for _ in ()).throw(AssertionError)
    )


def test_the_example_is_found_by_its_entry_point_and_works(installed: Path, tmp_path: Path) -> None:
    assert 'size = "ralph_step_size"' in (EXAMPLE / "pyproject.toml").read_text()
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
        Registry("step type", {"noop": "ralph.steps.noop"}, group="ralph.steps").get("size")
