"""Change one key in a config file: read it, edit its text, check it, replace the file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from ralph.config.document import decode
from ralph.config.editing import assign, target, unassign
from ralph.config.layers import LIMIT, SUFFIXES, named_config, project_config
from ralph.config.trust import names_commands
from ralph.core.errors import BadData
from ralph.host.files import make_folder, read_bytes, write_bytes
from ralph.state.places import user_config

_BOM = b"\xef\xbb\xbf"


class Changed(Struct, frozen=True):
    file: Path
    is_changed: bool
    names_commands: bool


def change_file(root: Path | None, name: str | None, key: str, value: str | None, env: Mapping[str, str]) -> Changed:
    """Set `key` in the project's config, in its named config, or (without `root`) in the user's. None removes it."""
    wanted = target(key)
    file = _file(root, name, env)
    source = read_bytes(file, within=root, limit=LIMIT) if os.path.lexists(file) else b""
    text = decode(source, str(file))
    changed = unassign(text, str(file), wanted) if value is None else assign(text, str(file), wanted, value, env)
    if changed != text:
        _check_inside(file, root)
        make_folder(file.parent)
        write_bytes(file, (_BOM if source.startswith(_BOM) else b"") + changed.encode())
    return Changed(file, changed != text, names_commands(wanted.key))


def _file(root: Path | None, name: str | None, env: Mapping[str, str]) -> Path:
    if root is None:
        return user_config(env)
    if name is None:
        return project_config(root)
    if found := named_config(root, name):
        return found
    suffix = "" if name.endswith(SUFFIXES) else ".yaml"
    return root / ".ralph" / "configs" / f"{name}{suffix}"


def _check_inside(file: Path, root: Path | None) -> None:
    """A symlinked `.ralph` must not redirect a write outside the workspace."""
    if root is not None and not Path(os.path.realpath(file)).is_relative_to(os.path.realpath(root)):
        raise BadData(f"{file} is outside {root}", hint="replace the link with a folder")
