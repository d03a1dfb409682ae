"""Reads a call, asks the one module that answers it, writes the answer, and leaves a record for the journal.

Hooks are a convenience: an error in one is recorded and the agent goes on. The loop decides again afterwards, from its
own memory. Only what nobody has looked at is denied: a command that the guard failed on, a call that cannot be read.
"""

import os
import sys

from ralph.hooks.call import NOTHING, Answer, Call, deny, written
from ralph.hooks.policy import Policy, Values, live_policy
from ralph.hooks.quick_json import loads
from ralph.hooks.records import keep

TYPE_CHECKING = False  # `typing` is not imported for it
if TYPE_CHECKING:
    from collections.abc import Callable

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
"""Event → the module whose `answer(call)` is asked."""

_OLD_NAMES = {"pre-tool": "PreToolUse", "post-tool": "PostToolUse", "on-stop": "Stop", "pre-prompt": "UserPromptSubmit"}


_USAGE = f"""usage: python -I -m ralph.hooks EVENT <call.json

events: {", ".join(MODULES)}

example: echo '{{"tool_name":"Bash","tool_input":{{"command":"git push"}}}}' | python -I -m ralph.hooks PreToolUse
"""


def main() -> None:
    """Answers one call, and ends the process: code 0, whatever happened, and without taking the interpreter down."""
    try:
        _write(_answered(sys.argv[1] if len(sys.argv) > 1 else ""))
    except BaseException:  # noqa: BLE001 - a closed pipe, a signal: nobody is there to be told
        pass
    os._exit(0)


def _answered(event: str) -> str:
    if event in ("-h", "--help", ""):
        return _USAGE
    text = respond(_OLD_NAMES.get(event, event), sys.stdin.buffer.read(_LONGEST), live_policy(os.environ))
    return text + "\n" if text else ""


def _write(text: str) -> None:
    data = text.encode()
    while data:
        data = data[os.write(1, data) :]


def respond(event: str, data: bytes, policy: Policy | None) -> str:
    """The text to print. Never raises."""
    if event not in MODULES:
        return ""
    values, error = _read(data)
    call = Call(event, values, policy)
    if error:
        return _unread(call, error) if policy else ""
    if policy is None and not call.is_old_form and not call.is_by_hand and event != "Stop":
        return ""
    answer = NOTHING
    try:
        answer = _module(event)(call)
    except Exception as problem:  # noqa: BLE001 - a hook never breaks the session it is in
        error = f"{type(problem).__name__}: {problem}"
    keep(call, answer, error)
    return written(call, answer)


def _read(data: bytes) -> tuple[Values, str]:
    try:
        values = loads(data.decode("utf-8", "replace"))
    except (ValueError, RecursionError) as problem:
        return {}, f"the call cannot be read: {problem}"
    return (values, "") if isinstance(values, dict) else ({}, "the call is no JSON object")


def _unread(call: Call, error: str) -> str:
    """In a live run a tool call that nobody could read does not happen: it may be made so that nobody can."""
    call.is_old_form = False
    answer = deny("Ralph could not read this call. Make it in a simpler way.", "unreadable")
    answer = answer if call.event == "PreToolUse" else NOTHING
    keep(call, answer, error)
    return written(call, answer)


def _module(event: str) -> "Callable[[Call], Answer]":
    __import__(MODULES[event])
    return sys.modules[MODULES[event]].answer  # type: ignore[no-any-return]
