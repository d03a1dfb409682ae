"""Runs a script in a network of its own, with only a loopback, and in a process namespace: whatever it leaves ends."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

_LOOPBACK_UP = """
import fcntl, socket, struct
with socket.socket() as probe:
    fcntl.ioctl(probe, 0x8914, struct.pack("16sh", b"lo", 1))  # SIOCSIFFLAGS, IFF_UP
"""


def run_inside(
    script: str, *arguments: str, cwd: Path, timeout: float, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run Python code there. Its first process is the init of the namespace: when it ends, all others do."""
    unshare = ["unshare", "--user", "--map-root-user", "--net", "--pid", "--fork", "--mount-proc", "--kill-child=KILL"]
    return subprocess.run(
        [*unshare, sys.executable, "-c", f"{_LOOPBACK_UP}\n{script}", *arguments],
        cwd=cwd,
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
