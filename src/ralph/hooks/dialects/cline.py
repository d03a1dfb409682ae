"""Cline CLI. Its hooks can end the session or change a tool's input, but not deny a call: a denied one is given an
input with which it fails, and the reason as context."""

from ralph.hooks.call import Answer, Call
from ralph.hooks.dialects.translation import files_of_patch
from ralph.hooks.policy import Values
from ralph.hooks.quick_json import dumps

FAILED = b'{"cancel": true, "errorMessage": "Ralph\'s hook could not check this call."}\n'
_TOOLS = {
    "search_codebase": "Grep",
    "fetch_web_content": "WebFetch",
    "spawn_agent": "Agent",
    "skills": "Skill",
}
_NOWHERE = "/dev/null/denied"
_FAILING: dict[str, dict[str, object]] = {
    "apply_patch": {"input": "denied"},
    "editor": {"path": _NOWHERE, "old_text": "denied", "new_text": ""},
    "fetch_web_content": {"requests": []},
    "read_files": {"files": [{"path": _NOWHERE}]},
    "run_commands": {"commands": ["echo 'denied by Ralph' >&2; exit 1"]},
    "search_codebase": {"queries": []},
}


def read(event: str, values: Values) -> Values:
    call = values.get("tool_call") or values.get("tool_result")
    roots, context = values.get("workspaceRoots"), values.get("sessionContext")
    found: Values = {
        "hook_event_name": event,
        "session_id": context.get("rootSessionId") if isinstance(context, dict) else values.get("taskId"),
        "cwd": roots[0] if isinstance(roots, list) and roots else "",
    }
    if not isinstance(call, dict):
        return found
    tool, given = call.get("name"), call.get("input")
    name, translated = _tool(tool if isinstance(tool, str) else "", given if isinstance(given, dict) else {})
    found |= {"tool_name": name, "tool_input": translated, "tool_use_id": call.get("id"), "client_tool": tool}
    return found | {"tool_response": _output(call.get("output"))}


def _tool(tool: str, given: Values) -> tuple[str, Values]:
    if tool == "run_commands":
        return "Bash", {"command": _commands(given.get("commands"))}
    if tool == "editor":
        return "Edit", {"file_path": given.get("path")}
    if tool == "apply_patch":
        patch = given.get("input")
        return "Edit", {"file_paths": files_of_patch(patch if isinstance(patch, str) else "")}
    if tool == "read_files":
        files = given.get("files")
        listed = [one.get("path") for one in files if isinstance(one, dict)] if isinstance(files, list) else []
        return "Read", {"file_paths": listed}
    return _TOOLS.get(tool, tool), given


def _commands(listed: object) -> str:
    """All commands of a call, one a line. One that is not text cannot be judged, and so none is."""
    if isinstance(listed, str):
        return listed
    if not isinstance(listed, list) or not all(isinstance(one, str) for one in listed):
        return ""
    return "\n".join(listed)


def _output(output: object) -> str:
    parts = output if isinstance(output, list) else [output]
    words = [one.get("result") for one in parts if isinstance(one, dict)]
    return "\n".join(word for word in words if isinstance(word, str))


def write(call: Call, answer: Answer) -> str:
    if answer.kind == "deny":
        tool = call.values.get("client_tool")
        if not isinstance(tool, str) or tool not in _FAILING:
            return dumps({"cancel": True, "errorMessage": answer.reason})
        return dumps({"overrideInput": _FAILING[tool], "context": f"This call was denied: {answer.reason}"})
    return dumps({"context": answer.reason}) if answer.kind == "context" else "{}"
