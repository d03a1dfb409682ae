"""Before the agent stops: check that the plan is valid, the review fields are legal, and everything is committed.

The rules are the loop's own, so a separate `ralph` process applies them: stopping is rare, and this module stays as
light as the others. What is allowed here is checked again after the agent has ended.

Without a run, the marker `.ralph-active` in the working directory stands for one, as in seed 001.
"""

import os
import sys

from ralph.hooks.call import NOTHING, Answer, Call, block
from ralph.hooks.interactive import end_client
from ralph.hooks.policy import PLAN_BEFORE
from ralph.hooks.quick_json import loads
from ralph.hooks.records import keep

_TIME = 20.0
_MARKER = ".ralph-active"
_MOST_BLOCKS = 7
"""The client overrides the ninth block in a row. Giving in before that keeps its final message."""


def answer(call: Call) -> Answer:
    policy = call.policy
    if policy is None:
        folder = call.cwd or os.getcwd()
        if call.is_by_hand and os.path.isfile(os.path.join(folder, _MARKER)):
            return _listed(_ask([sys.executable, "-I", "-m", "ralph", "hooks", "at-stop"], folder, quiet=False))
        if not call.is_old_form:  # a manual call of the hook interrupts nothing
            end_client(os.environ)
        return NOTHING
    command = policy.texts("stop_command")
    if not command or _blocks_so_far(call) >= _MOST_BLOCKS:
        return NOTHING
    if policy.state and not os.path.isfile(os.path.join(policy.state, PLAN_BEFORE)):
        keep(
            call,
            NOTHING,
            "the previous version of the plan is missing: only its content is checked, not the changes to it",
        )
    problems = _ask(command, policy.workspace)
    if problems:
        _count_block(call)
    return _listed(problems)


def _listed(problems: list[str]) -> Answer:
    if not problems:
        return NOTHING
    listed = "\n".join(f"- {problem}" for problem in problems[:10])
    return block(f"You cannot stop yet. Fix this, then end your turn:\n{listed}", "stop")


def _ask(command: list[str], cwd: str, *, quiet: bool = True) -> list[str]:
    import subprocess

    nothing, errors = subprocess.DEVNULL, subprocess.DEVNULL if quiet else None
    try:
        done = subprocess.run(
            command, cwd=cwd or None, stdin=nothing, stdout=subprocess.PIPE, stderr=errors, timeout=_TIME, check=False
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
    """The count restarts once the agent has stopped successfully; `stop_hook_active` stays true for the rest of a
    session."""
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
