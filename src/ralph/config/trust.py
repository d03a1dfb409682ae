"""Which commands a workspace defines, and whether the user has trusted exactly these. Pure.

Trust is per file: each file's commands have a fingerprint, so that two features of one workspace do not invalidate each
other's trust, and a file with the same commands as before stays trusted whatever else changes in it.
"""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Iterable, Sequence
from enum import StrEnum
from os.path import normpath
from pathlib import PurePath
from typing import Any

import msgspec
from msgspec import Struct

from ralph.config.layers import WORKSPACE, Layer, Settings
from ralph.config.schema import Step
from ralph.core.plan import Plan
from ralph.core.secrets import sealed

_HARMLESS_STEPS = frozenset({"agent", "git-commit", "readme-check", "noop"})
"""Steps that run nothing defined in a config file, except what is listed below."""
_KNOWN_STEPS = _HARMLESS_STEPS | {"command"}
_ASKED_OF_STEPS = frozenset({"command", "allowed_tools", "env", "script", "dangerously_skip_permissions"})


class NamedCommand(Struct, frozen=True, order=True):
    source: str
    """The file that defines it, relative to the workspace."""
    name: str
    command: str

    def __str__(self) -> str:
        return f"{self.name}: {visible(self.command)}"


Commands = tuple[NamedCommand, ...]


class Trusted(Struct, frozen=True, forbid_unknown_fields=True):
    """What was trusted for one file. The commands are kept so that a change can be shown."""

    fingerprint: str
    at: str
    commands: Commands


class Record(Struct, frozen=True, forbid_unknown_fields=True):
    """The content of `trust.json`."""

    version: int = 1
    workspace: str = ""
    sources: dict[str, Trusted] = {}


class Status(StrEnum):
    TRUSTED = "trusted"
    NEW = "new"
    CHANGED = "changed"


class Verdict(Struct, frozen=True):
    status: Status
    difference: tuple[str, ...] = ()
    """`+ …` and `- …` lines under the name of each file that is not trusted as it is."""


def commands_of(settings: Settings, plan: Plan | None = None, *, root: str = "", plan_file: str = "plan") -> Commands:
    """Everything that the workspace's files ask Ralph to run or allow. The user's own sources need no trust."""
    found = [command for layer in settings.layers if layer.kind in WORKSPACE for command in _of_layer(layer, root)]
    return (*found, *(commands_of_plan(plan, plan_file) if plan is not None else ()))


def commands_of_plan(plan: Plan, file: str) -> Commands:
    of_all = [NamedCommand(file, "verifyCommands", command) for command in plan.verify]
    of_stories = [NamedCommand(file, f"{s.id}.verify", command) for s in plan.stories for command in s.verify]
    return (*of_all, *of_stories)


def _of_layer(layer: Layer, root: str) -> Iterable[NamedCommand]:
    """In the form written in the file, so that neither secrets nor local paths are recorded."""
    file = PurePath(layer.file)
    source = (file.relative_to(root) if root and file.is_relative_to(root) else file).as_posix()
    written = {key: found.written for key, found in layer.values.items()}
    for name, command in written.get("quality_checks", {}).items():
        yield NamedCommand(source, f"quality_checks.{name}", command)
    for check in written.get("checks", ()):
        yield NamedCommand(source, f"checks.{check.name}" + (f" in {check.cwd}" if check.cwd else ""), check.command)
    for at, step in enumerate(written.get("steps", ())):
        if command := _of_step(step):
            yield NamedCommand(source, f"steps[{at}] {step.name or step.type}", command)
    for key in _ADDRESSES:
        addresses = written.get(key) or ()
        for address in (addresses,) if isinstance(addresses, str) else addresses:
            yield NamedCommand(source, key, sealed(address))
    for key in _ARGVS:
        if argv := written.get(key):
            yield NamedCommand(source, key, shlex.join(argv))
    prompt = layer.values.get("prompt")
    if prompt and prompt.value and is_outside(str(prompt.value), root):  # any file of the user would go to the model
        yield NamedCommand(source, "prompt", prompt.written)
    if (setup := written.get(_SETUP, "auto")) not in ("auto", "none"):
        yield NamedCommand(source, _SETUP, setup)
    for key, harmless in _PERMISSIONS.items():
        value = written.get(key, harmless)
        if value != harmless:
            text = ", ".join(map(str, value)) if isinstance(value, tuple) else str(value).lower()
            yield NamedCommand(source, key, text)


