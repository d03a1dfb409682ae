"""Whose a connection on the loopback is: unlike a unix socket, a port there is open to all users of the machine."""

from __future__ import annotations

import os
import sys
from pathlib import Path

_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))


def is_own(theirs: int, ours: int) -> bool:
    """Whether the connection from port `theirs` to port `ours` was made by this user or root. True where the system
    does not say."""
    ends = (f":{theirs:04X}", f":{ours:04X}")
    for table in _TABLES:
        try:
            rows = [line.split() for line in table.read_text(encoding="ascii").splitlines()]
        except OSError:
            continue
        for row in rows:
            if row[1].endswith(ends[0]) and row[2].endswith(ends[1]):
                return int(row[7]) in (0, os.getuid())
    return sys.platform != "linux"
