"""Reads a call, passes it to the module that answers it, writes the answer, and records it for the journal.

Hooks are a convenience: an error in one is recorded and the agent continues. The loop decides again afterwards, from
its own records. Only what was not checked is denied: a command the guard failed on, a call that cannot be parsed.
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
"""Event → the module whose `answer(call)` is called."""

_OLD_NAMES = {"pre-tool": "PreToolUse", "post-tool": "PostToolUse", "on-stop": "Stop", "pre-prompt": "UserPromptSubmit"}


_USAGE = f"""usage: python -I -m ralph.hooks EVENT <call.json

events: {", ".join(MODULES)}

example: echo '{{"tool_name":"Bash","tool_input":{{"command":"git push"}}}}' | python -I -m ralph.hooks PreToolUse
"""


def main() -> None:
    """Answer one call and exit: always with code 0, and without shutting down the interpreter."""
    try:
        _write(_answered(sys.argv[1] if len(sys.argv) > 1 else ""))
    except BaseException:  # noqa: BLE001 - a closed pipe, a signal: nothing is left to report to
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
        return {}, f"could not parse the call: {problem}"
    return (values, "") if isinstance(values, dict) else ({}, "the call is not a JSON object")


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
