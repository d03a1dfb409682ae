"""The hook calls of Qwen Code: Claude Code's, with other names for the tools."""

import os

from ralph.hooks.call import Answer, Call
from ralph.hooks.dialects.translation import Tools, named
from ralph.hooks.policy import Values
from ralph.hooks.quick_json import dumps

FAILED = (
    b'{"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": '
    b'"Ralph\'s hook could not check this call. Try a simpler one, or end your turn."}}\n'
)
TOOLS: Tools = {
    "run_shell_command": ("Bash", {}),
    "monitor": ("Monitor", {}),
    "read_file": ("Read", {"absolute_path": "file_path"}),
    "write_file": ("Write", {}),
    "edit": ("Edit", {}),
    "notebook_edit": ("NotebookEdit", {}),
    "glob": ("Glob", {}),
    "grep_search": ("Grep", {}),
    "list_directory": ("LS", {}),
    "web_fetch": ("WebFetch", {}),
    "web_search": ("WebSearch", {}),
    "todo_write": ("TodoWrite", {}),
    "agent": ("Agent", {}),
    "task": ("Task", {}),
    "task_stop": ("TaskStop", {}),
    "send_message": ("SendMessage", {}),
    "skill": ("Skill", {}),
    "tool_search": ("ToolSearch", {}),
    "structured_output": ("StructuredOutput", {}),
}


def read(event: str, values: Values) -> Values:
    tool, given = values.get("tool_name"), values.get("tool_input")
    found = {**values, "hook_event_name": event}
    if "tool_call_id" in values:  # as in its stream
        found["tool_use_id"] = values["tool_call_id"]
    if not isinstance(tool, str):
        return found
    found = named(found, TOOLS, tool, given)
    if (
        found["tool_name"] in ("Bash", "Monitor")
        and isinstance(given, dict)
        and isinstance(given.get("directory"), str)
    ):
        found["cwd"] = os.path.join(str(values.get("cwd") or ""), str(given["directory"]))
    if "tool_response" in values:
        found["tool_response"] = _shown(values["tool_response"])
    return found


def _shown(response: object) -> str:
    """What the model sees of a tool's result."""
    content = response.get("llmContent") if isinstance(response, dict) else response
    parts = content if isinstance(content, list) else [content]
    texts = [part.get("text") if isinstance(part, dict) else part for part in parts]
    return "\n".join(text for text in texts if isinstance(text, str))


def write(call: Call, answer: Answer) -> str:
    if answer.kind in ("allow", "deny"):
        decision = {"permissionDecision": answer.kind, "permissionDecisionReason": answer.reason}
        return dumps({"hookSpecificOutput": {"hookEventName": call.event, **decision}})
    if answer.kind == "block":
        return dumps({"decision": "block", "reason": answer.reason})
    if answer.kind == "context":
        return dumps({"hookSpecificOutput": {"hookEventName": call.event, "additionalContext": answer.reason}})
    return ""
