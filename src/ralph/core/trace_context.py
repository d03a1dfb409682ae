"""Where a run belongs in a distributed trace: the IDs of its spans, and `TRACEPARENT`. Pure, without OpenTelemetry.

IDs are hashes of what a span is about. So the loop can name the span of a session to its client before anybody has made
that span, and the trace of a killed run can be completed later.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping

from msgspec import Struct

_SAMPLED = "01"
_PARENT = r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(?:-.*)?"


class TraceContext(Struct, frozen=True):
    run: str
    parent: str = ""
    """The `TRACEPARENT` that the run was started with."""
    state: str = ""
    """Its `TRACESTATE`."""

    @property
    def trace(self) -> str:
        return self._parts[0] or hashlib.blake2b(self.run.encode(), digest_size=16).hexdigest()

    @property
    def caller(self) -> str:
        """The span that the run's own belongs to; empty if it is the root."""
        return self._parts[1]

    @property
    def is_sampled(self) -> bool:
        """False: the caller does not record this trace."""
        flags = self._parts[2]
        return not flags or bool(int(flags, 16) & 1)

    def span(self, *parts: object) -> str:
        words = "\0".join(map(str, (self.run, *parts)))
        return hashlib.blake2b(words.encode("utf-8", "replace"), digest_size=8).hexdigest()

    def session(self, iteration: int, step: str, number: int) -> dict[str, str]:
        """The variables for the client of the `number`th process of this step, from 1."""
        own = f"00-{self.trace}-{self.span('session', iteration, step, number)}-{_SAMPLED}"
        return {"TRACEPARENT": own} | ({"TRACESTATE": self.state} if self.state else {})

    @property
    def _parts(self) -> tuple[str, str, str]:
        found = re.fullmatch(_PARENT, self.parent, re.ASCII)
        return (found[1], found[2], found[3]) if found else ("", "", "")


def context_of(run: str, env: Mapping[str, str]) -> TraceContext:
    """With what the environment says about the caller's trace, if that is valid."""
    context = TraceContext(run, env.get("TRACEPARENT", "").strip().lower(), env.get("TRACESTATE", "").strip())
    return context if context.caller else TraceContext(run)
