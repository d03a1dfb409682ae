"""`ralph` on a real terminal: a pty, what is typed into it, what is on the screen."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import select
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

_COLOURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def converse(
    arguments: Sequence[str], answers: Sequence[tuple[str, str]], *, cwd: Path, env: Mapping[str, str] | None = None
) -> tuple[int, str]:
    """Run `ralph` on a terminal. Each answer is typed once its question is on the screen. Returns code and screen."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "ralph", *arguments],
        cwd=cwd,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "200", **(env or {})},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    screen, asked_until, waiting = "", 0, list(answers)
    deadline = time.monotonic() + 50
    try:
        while time.monotonic() < deadline:
            if waiting and (at := screen.find(waiting[0][0], asked_until)) >= 0:
                asked_until = at + len(waiting[0][0])
                os.write(ours, waiting.pop(0)[1].encode() + b"\n")
            if not select.select([ours], [], [], 0.2)[0]:
                continue
            try:
                data = os.read(ours, 65536)
            except OSError:  # EIO: the other side is closed
                break
            if not data:
                break
            screen += _COLOURS.sub("", data.decode("utf-8", "replace")).replace("\r\n", "\n")
        code = process.wait(timeout=20)
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        process.wait()
        os.close(ours)
    assert not waiting, f"never asked: {waiting[0][0]!r}\n{screen}"
    return code, screen
