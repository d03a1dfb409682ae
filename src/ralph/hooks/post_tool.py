"""After a tool call: test results, generated files, and how full the context is."""

from ralph.hooks import context_use, reads
from ralph.hooks.call import NOTHING, Answer, Call, context
from ralph.hooks.records import append, keep

_WRITES = ("Write", "Edit", "MultiEdit", "NotebookEdit")
_LINES = 100
_LONGEST = 20_000


def answer(call: Call) -> Answer:
    if call.tool in _WRITES and call.event == "PostToolUse":
        # What a session wrote itself it has seen.
        for path in call.paths():
            reads.remember(call, path)
    failed = _failed_tests(call) if call.tool == "Bash" else ""
    use = context_use.answer(call)
    if failed and use:
        return context(f"{failed}\n\n{use.reason}", "tests")
    return context(failed, "tests") if failed else use


def _failed_tests(call: Call) -> str:
    """An error while parsing test results must not suppress the context report."""
    try:
        return _tests(call)
    except Exception as problem:  # noqa: BLE001
        keep(call, NOTHING, f"{type(problem).__name__}: {problem}")
        return ""


def _tests(call: Call) -> str:
    """A record of failing tests for the journal; a message to the agent only where the work is rolled back
    immediately."""
    output = _output(call)
    command = call.input("command")
    if not output and not command:
        return ""
    from ralph.results.detection import detect

    found = detect(command, output, 1 if call.event == "PostToolUseFailure" else None)
    if not found.ran or call.policy is None or not (path := call.policy.text("records")):
        return ""
    kept = "\n".join(output.splitlines()[-_LINES:])[-_LONGEST:]
    record: dict[str, object] = {"event": "tests", "session": call.session, "command": command[:500]}
    append(
        path, record | {"framework": found.framework, "failed": found.failed, "output": kept if found.failed else ""}
    )
    if not found.failed or call.policy.text("rollback") != "immediate":
        return ""
    append(path, {"event": "rollback", "session": call.session, "subject": command[:500], "output": kept})
    return (
        "Tests failed. In this workspace that rolls back the whole iteration: stop here. "
        "The next session starts from the last good state and learns what failed."
    )


def _output(call: Call) -> str:
    """From the current form, the failure form, or the older `tool_output`."""
    if text := call.text("tool_output") or call.text("error"):
        return text
    response = call.values.get("tool_response")
    if isinstance(response, str):
        return response
    if isinstance(response, dict):
        parts = [response.get("stdout"), response.get("stderr")]
        return "\n".join(part for part in parts if isinstance(part, str) and part)
    return ""
