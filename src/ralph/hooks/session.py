"""The beginning and the end of a session: resets the list of read files, and records a prompt's length, never its
text."""

from ralph.hooks import context_use, reads
from ralph.hooks.call import NOTHING, Answer, Call
from ralph.hooks.records import append


def answer(call: Call) -> Answer:
    # After a compaction the session continues: read files stay read, and the context is counted again.
    if call.text("source") != "compact":
        reads.forget(call)
    if call.event == "SessionStart":
        context_use.forget(call)
    elif call.event == "UserPromptSubmit" and call.policy and (path := call.policy.text("records")):
        append(path, {"event": "prompt", "session": call.session, "length": len(call.text("prompt"))})
    return NOTHING
