"""goose: the hooks of a plugin. Of its answers only a block counts, before a tool call and before it stops."""

from ralph.hooks.call import Answer, Call
from ralph.hooks.dialects.translation import named
from ralph.hooks.policy import Values
from ralph.hooks.quick_json import dumps

FAILED = b'{"decision": "block", "reason": "Ralph\'s hook could not check this call. Try a simpler one."}\n'
READS = False
_TOOLS = {
    "shell": ("Bash", {}),
    "write": ("Write", {"path": "file_path"}),
    "edit": ("Edit", {"path": "file_path", "before": "old_string", "after": "new_string"}),
    "tree": ("LS", {}),
    "read_image": ("Read", {"source": "file_path"}),
}


def read(event: str, values: Values) -> Values:
    known = {**values, "hook_event_name": event, "cwd": values.get("working_dir"), "prompt": values.get("message")}
    if event == "Stop":
        known["stop_hook_active"] = True  # it does not tell: all blocks of a session count
    tool = values.get("tool_name")
    if not isinstance(tool, str):
        return known
    name = tool.rpartition("__")[2] if tool.startswith("developer__") else tool
    given = values.get("tool_input")
    if name == "read_image" and isinstance(given, dict) and "://" in str(given.get("source")):
        return {**known, "tool_name": "WebFetch", "tool_input": given}
    return named(known, _TOOLS, name, given)


def write(call: Call, answer: Answer) -> str:
    if answer.kind in ("deny", "block"):
        return dumps({"decision": "block", "reason": answer.reason})
    return ""
