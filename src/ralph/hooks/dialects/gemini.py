"""The hook calls of Gemini CLI."""

import os

from ralph.hooks.call import Answer, Call
from ralph.hooks.dialects.translation import Tools, named
from ralph.hooks.policy import Values
from ralph.hooks.quick_json import dumps

FAILED = (
    b'{"decision": "deny", "reason": "Ralph\'s hook could not check this call. Try a simpler one, or end your turn."}\n'
)
_FOLDER = {"dir_path": "path"}
TOOLS: Tools = {
    "run_shell_command": ("Bash", {}),
    "read_file": ("Read", {}),
    "write_file": ("Write", {}),
    "replace": ("Edit", {}),
    "glob": ("Glob", _FOLDER),
    "grep_search": ("Grep", _FOLDER),
    "search_file_content": ("Grep", _FOLDER),
    "list_directory": ("LS", _FOLDER),
    "web_fetch": ("WebFetch", {}),
    "google_web_search": ("WebSearch", {}),
    "write_todos": ("TodoWrite", {}),
    "activate_skill": ("Skill", {}),
}


def read(event: str, values: Values) -> Values:
    tool, given = values.get("tool_name"), values.get("tool_input")
    found = {**values, "hook_event_name": event}
    if not isinstance(tool, str):
        return found
    found = named(found, TOOLS, tool, given)
    if tool == "run_shell_command" and isinstance(given, dict) and isinstance(given.get("dir_path"), str):
        found["cwd"] = os.path.join(str(values.get("cwd") or ""), str(given["dir_path"]))
    if "tool_response" in values:
        found["tool_response"] = _shown(values["tool_response"])
    return found


def _shown(response: object) -> str:
    """What the model sees of a tool's result."""
    content = response.get("llmContent") if isinstance(response, dict) else None
    parts = content if isinstance(content, list) else [content]
    texts = [part.get("text") if isinstance(part, dict) else part for part in parts]
    return "\n".join(text for text in texts if isinstance(text, str))


def write(call: Call, answer: Answer) -> str:
    if answer.kind in ("deny", "block"):
        return dumps({"decision": "deny", "reason": answer.reason})
    if answer.kind == "context":
        return dumps({"hookSpecificOutput": {"additionalContext": answer.reason}})
    return dumps({"decision": "allow"}) if answer.kind == "allow" else ""
