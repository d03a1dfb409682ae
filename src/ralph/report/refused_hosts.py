"""Hosts that the sandbox of a run refused, each with the command that allows it."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from ralph.journal.run_state import RunState
from ralph.sandbox.hosts import command_to_allow, shown

_MOST = 20


class RefusedHost(Struct, frozen=True):
    host: str
    port: int
    why: str
    count: int
    allow: str
    """The command that allows it."""

    @property
    def line(self) -> str:
        times = "once" if self.count == 1 else f"{self.count} times"
        return f"{shown(self.host, self.port)}, {times}: {self.why}"


def refused_hosts(state: RunState, present: Sequence[str]) -> tuple[RefusedHost, ...]:
    """The most frequent first. `present` is `sandbox.allow_hosts` as it is now."""
    groups = sorted(state.refused_hosts.items(), key=lambda group: -group[1])
    return tuple(RefusedHost(*key, count, command_to_allow(*key, present)) for key, count in groups[:_MOST])
