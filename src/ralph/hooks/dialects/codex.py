"""Codex CLI. Its hooks are those of Claude Code, with the same answers, but edits are patches of several files."""

from ralph.hooks.call import Answer, Call, claude_form
from ralph.hooks.dialects.translation import Tools, files_of_patch, named
from ralph.hooks.policy import Values

FAILED = (
    b'{"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": '
    b'"Ralph\'s hook could not check this call. Try a simpler one, or end your turn."}}\n'
)
READS = False
"""It reads in a shell. A patch quotes the lines that it changes: it does not apply to a file that was not read."""
_TOOLS: Tools = {"view_image": ("Read", {}), "update_plan": ("TodoWrite", {})}


def read(event: str, values: Values) -> Values:
    tool, given = values.get("tool_name"), values.get("tool_input")
    command = given.get("command") if isinstance(given, dict) else None
    text = command if isinstance(command, str) else ""
    if tool == "apply_patch":
        return {**values, "tool_name": "Edit", "tool_input": {"file_paths": files_of_patch(text)}}
    if tool == "Bash" and "*** Begin Patch" in text:  # the client applies it itself, whatever program the command names
        return {**values, "tool_input": {"command": text, "file_paths": files_of_patch(text)}}
    return named(values, _TOOLS, tool, given) if isinstance(tool, str) else values


def write(call: Call, answer: Answer) -> str:
    """Nothing needs permission: the client is started without approvals of its own."""
    return "" if answer.kind == "allow" else claude_form(call, answer)
