"""Where stories wait that the user added while a run was active."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ralph.core.ports import PlanRef
from ralph.state.names import ADDITIONS
from ralph.state.places import plan_state

TAKEN = ".taken"
"""Suffix of a file that a run has started to process."""


def inbox(ref: PlanRef, env: Mapping[str, str]) -> Path:
    return plan_state(ref, env) / ADDITIONS


def waiting(ref: PlanRef, env: Mapping[str, str]) -> int:
    """How many calls of `ralph add` wait for a run."""
    folder = inbox(ref, env)
    return sum(path.suffix in (".json", TAKEN) for path in folder.iterdir()) if folder.is_dir() else 0
