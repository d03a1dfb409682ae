"""Reads a call, passes it to the module that answers it, writes the answer, and records it for the journal.

Hooks are a convenience: an error in one is recorded and the agent continues. The loop decides again afterwards, from
its own records. Before a tool call it is the other way round: what was not checked is denied, whether the guard failed,
the call cannot be parsed, memory ran out, the policy is gone, or the run itself is.
"""

import os
import sys

from ralph.hooks.call import NOTHING, Answer, Call, deny, written
from ralph.hooks.policy import DEAD, Policy, Values, find_policy
from ralph.hooks.quick_json import loads
from ralph.hooks.records import keep

TYPE_CHECKING = False  # `typing` is not imported for it
if TYPE_CHECKING:
    from collections.abc import Callable

    from ralph.hooks.call import Dialect

_LONGEST = 64 * 1024 * 1024

MODULES = {
    "PreToolUse": "ralph.hooks.pre_tool",
    "PostToolUse": "ralph.hooks.post_tool",
    "PostToolUseFailure": "ralph.hooks.post_tool",
    "Stop": "ralph.hooks.stop",
    "UserPromptSubmit": "ralph.hooks.session",
    "SessionStart": "ralph.hooks.session",
    "SessionEnd": "ralph.hooks.session",
}
"""Event → the module whose `answer(call)` is called."""

_OLD_NAMES = {"pre-tool": "PreToolUse", "post-tool": "PostToolUse", "on-stop": "Stop", "pre-prompt": "UserPromptSubmit"}


_USAGE = f"""usage: python -I -m ralph.hooks EVENT <call.json

events: {", ".join(MODULES)}

example: echo '{{"tool_name":"Bash","tool_input":{{"command":"git push"}}}}' | python -I -m ralph.hooks PreToolUse
"""


_READING = ("Read", "Grep", "Glob", "LS", "NotebookRead")
"""Tools that change nothing. A client without a policy may still use them."""
_FAILED = (
    b'{"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": '
    b'"Ralph\'s hook could not check this call. Try a simpler one, or end your turn."}}\n'
)
"""Written without needing memory."""


def main() -> None:
    """Answer one call and exit without shutting down the interpreter.

    With code 0, except where a denial cannot be written: the client takes code 2 for one.
    """
    code, event = 0, sys.argv[1] if len(sys.argv) > 1 else ""
    dialect = None
    try:
        dialect = _dialect(sys.argv[2]) if len(sys.argv) > 2 else None
        _write(_answered(_OLD_NAMES.get(event, event), dialect).encode())
    except BaseException:  # noqa: BLE001 - no memory, a closed pipe, a signal
        if event == "PreToolUse" and "RALPH_POLICY" in os.environ:
            try:
                _write(dialect.FAILED if dialect else _FAILED)
            except OSError:
                code = 2
    os._exit(code)


def _dialect(name: str) -> "Dialect":
    module = f"ralph.hooks.dialects.{name}"
    __import__(module)
    return sys.modules[module]


def _answered(event: str, dialect: "Dialect | None") -> str:
    if event in ("-h", "--help", ""):
        return _USAGE
    policy, lost = find_policy(os.environ)
    data = sys.stdin.buffer.read(_LONGEST)
    if lost:
        text = without_policy(event, data, lost, dialect)
        _write(text.encode() + b"\n" if text else b"")
        if lost == DEAD:
            _end_client()
        return ""
    text = respond(event, data, policy, dialect)
    return text + "\n" if text else ""


def without_policy(event: str, data: bytes, why: str, dialect: "Dialect | None" = None) -> str:
    """The client of a run that is over, or whose policy is gone: it may look, but change nothing."""
    call = Call(event, _read(data, event, dialect)[0], None, dialect)
    if event != "PreToolUse" or call.tool in _READING:
        return ""
    call.is_old_form = False
    return written(call, deny(f"Denied: {why}. Change nothing more and end your turn.", "no-run"))


def _end_client() -> None:
    """Where the system does not end a client with the process that started it."""
    from ralph.hooks.interactive import find_client

    if pid := find_client(os.environ):
        os.kill(pid, 15)


def _write(data: bytes) -> None:
    while data:
        data = data[os.write(1, data) :]


def respond(event: str, data: bytes, policy: Policy | None, dialect: "Dialect | None" = None) -> str:
    """The text to print. Never raises."""
    if event not in MODULES:
        return ""
    values, error = _read(data, event, dialect)
    call = Call(event, values, policy, dialect)
    if error:
        return _unread(call, error) if policy else ""
    if policy is None and not call.is_old_form and not call.is_by_hand and event != "Stop":
        return ""
    answer = NOTHING
    try:
        answer = _module(event)(call)
    except Exception as problem:  # noqa: BLE001 - a hook never breaks the session it is in
        error = f"{type(problem).__name__}: {problem}"
        if event == "PreToolUse" and policy and call.tool not in _READING:
            answer = deny("Ralph's hook could not check this call. Try a simpler one, or end your turn.", "hook-failed")
    keep(call, answer, error)
    return written(call, answer)


def _read(data: bytes, event: str = "", dialect: "Dialect | None" = None) -> tuple[Values, str]:
    try:
        values = loads(data.decode("utf-8", "replace"))
    except (ValueError, RecursionError) as problem:
        return {}, f"could not parse the call: {problem}"
    if not isinstance(values, dict):
        return {}, "the call is not a JSON object"
    return (dialect.read(event, values) if dialect else values), ""


def _unread(call: Call, error: str) -> str:
    """In a live run, an unreadable tool call is denied: it may have been made unreadable on purpose."""
    call.is_old_form = False
    answer = deny("Ralph could not parse this call. Make a simpler one.", "unreadable")
    answer = answer if call.event == "PreToolUse" else NOTHING
    keep(call, answer, error)
    return written(call, answer)


def _module(event: str) -> "Callable[[Call], Answer]":
    __import__(MODULES[event])
    return sys.modules[MODULES[event]].answer  # type: ignore[no-any-return]
