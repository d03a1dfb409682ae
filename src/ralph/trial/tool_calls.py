"""Which of a client's tools does what a turn asks for, and with which arguments: every client has its own names.

A request lists the tools with the schema of their input. The tool is known by its name, its arguments by theirs; what
else a schema requires is filled with something harmless. A client without a tool for files has a shell.
"""

from __future__ import annotations

import shlex
from pathlib import PurePosixPath
from typing import Any

Turn = dict[str, Any]
Values = dict[str, Any]
Tools = dict[str, Values]
"""Name → schema of the input."""

KINDS = {
    "run": (
        *("Bash", "bash", "exec_command", "shell_command", "shell", "developer__shell", "run_shell_command"),
        *("Execute", "run_commands", "execute_command"),
    ),
    "write": ("Write", "write_file", "write", "create", "Create", "write_to_file", "developer__write", "editor"),
    "edit": ("Edit", "replace", "edit", "str_replace", "developer__edit", "editor", "replace_in_file"),
    "read": ("Read", "read_file", "read", "view", "read_files"),
}
_ARGUMENTS = {
    "path": ("file_path", "filePath", "absolute_path", "path", "filename", "file"),
    "text": ("content", "file_text", "contents", "new_text", "text"),
    "old": ("old_string", "oldString", "old_str", "oldText", "old_text", "before"),
    "new": ("new_string", "newString", "new_str", "newText", "new_text", "after"),
    "command": ("command", "cmd", "commands"),
}
_FILLERS: dict[str, Any] = {"integer": 1, "number": 1, "boolean": False, "array": [], "object": {}}


def tools_of(request: Values) -> Tools:
    """Of a request in any of the forms. A tool without a schema, such as a search of the service's, is left out."""
    found: Tools = {}
    for tool in request.get("tools") or []:
        listed = tool.get("tools") or tool.get("functionDeclarations") or tool.get("function_declarations")
        for each in listed or [tool.get("function") or tool]:
            schema = next((each[key] for key in _SCHEMAS if isinstance(each.get(key), dict)), None)
            if each.get("name") and schema is not None:
                found[each["name"]] = schema
    return found


_SCHEMAS = ("input_schema", "parameters", "parametersJsonSchema", "inputSchema")


def call_of(turn: Turn, tools: Tools) -> tuple[str, Values] | None:
    """The tool and its input for a turn that calls one. None: the turn is a message."""
    if "use" in turn:
        return turn["use"][0], turn["use"][1]
    kind = next((kind for kind in KINDS if kind in turn), "")
    if not kind:
        return None
    name = next((name for name in KINDS[kind] if name in tools), "")
    if name:
        return name, _input(_given(kind, turn[kind]), tools[name])
    if kind == "run":
        raise LookupError(f"no tool for commands among {', '.join(tools)}")
    return call_of({"run": in_shell(kind, turn[kind])}, tools)


def in_shell(kind: str, given: Any) -> str:
    """The same as a command."""
    path = shlex.quote(given if isinstance(given, str) else given[0])
    if kind == "read":
        return f"cat {path}"
    if kind == "edit":
        _, old, new = given
        return f"sed -i s/{old}/{new}/ {path}"
    folder = shlex.quote(str(PurePosixPath(given[0]).parent))
    return f"mkdir -p {folder} && printf %s {shlex.quote(given[1])} > {path}"


def _given(kind: str, given: Any) -> Values:
    if kind == "run":
        return {"command": given}
    if kind == "read":
        return {"path": given}
    return dict(zip(("path", "text") if kind == "write" else ("path", "old", "new"), given, strict=True))


def _input(given: Values, schema: Values) -> Values:
    properties = schema.get("properties") or {}
    found: Values = {}
    for role, value in given.items():
        for name in _ARGUMENTS[role]:
            if name in properties:
                found[name] = [value] if _type(properties[name]) == "array" else value
                break
        else:
            _nested(found, properties, role, value)
    for name in schema.get("required") or ():
        if name not in found:
            found[name] = _filler(properties.get(name) or {})
    return found


def _nested(found: Values, properties: Values, role: str, value: Any) -> None:
    """An argument inside a list of objects, such as `edits: [{oldText, newText}]` or `files: [{path}]`."""
    for name, inner in properties.items():
        items = inner.get("items") or {}
        inside = items.get("properties") or {}
        for alias in _ARGUMENTS[role]:
            if alias in inside:
                found.setdefault(name, [{}])[0][alias] = value
                return


def _type(schema: Values) -> str:
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = next((each for each in kind if each != "null"), "")
    return str(kind or "string").lower()


def _filler(schema: Values) -> Any:
    if schema.get("enum"):
        return schema["enum"][0]
    return _FILLERS.get(_type(schema), "Part of a trial")
