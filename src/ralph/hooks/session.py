"""The beginning and the end of a session: a clean list of what was read, and how long a prompt was, never its text."""

from ralph.hooks import context_use, reads
from ralph.hooks.call import NOTHING, Answer, Call
from ralph.hooks.records import append


def answer(call: Call) -> Answer:
    # After a compaction the session goes on: what was read stays read, and the context is counted anew.
    if call.text("source") != "compact":
        reads.forget(call)
    if call.event == "SessionStart":
        context_use.forget(call)
    elif call.event == "UserPromptSubmit" and call.policy and (path := call.policy.text("records")):
        append(path, {"event": "prompt", "session": call.session, "length": len(call.text("prompt"))})
    return NOTHING
