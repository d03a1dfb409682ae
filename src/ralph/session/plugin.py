"""Writes a Claude Code plugin with Ralph's hooks, skills and commands: one folder that is both a plugin and a
marketplace with that plugin.

The folder holds a list of the files Ralph wrote. Files that are not on it are never replaced.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from ralph import __version__
from ralph.core.errors import BadData, IllegalChange, SetupError
from ralph.host.files import make_folder, read_bytes, write_bytes
from ralph.session.hook_policy import EVENTS, client_settings

NAME = "ralph"
LIST = ".claude-plugin/written-by-ralph.json"
_DESCRIPTION = (
    "Ralph: plan, add, fix, answer, run, see the status and review in a session; hooks for read before edit, "
    "the command guard, and more"
)
_HOOKS = "Ralph's hooks: read before edit, protected paths, the command guard, context use, stop rules"
_LARGEST = 1024 * 1024
_PAGES = Path(__file__).with_name("plugin_pages")
SKILLS = ("ralph-plan", "ralph-setup")
"""The client may also choose these itself, from what the user asks."""
COMMANDS = tuple(f"ralph-{name}" for name in ("status", "review", "add", "fix", "answer", "run"))
"""Only the user calls these."""
HOOK = "command -v ralph-hook >/dev/null || exit 0; exec ralph-hook"
"""No path of this machine, so that the plugin can be shared. Where Ralph is not installed, the hooks do nothing."""


class Written(Struct, frozen=True):
    folder: Path
    files: tuple[str, ...]
    """New or replaced."""
    same: tuple[str, ...] = ()
    """Already up to date."""


def plugin_files(command: str = HOOK) -> dict[str, bytes]:
    """Path in the plugin → content. The manifest does not name hooks/hooks.json: the client finds it itself."""
    manifest: dict[str, Any] = {"name": NAME, "version": __version__, "description": _DESCRIPTION}
    manifest |= {"author": {"name": "Ralph"}, "license": "MIT"}
    entry = {"name": NAME, "source": "./", "version": __version__, "description": _DESCRIPTION}
    market = {"name": NAME, "owner": {"name": "Ralph"}, "description": _DESCRIPTION, "plugins": [entry]}
    return {
        ".claude-plugin/plugin.json": _json(manifest),
        ".claude-plugin/marketplace.json": _json(market),
        "hooks/hooks.json": _json({"description": _HOOKS} | client_settings(command)),
        **{f"skills/{name}/SKILL.md": _page(name) for name in SKILLS},
        **{f"commands/{name}.md": _page(name) for name in COMMANDS},
        "README.md": _readme().encode(),
    }


def _page(name: str) -> bytes:
    return (_PAGES / f"{name}.md").read_bytes()


def write_plugin(folder: Path, *, force: bool = False) -> Written:
    """Replaces files that Ralph wrote; those edited since only with `force`."""
    wanted = plugin_files()
    known = _known(folder)
    found = {name: _read(folder, name) for name in wanted}
    for name, data in found.items():
        _require_inside(folder, name)
        if data in (None, wanted[name]):
            continue
        if name not in known:
            raise IllegalChange(
                f"{folder / name} was not written by Ralph; it is left alone",
                hint="choose another folder; nothing was written",
            )
        if _hash(data) != known[name] and not force:
            raise IllegalChange(
                f"{folder / name} was edited after Ralph wrote it",
                hint=("pass --force to replace it; nothing was written"),
            )
    changed = tuple(name for name, data in wanted.items() if found[name] != data)
    listed = _json({name: _hash(data) for name, data in wanted.items()})
    make_folder(folder)
    for name in changed:
        _write(folder, name, wanted[name])
    if _read(folder, LIST) != listed:
        _write(folder, LIST, listed)
    return Written(folder, changed, tuple(name for name in wanted if name not in changed))


def _known(folder: Path) -> dict[str, str]:
    """The files Ralph wrote here, with their hashes."""
    data = _read(folder, LIST)
    if data is None:
        return {}
    try:
        return msgspec.json.decode(data, type=dict[str, str])
    except msgspec.DecodeError:
        raise BadData(
            f"{folder / LIST} could not be read, so Ralph cannot tell which files are its own",
            hint="choose another folder",
        ) from None


def _read(folder: Path, name: str) -> bytes | None:
    return read_bytes(folder / name, within=folder, limit=_LARGEST) if os.path.lexists(folder / name) else None


def _require_inside(folder: Path, name: str) -> None:
    if not Path(os.path.realpath(folder / name)).is_relative_to(os.path.realpath(folder)):
        raise IllegalChange(f"{folder / name} leads outside {folder} through a symlink", hint="nothing was written")


def _write(folder: Path, name: str, data: bytes) -> None:
    path = folder / name
    make_folder(path.parent)
    try:
        write_bytes(path, data)
    except OSError as error:
        raise SetupError(f"{path} could not be written: {error.strerror}") from None


def _json(value: Any) -> bytes:
    return json.dumps(value, indent=2, ensure_ascii=False).encode() + b"\n"


def _hash(data: bytes | None) -> str:
    return hashlib.sha256(data or b"").hexdigest()


def _readme() -> str:
    return f"""# Ralph as a Claude Code plugin

Written by `ralph hooks plugin`, for Ralph {__version__}. Try it for one session:

    claude --plugin-dir .

or add this folder as a marketplace and install the plugin from it:

    claude plugin marketplace add .
    claude plugin install {NAME}@{NAME}

It names no path of the machine it was written on: commit the folder to a repository, and others add that as a
marketplace. The programs `ralph` and `ralph-hook`, which every installation of Ralph brings, must be on their PATH.

In a session:

    /{NAME}:ralph-plan     interviews you and writes requirements and stories
    /{NAME}:ralph-setup    sets up a project
    /{NAME}:ralph-add      adds stories to the plan
    /{NAME}:ralph-fix      turns a bug report into a story with a check that fails now
    /{NAME}:ralph-answer   shows the loop's questions and passes your answers on
    /{NAME}:ralph-run      starts a run in the background
    /{NAME}:ralph-status   shows the progress of a plan
    /{NAME}:ralph-review   reviews a finished story

A run does not need the plugin: `ralph run` passes the same hooks to its client. Outside a run they do nothing, with
one exception: in an interactive client started with `RALPH_LOOP=1`, the Stop hook ends the client, so that the shell
loop around it starts a fresh one.

Events: {", ".join(EVENTS)}. Each one calls `ralph-hook EVENT`, if it is there.
"""
