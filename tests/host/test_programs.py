"""Programs are found where the shell would find them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from ralph.host.process.programs import which


@pytest.fixture
def folders(tmp_path: Path) -> str:
    """Two folders on a path: in the first a file that is no program and a folder, in the second the programs."""
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second, first / "folder"):
        folder.mkdir()
    for name in ("tool", "other"):
        (second / name).write_text("#!/bin/sh\n")
        (second / name).chmod(0o755)
    (first / "tool").write_text("not a program")
    (first / "tool").chmod(0o644)
    return os.pathsep.join(map(str, (first, tmp_path / "missing", second)))


@pytest.mark.parametrize(
    "name", ["tool", "other", "folder", "nothing", "", "./tool", "second/tool", "/bin/sh", "/nope"]
)
@pytest.mark.parametrize("chosen", ["both", "empty", "doubled"])
def test_it_agrees_with_the_standard_library(
    name: str, chosen: str, folders: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = {"both": folders, "empty": "", "doubled": f"{folders}{os.pathsep}{folders}"}[chosen]
    assert which(name, path) == shutil.which(name, path=path)
