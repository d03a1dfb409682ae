"""Reads a call, asks the one module that answers it, writes the answer, and leaves a record for the journal.

Hooks are a convenience: an error in one is recorded and the agent goes on. The loop decides again afterwards, from its
own memory. Only the command guard answers "deny" when it cannot read a risky command.
"""

import os
import sys

from ralph.hooks.call import NOTHING, Answer, Call, written
from ralph.hooks.policy import Policy, live_policy
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


def main() -> None:
    event = sys.argv[1] if len(sys.argv) > 1 else ""
    if event in ("-h", "--help", ""):
        sys.stdout.write(f"usage: python -I -m ralph.hooks EVENT <call.json\n\nevents: {', '.join(MODULES)}\n\n")
        sys.stdout.write('example: echo \'{"tool_name":"Bash","tool_input":{"command":"git push"}}\' |')
        sys.stdout.write(" python -I -m ralph.hooks PreToolUse\n")
        return
    data = sys.stdin.buffer.read(_LONGEST)
    text = respond(_OLD_NAMES.get(event, event), data, live_policy(os.environ))
    if text:
        sys.stdout.write(text + "\n")


def respond(event: str, data: bytes, policy: Policy | None) -> str:
    """The text to print. Never raises."""
    try:
        values = loads(data.decode("utf-8", "replace"))
    except ValueError:
        values = None
    if not isinstance(values, dict) or event not in MODULES:
        return ""
    call = Call(event, values, policy)
    if policy is None and not call.is_old_form:
        return ""
    answer = NOTHING
    error = ""
    try:
        answer = _module(event)(call)
    except Exception as problem:  # noqa: BLE001 - a hook never breaks the session it is in
        error = f"{type(problem).__name__}: {problem}"
    keep(call, answer, error)
    return written(call, answer)


def _module(event: str) -> "Callable[[Call], Answer]":
    __import__(MODULES[event])
    return sys.modules[MODULES[event]].answer  # type: ignore[no-any-return]
