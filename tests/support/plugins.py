"""The packages of `examples/` as if pip had installed them: pip itself would need a network for its build tools."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import tomllib
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def install(example: str, site: Path, patch: pytest.MonkeyPatch) -> None:
    """Put a package on the path, with the metadata that an installer writes."""
    folder = EXAMPLES / example
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    patch.syspath_prepend(str(folder / "src"))
    for group, points in project["entry-points"].items():
        for name, module in points.items():
            register(site, patch, project["name"], project["version"], f"[{group}]\n{name} = {module}\n")
            patch.delitem(sys.modules, module, raising=False)


def install_acme(folder: Path, patch: pytest.MonkeyPatch) -> Path:
    """The agent of the example and its client, for this process and the trials that it starts; gives the program."""
    install("agent-plugin", folder / "site", patch)
    patch.setenv("PYTHONPATH", os.pathsep.join((str(folder / "site"), str(EXAMPLES / "agent-plugin" / "src"))))
    program = folder / "bin" / "acme"
    program.parent.mkdir()
    shutil.copy(Path(__file__).parent / "acme_client.py", program)
    program.chmod(0o755)
    patch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    patch.setattr(tempfile, "tempdir", str(folder))  # of the folders that are kept
    return program


def register(site: Path, patch: pytest.MonkeyPatch, name: str, version: str, points: str) -> None:
    """Write what an installer writes about a package, with its entry points."""
    info = site / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (info / "entry_points.txt").write_text(points)
    patch.syspath_prepend(str(site))
