"""Droid: the form of Claude Code, with tools of its own. A call that nobody permits ends its whole session."""

from ralph.hooks.call import Answer, Call
from ralph.hooks.dialects.translation import Tools, files_of_patch, named
from ralph.hooks.policy import Values
from ralph.hooks.quick_json import dumps

FAILED = (
    b'{"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": '
    b'"Ralph\'s hook could not check this call. Try a simpler one, or end your turn."}}\n'
)

TOOLS: Tools = {
    "Execute": ("Bash", {}),
    "Create": ("Write", {}),
    "Edit": ("Edit", {"old_str": "old_string", "new_str": "new_string"}),
    "ApplyPatch": ("Edit", {}),
    "LS": ("LS", {"directory_path": "path"}),
    "Glob": ("Glob", {"folder": "path"}),
    "FetchUrl": ("WebFetch", {}),
}
_UNKNOWN = "This tool is not permitted here. Use another one, or end your turn."


def read(event: str, values: Values) -> Values:
    tool, given = values.get("tool_name"), values.get("tool_input")
    if not isinstance(tool, str):
        return values
    if tool == "ApplyPatch":
        texts = given.values() if isinstance(given, dict) else [given]
        given = {"file_paths": [path for text in texts if isinstance(text, str) for path in files_of_patch(text)]}
    return named(values, TOOLS, tool, given)


def write(call: Call, answer: Answer) -> str:
    if not answer and call.event == "PreToolUse" and call.policy and call.policy.text("permissions") == "guard":
        answer = Answer("deny", _UNKNOWN)
    if answer.kind in ("allow", "deny"):
        decision = {"permissionDecision": answer.kind, "permissionDecisionReason": answer.reason}
        return dumps({"hookSpecificOutput": {"hookEventName": call.event, **decision}})
    if answer.kind == "block":
        return dumps({"decision": "block", "reason": answer.reason})
    if answer.kind == "context":
        return dumps({"hookSpecificOutput": {"hookEventName": call.event, "additionalContext": answer.reason}})
    return ""
