"""Which stories of a plan were imported, and from where. Kept in the state folder: an agent may rewrite notes."""

from __future__ import annotations

import os
from collections.abc import Mapping

import msgspec

from ralph.core.errors import BadData
from ralph.core.ports import PlanRef
from ralph.host.files import make_folder, read_bytes, write_bytes
from ralph.state.names import IMPORTS
from ralph.state.places import plan_state


def read_imports(ref: PlanRef, env: Mapping[str, str]) -> dict[str, str]:
    """Key → story of everything ever imported. A damaged record is ignored: the notes hold the same information."""
    path = plan_state(ref, env) / IMPORTS
    if not os.path.lexists(path):
        return {}
    try:
        return msgspec.json.decode(read_bytes(path), type=dict[str, str])
    except (BadData, msgspec.DecodeError):
        return {}


def write_imports(ref: PlanRef, env: Mapping[str, str], record: Mapping[str, str]) -> None:
    path = plan_state(ref, env) / IMPORTS
    make_folder(path.parent, private=True)
    write_bytes(path, msgspec.json.format(msgspec.json.encode(record), indent=1) + b"\n")
