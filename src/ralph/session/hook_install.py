"""Install Ralph's hooks in a client's settings file, remove them, and report their status.

A copy of the original is kept beside the file. A record in the state folder says what was written, so that an unchanged
file is restored byte for byte; in a changed one, only Ralph's own entries are removed.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shlex
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

import msgspec
from msgspec import Struct

from ralph.core.errors import BadData, SetupError
from ralph.host.files import make_folder, read_bytes, read_state, sync_folder, write_bytes
from ralph.host.git.command import ask
from ralph.session.hook_policy import hook_command
from ralph.session.hook_settings import Found, find_hooks, with_hooks, without_hooks
from ralph.state.locks import describe, held_locks
from ralph.state.names import HOOK_INSTALLS, PLANS
from ralph.state.places import home, state_home, workspace_state

_LARGEST = 8 * 1024 * 1024
_BACKUP = ".before-ralph"


class Scope(StrEnum):
    USER = "user"
    PROJECT = "project"


class Target(Struct, frozen=True):
    """A settings file of the client."""

    scope: Scope
    file: Path
    within: Path | None = None
    """A link in the file's place must not point outside this folder."""


class Record(Struct, frozen=True):
    """What was done to a settings file."""

    file: str
    written: str
    """The hash of what was written."""
    existed: bool
    backup: str = ""
    made_folder: bool = False


class Outcome(Struct, frozen=True):
    file: Path
    changed: bool
    backup: Path | None = None
    """Path of the copy of the original file."""
    exact: bool = False
    """The file is byte for byte what it was before the hooks were installed."""


class Standing(Struct, frozen=True):
    """The status of one settings file."""

    scope: Scope
    file: Path
    installed: bool
    events: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    interpreter: str = ""
    is_current: bool = False
    """The hooks call this Ralph."""
    would_act: bool = False
    why: str = ""


def target_for(scope: Scope, root: Path | None, env: Mapping[str, str]) -> Target:
    if scope is Scope.PROJECT:
        assert root is not None, "a project has a folder"
        return Target(scope, root / ".claude" / "settings.local.json", root)
    own = env.get("CLAUDE_CONFIG_DIR")
    folder = Path(os.path.abspath(own)) if own else home(env) / ".claude"  # noqa: PTH100 - no link is resolved here
    return Target(scope, folder / "settings.json")


def install(target: Target, env: Mapping[str, str]) -> Outcome:
    """Nothing is written if the file is unreadable, has invalid hooks, or already has Ralph's hooks."""
    current, record = _read(target), _recorded(target, env)
    original = _original(target, current, record)
    new = with_hooks(original or b"", str(target.file))
    if current is not None and (new == current or _is_complete(find_hooks(current, str(target.file)))):
        return Outcome(target.file, False, _backup_of(record))
    made = not target.file.parent.exists()
    make_folder(target.file.parent)
    _require_inside(target)
    backup = _keep(target, original, record) if original is not None else None
    written = Record(
        file=str(target.file),
        written=_hash(new),
        existed=original is not None,
        backup=str(backup or ""),
        made_folder=made or (record is not None and record.made_folder),
    )
    place = _record_file(target, env)
    make_folder(place.parent, private=True)
    _write(place, msgspec.json.format(msgspec.json.encode(written)) + b"\n", mode=0o600)
    _write(target.file, new)
    return Outcome(target.file, True, backup)


def uninstall(target: Target, env: Mapping[str, str]) -> Outcome:
    current, record = _read(target), _recorded(target, env)
    backup = _backup_of(record)
    if current is None:
        _forget(target, env)
        return Outcome(target.file, False, backup)
    if record and _hash(current) == record.written and (backup or not record.existed):
        if backup:
            _write(target.file, read_bytes(backup, limit=_LARGEST))
            backup.unlink()
        else:
            target.file.unlink()
            if record.made_folder:
                with contextlib.suppress(OSError):  # something was written there meanwhile
                    target.file.parent.rmdir()
        sync_folder(target.file.parent)
        _forget(target, env)
        return Outcome(target.file, True, exact=True)
    new = without_hooks(current, str(target.file), _sound(backup))
    if new != current:
        _write(target.file, new)
    _forget(target, env)
    return Outcome(target.file, new != current, backup)


