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
    info = site / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    groups = project["entry-points"].items()
    lines = [
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in points.items()) for group, points in groups
    ]
    (info / "entry_points.txt").write_text("\n".join(lines))
    for path in (site, folder / "src"):
        patch.syspath_prepend(str(path))
    for _, points in groups:
        for module in points.values():
            patch.delitem(sys.modules, module, raising=False)
