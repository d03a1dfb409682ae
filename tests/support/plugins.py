"""The packages of `examples/` as if pip had installed them: pip itself would need a network for its build tools."""

from __future__ import annotations

import sys
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


def register(site: Path, patch: pytest.MonkeyPatch, name: str, version: str, points: str) -> None:
    """Write what an installer writes about a package, with its entry points."""
    info = site / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (info / "entry_points.txt").write_text(points)
    patch.syspath_prepend(str(site))
