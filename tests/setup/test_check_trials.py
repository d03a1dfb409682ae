"""`ralph init` tries the checks it found."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from ralph.setup.check_trials import try_check
from ralph.setup.toolchain import ProposedCheck

TEST = "import unittest\n\n\nclass T(unittest.TestCase):\n    def test_a(self):\n        pass\n"


@pytest.fixture
def path(tmp_path: Path) -> str:
    """Python and nothing else."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "python3").symlink_to(os.path.realpath(sys.executable))
    return str(programs)


def tried(command: str, root: Path, path: str) -> tuple[str, str]:
    check = ProposedCheck(name="test", command=command, why="", file="")
    trial = try_check(check, root, {"PATH": path, "HOME": str(root)}, 60)
    return trial.check.command, trial.outcome


@pytest.mark.parametrize("manager", ["poetry", "uv", "pdm"])
def test_without_the_package_manager_the_tests_run_alone(manager: str, tmp_path: Path, path: str) -> None:
    """shortuuid names Poetry, which builds the package; its tests need nothing but Python."""
    (tmp_path / "test_a.py").write_text(TEST)
    assert tried(f"{manager} run python -m unittest", tmp_path, path) == ("python3 -m unittest", "passes")


def test_a_manager_that_is_there_is_used(tmp_path: Path, path: str) -> None:
    """What it does not find is missing, although the system may have it."""
    (tmp_path / "test_a.py").write_text(TEST)
    poetry = Path(path) / "poetry"
    poetry.write_text("#!/bin/sh\necho 'Command not found: pytest'\nexit 1\n")
    poetry.chmod(0o755)
    sh = Path(path) / "sh"
    sh.symlink_to("/bin/sh")
    assert tried("poetry run pytest", tmp_path, path) == ("poetry run pytest", "missing")
