"""What of a run's trace the receiver has: a file in the run's folder, so that another process can send the rest."""

from __future__ import annotations

import contextlib
from pathlib import Path

import msgspec
from msgspec import Struct

from ralph.host.files import read_state, write_bytes
from ralph.host.process.table import ProcessId
from ralph.host.process.tree import is_alive
from ralph.state.names import TRACE


class Delivery(Struct, frozen=True, kw_only=True):
    pid: int = 0
    """Of the process that sends it."""
    start: str = ""
    sent: int = 0
    """How many spans the receiver took, in the order in which they ended."""
    is_complete: bool = False
    trouble: str = ""
    """Why the last attempt failed; empty if it did not."""

    @property
    def is_under_way(self) -> bool:
        return not self.is_complete and bool(self.pid) and is_alive(ProcessId(self.pid, self.start))


def read_delivery(run: Path) -> Delivery | None:
    """`run`: its folder. None if the run sent no trace."""
    try:
        return msgspec.json.decode(read_state(run / TRACE), type=Delivery)
    except (OSError, msgspec.DecodeError):
        return None


def write_delivery(run: Path, delivery: Delivery) -> None:
    """If it cannot be written, a later process at worst sends spans again, under the same IDs."""
    with contextlib.suppress(OSError):
        write_bytes(run / TRACE, msgspec.json.encode(delivery), mode=0o600, durable=False)
