"""Desktop notifications: notify-send where it is installed, osascript on macOS."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from ralph.core.environment import child_environment
from ralph.host.process.programs import which
from ralph.host.process.signals import StopSignal
from ralph.notify.command import SESSION, execute
from ralph.notify.message import Message, NotSent

_APPLE = ("on run argv", "display notification (item 2 of argv) with title (item 1 of argv)", "end run")


class Desktop(Struct, frozen=True):
    env: Mapping[str, str]

    @property
    def name(self) -> str:
        return "the desktop"

    def problem(self) -> str:
        return "" if self._argv("", "") else "neither notify-send nor osascript is on PATH"

    def send(self, message: Message, timeout: float, cancel: StopSignal) -> None:
        argv = self._argv(message.title, message.text)
        if not argv:
            raise NotSent(self.problem())
        execute(argv, Path("/"), child_environment(self.env, SESSION), b"", timeout, cancel)

    def _argv(self, title: str, text: str) -> tuple[str, ...]:
        path = self.env.get("PATH", "")
        if program := which("notify-send", path):
            return (program, "--app-name=Ralph", "--", title, text)
        if program := which("osascript", path):
            script = tuple(part for line in _APPLE for part in ("-e", line))
            return (program, *script, title, text)
        return ()
