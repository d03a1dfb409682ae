"""The agent wants to stop: is the plan sound, are the review fields legal, is everything committed?

The rules are the loop's own, so they are asked of `ralph`, in a process of its own: stopping is rare, and this module
stays as light as the others. What is let through here is looked at again when the agent has ended.
"""

import os

from ralph.hooks.call import NOTHING, Answer, Call, block
from ralph.hooks.interactive import end_client
from ralph.hooks.quick_json import loads
from ralph.hooks.records import keep

_TIME = 20.0
_BEFORE = "plan.before"
_MOST_BLOCKS = 7
"""The client overrides the ninth block in a row. Giving in before that keeps its last words."""


def answer(call: Call) -> Answer:
    policy = call.policy
    if policy is None:
        if not call.is_old_form:  # somebody who tries a hook by hand is not interrupted
            end_client(os.environ)
        return NOTHING
    command = policy.texts("stop_command")
    if not command or _blocks_so_far(call) >= _MOST_BLOCKS:
        return NOTHING
    if policy.state and not os.path.isfile(os.path.join(policy.state, _BEFORE)):
        keep(call, NOTHING, "the plan as it was before is missing: only what it says is checked, not what was changed")
    problems = _ask(command, policy.workspace)
    if not problems:
        return NOTHING
    _count_block(call)
    listed = "\n".join(f"- {problem}" for problem in problems[:10])
    return block(f"Not yet. Put this right, then end your turn:\n{listed}", "stop")


def _ask(command: list[str], cwd: str) -> list[str]:
    import subprocess

    try:
        done = subprocess.run(
            command, cwd=cwd or None, stdin=subprocess.DEVNULL, capture_output=True, timeout=_TIME, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return []
    try:
        found = loads(done.stdout.decode("utf-8", "replace"))
    except ValueError:
        return []
    return [item for item in found if isinstance(item, str)] if isinstance(found, list) else []


def _state(call: Call) -> str:
    name = "".join(c for c in call.session if c.isalnum() or c in "-_")[:80]
    return os.path.join(call.policy.state, f"stops-{name}") if call.policy and call.policy.state else ""


def _blocks_so_far(call: Call) -> int:
    """Counted anew once the agent has stopped well; `stop_hook_active` stays true for the rest of a session."""
    if not (path := _state(call)) or call.values.get("stop_hook_active") is not True:
        return 0
    try:
        with open(path, encoding="ascii") as stream:
            return len(stream.read())
    except OSError:
        return 0


def _count_block(call: Call) -> None:
    if not (path := _state(call)):
        return
    try:
        with open(path, "a" if call.values.get("stop_hook_active") is True else "w", encoding="ascii") as stream:
            stream.write("x")
    except OSError:
        pass