def standing(target: Target, root: Path | None, env: Mapping[str, str]) -> Standing:
    """Never raises: a problem with the file is described in `why`."""
    try:
        found = find_hooks(_read(target) or b"", str(target.file))
    except BadData as error:
        return Standing(target.scope, target.file, False, why=str(error))
    if not found.commands:
        return Standing(target.scope, target.file, False, missing=tuple(found.missing), why="not installed")
    interpreter = found.interpreters[0]
    broken = _broken(found.interpreters)
    live = _live_run(root, env)
    if broken:
        why = f"{broken} no longer exists; `ralph hooks install` rewrites the hooks"
    elif found.is_disabled:
        why = "disableAllHooks is set in this file"
    else:
        why = live or "no run is active here, so they do nothing"
    return Standing(
        target.scope,
        target.file,
        True,
        tuple(found.commands),
        tuple(found.missing),
        interpreter,
        _is_current(found),
        bool(live) and not broken and not found.is_disabled,
        why,
    )


def is_seen_by_git(target: Target) -> bool:
    """Whether git lists the file as new or changed: it is in a repository and not ignored."""
    if target.within is None:
        return False
    try:
        return ask(target.within, "status", "--porcelain", "-z", "-uall", "--", str(target.file)).out != b""
    except SetupError:
        return False


def _is_complete(found: Found) -> bool:
    return not found.missing and _is_current(found)


def _is_current(found: Found) -> bool:
    """Whether the hooks call this Ralph. Its interpreter may have another name in the same folder: python, python3."""
    program, *words = shlex.split(hook_command())
    return all(
        shlex.split(command)[1:-1] == words and _is_same_program(shlex.split(command)[0], program)
        for command in found.commands.values()
    )


def _is_same_program(one: str, other: str) -> bool:
    try:
        return one == other or (Path(one).parent == Path(other).parent and Path(one).samefile(other))
    except OSError:
        return False


def _broken(interpreters: list[str]) -> str:
    return next((path for path in interpreters if not os.access(path, os.X_OK)), "")


def _live_run(root: Path | None, env: Mapping[str, str]) -> str:
    """The active run on this workspace. Empty: none."""
    if root is None:
        return ""
    held = next(held_locks(workspace_state(root, env) / PLANS), None)
    return f"{describe(held[1])} is active; they act in clients that it starts" if held else ""


def _read(target: Target) -> bytes | None:
    if not os.path.lexists(target.file):
        return None
    return read_bytes(target.file, within=target.within, limit=_LARGEST)


def _require_inside(target: Target) -> None:
    folder, root = (os.path.realpath(path) for path in (target.file.parent, target.within or "/"))
    if not Path(folder).is_relative_to(root):
        raise BadData(f"{target.file.parent} is a link that points outside {root}", hint="nothing was written")


def _write(path: Path, data: bytes, mode: int | None = None) -> None:
    try:
        write_bytes(path, data, mode=mode)
    except OSError as error:
        raise SetupError(f"could not write {path}: {error.strerror}", hint="nothing else was changed") from None


def _original(target: Target, current: bytes | None, record: Record | None) -> bytes | None:
    """The file without Ralph's hooks; None: there would be no file."""
    if current is None:
        return None
    if record and _hash(current) == record.written:
        backup = _backup_of(record)
        if not record.existed:
            return None
        if backup:
            return read_bytes(backup, limit=_LARGEST)
    return without_hooks(current, str(target.file), _sound(_backup_of(record)))


def _keep(target: Target, original: bytes, record: Record | None) -> Path:
    """Make a copy beside the file with the same permissions. An existing copy is not overwritten."""
    file = target.file
    backup = file.with_name(file.name + _BACKUP)
    number = 1
    while backup.exists() and str(backup) != (record.backup if record else "") and read_state(backup) != original:
        number += 1
        backup = file.with_name(f"{file.name}{_BACKUP}-{number}")
    _write(backup, original, mode=file.stat().st_mode & 0o777)
    return backup


def _backup_of(record: Record | None) -> Path | None:
    return Path(record.backup) if record and record.backup and Path(record.backup).is_file() else None


def _sound(backup: Path | None) -> bytes:
    """The original file, as far as it is known."""
    if backup is None:
        return b""
    try:
        data = read_bytes(backup, limit=_LARGEST)
        find_hooks(data, str(backup))
    except BadData:
        return b""
    return data


def _record_file(target: Target, env: Mapping[str, str]) -> Path:
    name = hashlib.sha256(os.fsencode(os.path.abspath(target.file))).hexdigest()[:16]  # noqa: PTH100
    return state_home(env) / HOOK_INSTALLS / f"{name}.json"


def _recorded(target: Target, env: Mapping[str, str]) -> Record | None:
    """If the record is missing or damaged, Ralph's entries can still be found and removed, only less exactly."""
    try:
        return msgspec.json.decode(read_state(_record_file(target, env)), type=Record)
    except (OSError, msgspec.DecodeError):
        return None


def _forget(target: Target, env: Mapping[str, str]) -> None:
    with contextlib.suppress(FileNotFoundError):
        _record_file(target, env).unlink()


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
