"""The run that has not ended in a working tree, whatever its plan: any later run there closes it first."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

from ralph.core.errors import BadData
from ralph.core.ports import PlanRef
from ralph.host.files import make_folder, read_bytes, write_bytes
from ralph.host.places import state_home, workspace_id

_FOLDER = "trees"


class OpenRun(Struct, frozen=True, kw_only=True):
    run: str
    layout: str
    root: str
    folder: str
    path: str
    name: str

    @property
    def ref(self) -> PlanRef:
        return PlanRef(self.layout, Path(self.root), Path(self.folder), Path(self.path), self.name)


def record_open_run(tree: Path, ref: PlanRef, run: str, env: Mapping[str, str]) -> None:
    """`tree`: the root of the working tree."""
    file = _file(tree, env)
    make_folder(file.parent, private=True)
    places = {name: str(getattr(ref, name)) for name in ("root", "folder", "path")}
    found = OpenRun(run=run, layout=ref.layout, name=ref.name, **places)
    text = json.dumps(msgspec.to_builtins(found))  # ASCII: a path may have bytes that are not UTF-8
    write_bytes(file, text.encode() + b"\n", mode=0o600)


def open_run(tree: Path, env: Mapping[str, str]) -> OpenRun | None:
    """The run that was started last in this working tree and has not ended. A live one counts."""
    with contextlib.suppress(OSError, BadData, ValueError, RecursionError):
        file = _file(tree, env)
        return msgspec.convert(json.loads(read_bytes(file)), OpenRun) if file.exists() else None
    return None


def forget_open_run(tree: Path, env: Mapping[str, str]) -> None:
    _file(tree, env).unlink(missing_ok=True)


def _file(tree: Path, env: Mapping[str, str]) -> Path:
    return state_home(env) / _FOLDER / f"{workspace_id(tree)}.json"
