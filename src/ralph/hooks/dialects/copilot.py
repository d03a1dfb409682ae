"""GitHub Copilot CLI: `toolName` and `toolArgs`; the arguments of `apply_patch` are the patch itself."""

from ralph.hooks.call import Answer, Call
from ralph.hooks.dialects.translation import Tools, files_of_patch, named
from ralph.hooks.policy import Values
from ralph.hooks.quick_json import dumps, loads

FAILED = (
    b'{"permissionDecision": "deny", "permissionDecisionReason": '
    b'"Ralph\'s hook could not check this call. Try a simpler one, or end your turn."}\n'
)

TOOLS: Tools = {
    "bash": ("Bash", {}),
    "write_bash": ("Bash", {"input": "command"}),
    "read_bash": ("BashOutput", {}),
    "list_bash": ("BashOutput", {}),
    "stop_bash": ("KillShell", {}),
    "view": ("Read", {"path": "file_path"}),
    "create": ("Write", {"path": "file_path", "file_text": "content"}),
    "edit": ("Edit", {"path": "file_path", "old_str": "old_string", "new_str": "new_string"}),
    "apply_patch": ("Edit", {}),
    "grep": ("Grep", {}),
    "rg": ("Grep", {}),
    "glob": ("Glob", {}),
    "web_fetch": ("WebFetch", {}),
    "web_search": ("WebSearch", {}),
    "task": ("Task", {}),
    "read_agent": ("TaskOutput", {}),
    "list_agents": ("ListAgents", {}),
    "write_agent": ("SendMessage", {}),
    "skill": ("Skill", {}),
    "sql": ("TodoWrite", {}),
    "session_store_sql": ("TodoRead", {}),
    "update_todo": ("TodoWrite", {}),
    "report_intent": ("TodoWrite", {}),
}
"""`sql` works on a database of the session's own."""


def read(event: str, values: Values) -> Values:
    name = values.get("toolName")
    tool = name if isinstance(name, str) else ""
    known = {**values, "hook_event_name": event, "session_id": values.get("sessionId")}
    result = values.get("toolResult")
    if isinstance(result, dict):
        known["tool_response"] = result.get("textResultForLlm")
    return named(known, TOOLS, tool, _input(tool, values.get("toolArgs"))) if tool else known


def _input(tool: str, given: object) -> object:
    if tool == "apply_patch":
        patch = given.get("input") if isinstance(given, dict) else given
        return {"file_paths": files_of_patch(patch) if isinstance(patch, str) else []}
    if isinstance(given, str):  # JSON in a string, as in earlier versions
        try:
            given = loads(given)
        except ValueError:
            return {}
    if isinstance(given, dict) and "paths" in given:  # of a search: one or several
        paths = given["paths"]
        return {**given, "file_paths": paths if isinstance(paths, list) else [paths]}
    return given


def write(call: Call, answer: Answer) -> str:
    if answer.kind in ("allow", "deny"):
        return dumps({"permissionDecision": answer.kind, "permissionDecisionReason": answer.reason})
    if answer.kind == "block":
        return dumps({"decision": "block", "reason": answer.reason})
    return dumps({"additionalContext": answer.reason}) if answer.kind == "context" else ""
