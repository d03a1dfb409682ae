"""Reads what the proxy decided: which hosts were reached and refused, how often, and the command that allows one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct, field

from ralph.sandbox.hosts import command_to_allow


class Decision(Struct, frozen=True):
    """One decision, or several equal ones; see `decision_log` for what the log contains."""

    time: float = field(default=0.0, name="t")
    name: str = ""
    """Whose list it was: the agent's, the checks'."""
    host: str = ""
    port: int = 0
    why: str = field(default="", name="refused")
    """Why it was refused; empty: it was allowed."""
    failed: str = ""
    """Allowed, but there was no connection: the reason."""
    method: str = ""
    """Empty: this is the end of a connection, with the bytes in both directions."""
    count: int = 1
    up: int = 0
    down: int = 0


class HostSummary(Struct, frozen=True):
    host: str
    port: int
    why: str
    count: int
    last: Decision
    up: int = 0
    down: int = 0


def read_decisions(path: Path) -> tuple[Decision, ...]:
    """All decisions of a log; empty if there is none."""
    return read_from(path, 0)[0]


def read_from(path: Path, offset: int) -> tuple[tuple[Decision, ...], int]:
    """The decisions from an offset on, and the offset after them. A line that is not finished is left for later."""
    try:
        with path.open("rb") as file:
            file.seek(offset)
            data = file.read()
    except FileNotFoundError:
        return (), offset
    whole = data[: data.rfind(b"\n") + 1]
    decoder = msgspec.json.Decoder(Decision)
    decisions = []
    for line in whole.splitlines():
        try:
            decisions.append(decoder.decode(line))
        except msgspec.DecodeError:
            continue  # torn by a crash
    return tuple(decisions), offset + len(whole)


def summary(decisions: Iterable[Decision]) -> tuple[HostSummary, ...]:
    """By host, port and answer; the most frequent first."""
    groups: dict[tuple[str, int, str], HostSummary] = {}
    for one in decisions:
        key = (one.host, one.port, one.why)
        before = groups.get(key) or HostSummary(*key, count=0, last=one)
        groups[key] = HostSummary(
            *key,
            count=before.count + (one.count if one.method else 0),
            last=one if one.method else before.last,
            up=before.up + one.up,
            down=before.down + one.down,
        )
    return tuple(sorted(groups.values(), key=lambda group: (-group.count, group.host, group.port)))


def allow_line(decision: Decision, present: Sequence[str] = ()) -> str:
    """The command that allows what was refused. `present` is `sandbox.allow_hosts` as it is now."""
    return command_to_allow(decision.host, decision.port, decision.why, present)
