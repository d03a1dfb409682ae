"""`ralph guard`: show whether the agent may run a command."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from ralph.cli.output import emit_json, emit_line, paint, say_raw, warn
from ralph.core.errors import RalphError, UsageError
from ralph.core.text import one_line
from ralph.guard.categories import BY_ID, TABLE
from ralph.guard.decision import Decision, judge_command
from ralph.session.hook_policy import guard_section, writable_places
from ralph.workspace.find import open_settings

_LONGEST_LINE = 4_000_000


def run(args: Namespace) -> int:
    if args.categories:
        return _list_categories(args.json)
    section = {} if args.defaults else _rules(args)
    cwd = str(Path(args.cwd).resolve()) if args.cwd else ""
    if args.jsonl:
        for key in ("workspace", "links"):
            section.pop(key, None)  # each command says where it is
        for line in _lines():
            emit_line(_answered(line, cwd, section))
        return 0
    if args.command is None:
        raise UsageError("the command is missing", hint="`ralph guard 'COMMAND'`, in quotes")
    decision = judge_command(args.command, cwd or str(Path.cwd()), section)
    _tell(decision, args.command, args.json)
    return 1 if decision.denied else 0


def _rules(args: Namespace) -> dict[str, Any]:
    """The settings of the workspace around the current folder; the built-in rules if they are invalid."""
    try:
        root, _, settings = open_settings(args)
        writable = {"writable": writable_places(os.environ, settings.config, root)}
        where = {"workspace": os.path.realpath(root), "links": True} if root and not args.cwd else {}
        return guard_section(settings.config) | writable | where
    except RalphError as error:
        warn(f"the rules of this workspace are not used: {error}")
        return {}


def _list_categories(as_json: bool) -> int:
    if as_json:
        emit_json([{"id": each.id, "severity": each.severity, "meaning": each.meaning} for each in TABLE])
        return 0
    for each in TABLE:
        say_raw(f"{each.id:<14} {each.severity:<9} {each.meaning}")
    return 0


def _tell(decision: Decision, command: str, as_json: bool) -> None:
    if as_json:
        emit_json({"command": command, **_as_values(decision), "severity": decision.severity or None})
        return
    if not decision.denied:
        say_raw(f"{paint('allow', 'green')}  {one_line(command)}")
        return
    known = BY_ID.get(decision.category)
    say_raw(f"{paint('deny', 'red')}  {one_line(command)}")
    say_raw(f"  category: {decision.category} ({decision.severity})" + (f": {known.meaning}" if known else ""))
    say_raw(f"  reason:   {one_line(decision.reason, 2000)}")


def _as_values(decision: Decision) -> dict[str, Any]:
    return {
        "decision": "deny" if decision.denied else "allow",
        "category": decision.category or None,
        "reason": decision.reason or "no rule denies it",
    }


def _lines() -> Iterator[bytes]:
    """The lines of stdin; a line that is too long is cut."""
    stream = sys.stdin.buffer
    while line := stream.readline(_LONGEST_LINE):
        if not line.endswith(b"\n") and len(line) == _LONGEST_LINE:
            while (rest := stream.readline(_LONGEST_LINE)) and not rest.endswith(b"\n"):
                pass
        if not line.isspace():
            yield line


def _answered(line: bytes, cwd: str, section: dict[str, Any]) -> dict[str, Any]:
    """One answer per line, whatever it contains. A line without a command is denied."""
    try:
        given = msgspec.json.decode(line)
        command = given.get("command") if isinstance(given, dict) else None
        where = given.get("cwd") if isinstance(given, dict) else None
    except (msgspec.DecodeError, UnicodeDecodeError):
        command = where = None
    if not isinstance(command, str):
        wanted = '{"command": TEXT, "cwd": PATH?}'
        return {"decision": "deny", "category": "unreadable", "reason": f"this line is not {wanted}", "error": True}
    try:
        return _as_values(judge_command(command, where if isinstance(where, str) and where else cwd, section))
    except Exception as error:  # noqa: BLE001 - as in the hook: nobody has looked at it, so it does not run
        problem = f"the guard failed: {type(error).__name__}"
        return {"decision": "deny", "category": "unreadable", "reason": problem, "error": True}
