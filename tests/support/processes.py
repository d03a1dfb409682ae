"""Real processes for tests: small scripts that behave badly, and a look at who of them is still alive.

The look is not the one of `ralph.host`: what a test checks, it should not check with itself.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path

MARK = "RALPH_TEST_MARK"

# What every script starts with.
_PRELUDE = """
import os, signal, subprocess, sys, time
def say(text):
    os.write(1, text.encode() + b"\\n")
def note(name):
    with open(name, "a") as f:
        f.write(f"{os.getpid()}\\n")
def ignore_term():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
def daemon(body):
    # As daemon(3) does it: fork, setsid, fork. The standard streams go to /dev/null.
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            null = os.open("/dev/null", os.O_RDWR)
            for fd in (0, 1, 2):
                os.dup2(null, fd)
            body()
        os._exit(0)
    os.wait()
def forget_environment(body):
    # The same program again with nothing in its environment, so that no mark is left.
    os.execve(sys.executable, [sys.executable, "-S", "-c", PRELUDE + body], {})
def sleep_long():
    time.sleep(300)
"""


def script(body: str) -> tuple[str, ...]:
    """The argv of a Python script that has `say`, `note`, `daemon` and the like at hand."""
    prelude = f"PRELUDE = {_PRELUDE!r}\n" + _PRELUDE
    return (sys.executable, "-S", "-c", prelude + body)


class Zoo:
    """One test's processes: those with its mark, and those that wrote their number into `pids`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.mark = uuid.uuid4().hex
        self.env = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], MARK: self.mark}

    def noted(self, name: str = "pids") -> list[int]:
        try:
            return [int(line) for line in (self.folder / name).read_text().splitlines()]
        except FileNotFoundError:
            return []

    def alive(self) -> list[int]:
        return sorted({*_marked(self.mark), *(pid for pid in self.noted() if is_running(pid))})

    def popen(self, body: str, env: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
        return subprocess.Popen(script(body), cwd=self.folder, env={**self.env, **(env or {})}, start_new_session=True)


def is_running(pid: int) -> bool:
    """Alive and no zombie."""
    done = subprocess.run(["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False)
    return bool(done.stdout.strip()) and not done.stdout.strip().startswith("Z")


def wait_for(what: Callable[[], object], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.01)


def _marked(mark: str) -> list[int]:
    if sys.platform != "linux":
        listing = subprocess.run(["ps", "-A", "-E", "-ww", "-o", "pid=,command="], capture_output=True, check=False)
        return [int(line.split()[0]) for line in listing.stdout.splitlines() if mark.encode() in line]
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (folder / "environ").read_bytes():
                found.append(int(folder.name))
        except OSError:
            continue
    return found
