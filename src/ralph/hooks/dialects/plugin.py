"""The calls of Ralph's own plugins, which run inside a client: one form for all of them."""

from ralph.hooks.call import Answer
from ralph.hooks.dialects.translation import Tools, named
from ralph.hooks.policy import Values
from ralph.hooks.quick_json import dumps

FAILED = b'{"deny": "Ralph\'s hook could not check this call. Try a simpler one, or end your turn."}\n'


def called(event: str, values: Values, tools: Tools) -> Values:
    found: Values = {"hook_event_name": event, "session_id": values.get("session"), "cwd": values.get("cwd")}
    if isinstance(prompt := values.get("prompt"), str):
        found["prompt"] = prompt
    if event == "Stop":
        found["stop_hook_active"] = values.get("again") is True
    if not isinstance(tool := values.get("tool"), str):
        return found
    if isinstance(output := values.get("output"), str):
        found["error" if event == "PostToolUseFailure" else "tool_response"] = output
    return named({**found, "tool_use_id": values.get("call")}, tools, tool, values.get("args"))


def answered(answer: Answer) -> str:
    return dumps({answer.kind: answer.reason}) if answer.kind in ("deny", "block", "context") else ""
