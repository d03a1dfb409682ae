"""Ways to make a file, by default the plan, unreadable."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from ralph.agents.acts.action import Action
from ralph.agents.acts.files import remove
from ralph.agents.stage import Stage


class Corrupt(Action, frozen=True):
    how: Literal["truncate", "empty", "invalid", "binary", "delete", "fifo", "folder", "symlink", "unreadable"]
    path: str = ""
    to: str = os.devnull
    """Where the link points."""

    def play(self, stage: Stage) -> None:
        path = Path(self.path) if self.path else stage.plan
        call = stage.begin("Bash", {"command": f"{self.how} {path}"})
        match self.how:
            case "truncate":
                data = path.read_bytes()
                path.write_bytes(data[: len(data) // 2])
            case "empty":
                path.write_bytes(b"")
            case "invalid":
                path.write_text('{"this is": [not a plan\n', encoding="utf-8")
            case "binary":
                path.write_bytes(b"\xff\xfe\0\x80" * 256)
            case "unreadable":
                path.chmod(0)
            case _:
                self._replace(path)
        stage.end(call)

    def _replace(self, path: Path) -> None:
        remove(path)
        match self.how:
            case "fifo":
                os.mkfifo(path)
            case "folder":
                path.mkdir()
            case "symlink":
                path.symlink_to(self.to)
