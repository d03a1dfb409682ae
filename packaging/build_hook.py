"""Puts the man pages into the wheel, made from the same parsers as `--help`."""

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class BuildHook(BuildHookInterface):  # type: ignore[type-arg]
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable":
            return
        self.folder = Path(tempfile.mkdtemp(prefix="ralph-build-"))
        build_data["shared_data"] = {str(self.folder): "share/man/man1"}
        for name, text in man_pages(Path(self.root, "src")).items():
            (self.folder / name).write_text(text, encoding="utf-8", newline="\n")

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if version != "editable":
            shutil.rmtree(self.folder)


def man_pages(source: Path) -> dict[str, str]:
    sys.path.insert(0, str(source))
    sys.dont_write_bytecode = True
    from ralph.cli.grammar import read_all
    from ralph.cli.man import pages
    from ralph.plans.registry import LAYOUTS

    LAYOUTS.group = ""  # the built-in layouts, whatever is installed here
    return pages(read_all())
