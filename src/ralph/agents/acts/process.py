"""How the agent's process behaves, and how it ends."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from ralph.agents.acts.action import Action
from ralph.agents.stage import CannotPlay, Leave, Stage

_LONG = 600.0
"""Seconds. Longer than any test waits, but finite."""
_POLITE = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGINT", "SIGHUP") if hasattr(signal, name))


class Sleep(Action, frozen=True):
    """Like a slow command. `heartbeat`: seconds between signs of life."""

    seconds: float
    heartbeat: float = 0

    def play(self, stage: Stage) -> None:
        call = stage.begin("Bash", {"command": f"sleep {self.seconds:g}"})
        until = time.monotonic() + self.seconds
        while (left := until - time.monotonic()) > 0:
            time.sleep(min(left, self.heartbeat or left))
            if self.heartbeat:
                stage.emit({"type": "tool_progress", "tool_use_id": call, "tool_name": "Bash"})
        stage.end(call)


class Silent(Action, frozen=True):
    """Prints nothing. Ends when asked to."""

    seconds: float = _LONG

    def play(self, stage: Stage) -> None:
        time.sleep(self.seconds)


class Hang(Action, frozen=True):
    """Like `silent`, and ignores requests to end."""

    seconds: float = _LONG
    ignore_term: bool = True

    def play(self, stage: Stage) -> None:
        if self.ignore_term:
            for number in _POLITE:
                signal.signal(number, signal.SIG_IGN)
        time.sleep(self.seconds)


class Crash(Action, frozen=True):
    """Ends immediately without a result: with an exit code, or by a signal."""

    code: int = 1
    signal: str = ""
    message: str = ""

    def play(self, stage: Stage) -> None:
        if self.message:
            stage.write(f"{self.message}\n".encode(), to=2)
        if not self.signal:
            raise Leave(self.code)
        number = getattr(signal, f"SIG{self.signal.upper().removeprefix('SIG')}", None)
        if not isinstance(number, signal.Signals):
            raise CannotPlay(f"unknown signal {self.signal}")
        os.kill(os.getpid(), number)
        time.sleep(_LONG)  # until it arrives


class Linger(Action, frozen=True):
    """Keeps running for a while after its final result."""

    seconds: float = _LONG

    def play(self, stage: Stage) -> None:
        stage.linger = self.seconds


class Daemon(Action, frozen=True):
    """Leaves a process behind, in a separate session and without a parent; it may write a file `after` a while."""

    seconds: float = _LONG
    path: str = ""
    text: str = "written by what was left behind\n"
    after: float = 0
    ignore_term: bool = False
    keep_output: bool = False

    def play(self, stage: Stage) -> None:
        call = stage.begin("Bash", {"command": f"nohup sleep {self.seconds:g} &"})
        if child := os.fork():
            os.waitpid(child, 0)
            stage.end(call)
            return
        os.setsid()
        if os.fork():
            os._exit(0)
        try:
            self._live()
        finally:
            os._exit(0)

    def _live(self) -> None:
        if not self.keep_output:
            nowhere = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1, 2):
                os.dup2(nowhere, stream)
        if self.ignore_term:
            for number in _POLITE:
                signal.signal(number, signal.SIG_IGN)
        until = time.monotonic() + self.seconds
        if self.path:
            time.sleep(self.after)
            Path(self.path).write_text(self.text, encoding="utf-8")
        time.sleep(max(0.0, until - time.monotonic()))
