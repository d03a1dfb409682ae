"""The beginning and the end of a session: a clean list of what was read, and how long a prompt was, never its text."""

from ralph.hooks import reads
from ralph.hooks.call import NOTHING, Answer, Call


def answer(call: Call) -> Answer:
    if call.event in ("SessionStart", "UserPromptSubmit"):
        # After a compaction the session goes on: what was read stays read, and the context is counted anew.
        if call.text("source") != "compact":
            reads.forget(call)
        _rearm(call)
    elif call.event == "SessionEnd":
        reads.forget(call)
    return NOTHING


def _rearm(call: Call) -> None:
    from ralph.hooks.context_use import forget

    forget(call)
