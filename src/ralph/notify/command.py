"""A user-defined command that gets the message in environment variables and, as JSON, on stdin."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from ralph.core.environment import child_environment
from ralph.core.errors import SetupError
from ralph.core.text import one_line
from ralph.host.process.signals import StopSignal
from ralph.host.process.start import run
from ralph.notify.message import Message, NotSent

SESSION = ("DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY")
"""Variables a program needs to reach the desktop session it was started from."""


class Command(Struct, frozen=True):
    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str]
    wanted: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return f"the command {one_line(Path(self.argv[0]).name, 40)}"

    def problem(self) -> str:
        return ""

    def send(self, message: Message, timeout: float, cancel: StopSignal) -> None:
        told = {
            "RALPH_NOTIFY_EVENT": message.event.value,
            "RALPH_NOTIFY_TITLE": message.title,
            "RALPH_NOTIFY_TEXT": message.text,
        }
        env = child_environment(self.env, (*SESSION, *self.wanted), told)
        execute(self.argv, self.cwd, env, message.as_json(), timeout, cancel)


def execute(
    argv: tuple[str, ...], cwd: Path, env: Mapping[str, str], stdin: bytes, timeout: float, cancel: StopSignal
) -> bytes:
    """Run the command; fail unless it exits with 0. Its output may hold secrets and is never shown."""
    try:
        done = run(argv, cwd=cwd, env=env, stdin=stdin, timeout=timeout, limit=64_000, grace=1, stop=cancel)
    except SetupError as error:
        raise NotSent(str(error)) from None
    if done.timed_out or cancel.requested:
        raise NotSent("timed out")
    if done.code:
        raise NotSent(f"exited with code {done.code}")
    return done.out