def is_outside(path: str, root: str) -> bool:
    """Whether a path leads out of the folder as it is written. Links are not followed: what reads it does that."""
    return not PurePath(normpath(PurePath(root, path))).is_relative_to(normpath(root))


_ARGVS = ("agent.command", "review.command", "planning.command", "notify.command")
_SETUP = "proof.setup"
_ADDRESSES = ("notify.webhook", "notify.apprise")
"""Where the workspace would send notifications: each address is a secret and is not recorded."""

_AGENTS = ("review.reviewers", "routing.simple", "routing.medium", "routing.complex")
"""Keys that may name an agent. Which names are agents is known to `workspace.trust`."""

_PERMISSIONS: dict[str, Any] = {
    "agent.name": "claude",
    "agent.script": "",
    "planning.agent": "",
    "review.agent": "",
    "fallback": (),
    "env": "minimal",
    "agent.env": (),
    "notify.env": (),
    "agent.allowed_tools": (),
    "permissions": "guard",
    "web": "deny",
    "allow_paths": (),
    "canary": "stop",
    "guard.enabled": True,
    "guard.allow": (),
    "sandbox.use": "auto",
    "sandbox.network": "listed",
    "sandbox.allow_hosts": (),
    "sandbox.files": (),
    "sandbox.setup": "",
    "sandbox.image": "",
}
"""Keys that run a program or widen what the agent may do, with the value that does neither."""


def _of_step(step: Step) -> str:
    """The step's command; for an unknown type of step, all of its settings."""
    if not step.enabled:
        return ""
    asked = step.config
    if step.type in _HARMLESS_STEPS:
        asked = {key: value for key, value in asked.items() if key in _ASKED_OF_STEPS}
    if set(asked) <= {"command"} and step.type in _KNOWN_STEPS:
        command = asked.get("command")
        return shlex.join(map(str, command)) if isinstance(command, list) else str(command or "")
    return msgspec.json.encode(asked, order="deterministic").decode()


def fingerprint(commands: Iterable[NamedCommand]) -> str:
    listing = sorted((c.name, c.command) for c in set(commands))
    return hashlib.sha256(msgspec.json.encode(listing)).hexdigest()


def by_source(commands: Iterable[NamedCommand]) -> dict[str, Commands]:
    sources: dict[str, list[NamedCommand]] = {}
    for command in commands:
        sources.setdefault(command.source, []).append(command)
    return {source: tuple(listed) for source, listed in sources.items()}


def check_trust(record: Record, commands: Sequence[NamedCommand]) -> Verdict:
    """Trusted if each file defines exactly the commands that were trusted for it."""
    difference: list[str] = []
    status = Status.TRUSTED
    for source, listed in by_source(commands).items():
        agreed = record.sources.get(source)
        if agreed is not None and agreed.fingerprint == fingerprint(listed):
            continue
        from difflib import unified_diff  # rarely needed

        if status is not Status.CHANGED:
            status = Status.NEW if agreed is None else Status.CHANGED
        before = sorted({str(c) for c in agreed.commands}) if agreed else []
        lines = list(unified_diff(before, sorted({str(c) for c in listed}), lineterm="", n=0))[2:]
        difference.append(f"{visible(source)}:")
        difference += [f"  {line[0]} {line[1:]}" for line in lines if not line.startswith("@@")]
    return Verdict(status, tuple(difference))


def agree(record: Record, commands: Sequence[NamedCommand], workspace: str, at: str) -> Record:
    """The record after the user trusted these commands. Other files keep their records."""
    fresh = {s: Trusted(fingerprint(listed), at, listed) for s, listed in by_source(commands).items()}
    return Record(workspace=workspace, sources={**record.sources, **fresh})


def is_sound(record: Record) -> bool:
    return record.version == 1 and all(t.fingerprint == fingerprint(t.commands) for t in record.sources.values())


def visible(text: str) -> str:
    """With everything that a terminal would hide or interpret written out, so that the user sees what is trusted."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def names_commands(key: str) -> bool:
    """Whether a change of this key can change what needs trust."""
    return key in ("checks", "quality_checks", "steps", "prompt", _SETUP, *_ARGVS, *_ADDRESSES, *_PERMISSIONS, *_AGENTS)
