"""Before a tool call: read before edit, protected places, private keys, the web, the command guard.

A denial says what to do instead. With `permissions: guard` all other known tools are permitted here, so that an
unattended client never has to ask. A tool that Ralph does not know is left to the client's own rules.
"""

import os

from ralph.hooks import reads
from ralph.hooks.call import ALLOWED, NOTHING, Answer, Call, deny
from ralph.hooks.places import is_inside, why_protected
from ralph.hooks.policy import ANSWERED
from ralph.hooks.records import keep

_EDITS = ("Edit", "Write", "MultiEdit", "NotebookEdit")
_READS = ("Read", "Grep", "Glob", "LS", "NotebookRead")
_WEB = ("WebFetch", "WebSearch")
_COMMANDS = ("Bash", "Monitor")
_HARMLESS = (
    *("Agent", "Task", "Workflow", "SendMessage", "ListAgents", "Skill", "SlashCommand", "ToolSearch"),
    *("TodoWrite", "TodoRead", "TaskCreate", "TaskGet", "TaskList", "TaskUpdate", "TaskOutput", "TaskStop"),
    *("BashOutput", "KillShell", "KillBash", "StructuredOutput", "ReportFindings"),
)
"""Sub-agents, whose calls come here too, and tools that change nothing but the session."""


def answer(call: Call) -> Answer:
    found = _judge(call)
    if found is ALLOWED and not (call.policy and call.policy.text("permissions") == "guard"):
        return NOTHING
    return found


def _judge(call: Call) -> Answer:
    tool = call.tool
    if tool in _COMMANDS:
        found = _command(call)
        return _edits(call, tool) if found is ALLOWED and call.paths() else found  # a command can hold a patch
    if tool in _EDITS:
        return _edits(call, tool)
    if tool in _READS:
        return _read(call, tool)
    if tool in _WEB and call.policy and call.policy.text("web") == "deny":
        return deny("The web tools are disabled (web: deny). Work with what is on this machine.", "web")
    if tool == "StructuredOutput":
        _note_answer(call)
    return ALLOWED if tool in _WEB or tool in _HARMLESS else NOTHING


def _note_answer(call: Call) -> None:
    """For the Stop hook: a verdict given through the client's schema is in no file that it could read."""
    if call.policy is not None and call.policy.state:
        try:
            open(os.path.join(call.policy.state, ANSWERED), "w").close()
        except OSError:
            pass


def _read(call: Call, tool: str) -> Answer:
    for path in call.paths():
        if tool == "Read":
            reads.remember(call, path)
        if call.policy and not is_inside(call, path) and _is_private_key(reads.real(call, path)):
            return deny(f"{path} contains a private key or a password. Do not access it.", "exfiltration")
    return ALLOWED


def _is_private_key(path: str) -> bool:
    from ralph.guard.secrets import is_private_key

    return is_private_key(path) or is_private_key(path + "/id_")  # the folder of the keys, to be searched


def _edits(call: Call, tool: str) -> Answer:
    paths = call.paths()
    if not paths and not call.is_old_form:
        return deny(f"This {tool} call has no file path. Pass one.", "unreadable")
    for path in paths:
        if denied := _edit(call, tool, path):
            return denied
    return ALLOWED


def _edit(call: Call, tool: str, path: str) -> Answer:
    if why := why_protected(call, path):
        return deny(why, "protected-path")
    if call.policy is not None and not call.policy.flag("read_before_edit", True):
        return NOTHING
    if not getattr(call.dialect, "READS", True):
        return NOTHING
    is_new = not os.path.lexists(reads.real(call, path))
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
    """What the guard needs besides its rules."""
    if call.policy is None or not call.policy.workspace:
        return {}
    workspace = os.path.realpath(call.policy.workspace)
    names = {name: call.policy.text(name) for name in ("checkout", "clone")}
    return {"workspace": workspace, "writable": call.policy.texts("writable"), "links": True} | names


def _command(call: Call) -> Answer:
    command = call.input("command")
    if not command.strip():
        return NOTHING if call.is_old_form else deny(f"This {call.tool} call has no command.", "unreadable")
    section = call.policy.section("guard") if call.policy else {}
    if section.get("enabled") is False:
        return ALLOWED
    try:
        from ralph.guard.decision import judge_command

        cwd = reads.real(call, "") if call.cwd else ""
        decision = judge_command(command, cwd, section | _places(call))
    except Exception as error:  # noqa: BLE001 - the command was not judged, so it does not run
        keep(call, NOTHING, f"{type(error).__name__}: {error}")
        return deny("The command guard could not check this command. Write it more simply.", "guard-failed")
    return deny(decision.reason, decision.category) if decision.denied else ALLOWED
