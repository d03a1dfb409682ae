"""Ends what the agents of a killed run left behind: `python -I -m ralph.host.process.watchdog RUN FILE`.

It reads a pipe from the run: one line per agent, its pid and start time. When the pipe closes, the run is over. A run
that ends normally ends its watchdog first; otherwise nothing guards the agents any more. FILE is written when all of
them have ended: what changes later was not changed by an agent.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

from ralph.core.environment import run_marks
from ralph.core.errors import SetupError
from ralph.host.process.table import ProcessId
from ralph.host.process.tree import end_left_behind


class Watchdog:
    """`with Watchdog(run, file) as watchdog: watchdog.follow(agent)`. If it cannot be started, runs go without one."""

    def __init__(self, run: str, ended: Path) -> None:
        self._run = run
        self._ended = ended
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Watchdog:
        with contextlib.suppress(OSError):
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-m", "ralph.host.process.watchdog", self._run, str(self._ended.absolute())],
                env={"PATH": os.environ.get("PATH", os.defpath), "HOME": os.environ.get("HOME", "/")},
                cwd="/",
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                process_group=0,  # out of reach of Ctrl-C; in our session, so that it is not taken for an agent's child
            )
        return self

    def follow(self, agent: ProcessId) -> None:
        if self._process is not None and self._process.stdin is not None:
            with contextlib.suppress(OSError):
                self._process.stdin.write(f"{agent.pid} {agent.start}\n".encode())
                self._process.stdin.flush()

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            if self._process.stdin is not None:
                with contextlib.suppress(OSError):
                    self._process.stdin.close()


def main(run: str, ended: str) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    agent: ProcessId | None = None
    for line in sys.stdin:
        pid, _, start = line.strip().partition(" ")
        agent = ProcessId(int(pid), start)
    mark, mark_in_checkout = run_marks(run)
    with contextlib.suppress(SetupError):  # the next run says so
        end_left_behind(agent, mark, 0, mark_in_checkout)
        with contextlib.suppress(OSError):
            os.close(os.open(ended, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))


if __name__ == "__main__":
    main(*sys.argv[1:])
