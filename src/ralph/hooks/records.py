"""The hooks' answers, one line each, which the loop reads into the journal. Appended with single writes."""

import os
import time

from ralph.hooks.call import Answer, Call
from ralph.hooks.quick_json import dumps

_LONGEST = 2000


def keep(call: Call, answer: Answer, error: str = "") -> None:
    """The first record of a session also tells the loop that its hooks work."""
    if call.policy is None or not (path := call.policy.text("records")):
        return
    record = {
        "t": round(time.time(), 3),
        "event": call.event,
        "session": call.session,
        "tool": call.tool,
        "id": call.text("tool_use_id"),
        "subject": (call.input("command") or next(iter(call.paths()), ""))[:_LONGEST],
        "answer": answer.kind,
        "category": answer.category,
        "reason": answer.reason[:_LONGEST],
    }
    append(path, record | ({"error": error[:_LONGEST]} if error else {}))


def append(path: str, record: dict[str, object]) -> None:
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        return
    try:
        os.write(descriptor, (dumps(record) + "\n").encode())
    except OSError:
        pass
    finally:
        os.close(descriptor)
