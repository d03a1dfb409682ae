"""Whether a backend holds here: starts one."""

from __future__ import annotations

from ralph.sandbox.wall import Backend, Found


def prove(backend: Backend, found: Found) -> Found:
    return found
