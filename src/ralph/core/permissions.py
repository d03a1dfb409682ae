"""What an agent may do, in one line, and how to allow what its client refused. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping

import msgspec
from msgspec import Struct

from ralph.core.agent import Denial

_MOST = 20
_NEVER = ("push", "leave the project", "touch protected files")


class Rights(Struct, frozen=True, kw_only=True):
    """The settings that determine what an agent may do."""

    mode: str = "guard"
    agent: str = "claude"
    has_hooks: bool = True
    web: bool = True
    allow_paths: tuple[str, ...] = ()
    guards_commands: bool = True
    allowed_tools: tuple[str, ...] = ()
    sandbox: str = ""
    """What the agent runs in; empty: nothing."""
    unguarded: str = ""
    """What the hooks of this client do not see."""
    own_rules: str = ""
    """What the client's own rules come to, where that is less than a story needs."""


def may_line(rights: Rights) -> str:
    """What the agent may and may not do, shown before it works unattended."""
    if rights.sandbox and (rights.mode == "skip" or not rights.has_hooks):
        return _may_inside(rights)
    line = _may(rights)
    return f"{line}; it runs in a sandbox ({rights.sandbox})" if rights.sandbox else line


def _may_inside(rights: Rights) -> str:
    """In a sandbox the agent is not asked about single calls."""
    places = f", and edit in {', '.join(rights.allow_paths)}" if rights.allow_paths else ""
    kept = "; commands that the guard denies stay denied" if rights.has_hooks and rights.guards_commands else ""
    never = "reach anything outside" + (", use the web tools" if rights.has_hooks and not rights.web else "")
    return f"may: everything inside its sandbox ({rights.sandbox}){places}{kept}; may not: {never}"


def _may(rights: Rights) -> str:
    if not rights.has_hooks:
        return (
            f"may: whatever the agent `{rights.agent}` permits itself; it has no hooks, so Ralph cannot deny a call "
            "and checks the results only; a sandbox is recommended (`ralph sandbox status`)"
        )
    places = "edit inside the project" + (f" and in {', '.join(rights.allow_paths)}" if rights.allow_paths else "")
    commands = "run commands the guard allows" if rights.guards_commands else "run any command"
    never = [*(_NEVER if rights.guards_commands else _NEVER[1:])]
    if not rights.web:
        never.append("use the web tools")
    denied = f"may not: {', '.join(never)}"
    if rights.unguarded:
        denied += f"; not guarded: {rights.unguarded}"
    if rights.mode == "skip":
        return f"may: everything, without asking (permissions: skip), except what Ralph's hooks deny; {denied}"
    if rights.mode == "client":
        tools = ", ".join(rights.allowed_tools) or "none"
        own = f": {rights.own_rules}" if rights.own_rules else ""
        allowed = f"(permissions: client; agent.allowed_tools: {tools})"
        return f"may: what the client's own rules allow {allowed}{own}; {denied}"
    return f"may: read all, {places}, {commands}{', use the web' if rights.web else ''}; {denied}"


def with_remedies(
    denials: Iterable[Denial], answers: Mapping[str, str], allowed_tools: str, *, mode: str = "guard"
) -> tuple[Denial, ...]:
    """The refusals that Ralph's hook did not cause, each with how to allow the call.

    `answers`: the hook's answers by call ID. `allowed_tools`: what the client's rules allow now.
    """

    def is_permitted(denial: Denial) -> bool:
        return mode == "skip" or answers.get(denial.id) == "allow"

    once = {(denial.id, denial.tool, denial.subject): denial for denial in denials}.values()
    refused = [denial for denial in once if answers.get(denial.id) != "deny"][:_MOST]
    lacking = [denial.tool for denial in refused if not denial.why and not is_permitted(denial)]
    wanted = ",".join(dict.fromkeys([*filter(None, allowed_tools.split(",")), *lacking]))
    return tuple(
        msgspec.structs.replace(denial, remedy=_remedy(denial, is_permitted(denial), wanted)) for denial in refused
    )


def _remedy(denial: Denial, is_permitted: bool, wanted: str) -> str:
    if denial.why == "protected":
        return (
            "the client protects this file; change it yourself, or disable the protection for one run with "
            "`ralph run --permissions skip`"
        )
    if denial.why == "rule" or is_permitted:
        return "a permission rule in .claude/settings.json denies it; remove the rule from `deny` or `ask` there"
    return f"allow it with `ralph config set agent.allowed_tools {shlex.quote(wanted)}`"
