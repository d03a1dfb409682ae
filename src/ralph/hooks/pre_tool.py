"""Before a tool is used: read before edit, protected places, the command guard. A denial says what to do instead."""

import os

from ralph.hooks import reads
from ralph.hooks.call import NOTHING, Answer, Call, deny
from ralph.hooks.places import why_protected
from ralph.hooks.records import keep

_EDITS = ("Edit", "Write", "MultiEdit", "NotebookEdit")


def answer(call: Call) -> Answer:
    tool = call.tool
    if tool == "Bash":
        return _command(call)
    path = call.input("file_path") or call.input("notebook_path")
    if not path:
        return NOTHING
    if tool == "Read":
        reads.remember(call, path)
        return NOTHING
    if tool in _EDITS:
        return _edit(call, tool, path)
    return NOTHING


def _edit(call: Call, tool: str, path: str) -> Answer:
    if why := why_protected(call, path):
        return deny(why, "protected-path")
    if call.policy is not None and not call.policy.flag("read_before_edit", True):
        return NOTHING
    is_new = not os.path.lexists(reads.real(path, call.cwd))
    if is_new and not call.is_old_form:
        return NOTHING
    if reads.was_seen(call, path):
        return NOTHING
    if call.is_old_form:
        return deny(f"Must Read file before {tool}: {path}", "read-before-edit")
    return deny(
        f"{path} has not been read in this session. Read it first, then {tool.lower()} it.",
        "read-before-edit",
    )


def _places(call: Call) -> dict[str, object]:
    """What the guard has to know besides its rules."""
    if call.policy is None or not call.policy.workspace:
        return {}
    return {"workspace": call.policy.workspace, "writable": call.policy.texts("writable")}


def _command(call: Call) -> Answer:
    command = call.input("command")
    if not command.strip():
        return NOTHING
    section = call.policy.section("guard") if call.policy else {}
    if section.get("enabled") is False:
        return NOTHING
    try:
        from ralph.hooks.guard.shielded import judge_shielded

        decision = judge_shielded(command, call.cwd, section | _places(call))
    except Exception as error:  # noqa: BLE001 - nobody has looked at the command, so it does not run
        keep(call, NOTHING, f"{type(error).__name__}: {error}")
        return deny("The command guard could not look at this command. Say it in a simpler way.", "guard-failed")
    return deny(decision.reason, decision.category) if decision.denied else NOTHING
