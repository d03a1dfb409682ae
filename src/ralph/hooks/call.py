"""One hook call: what the client sent, in the current or an older format, and the answers it understands."""

import os

from ralph.hooks.policy import Policy, Values
from ralph.hooks.quick_json import dumps

TYPE_CHECKING = False  # `typing` is not imported for it
if TYPE_CHECKING:
    from typing import Protocol

    class Dialect(Protocol):
        """The hook calls of another client, a module of `ralph.hooks.dialects`."""

        FAILED: bytes
        """Denies a tool call that could not be checked."""

        # READS = False is optional: the client has no tool that reads files, so an edit needs no read before it.

        def read(self, event: str, values: Values) -> Values:
            """The call with the names that Claude Code uses."""

        def write(self, call: "Call", answer: "Answer") -> str:
            """The answer in the client's form. Empty: nothing to say."""


class Call:
    def __init__(self, event: str, values: Values, policy: Policy | None, dialect: "Dialect | None" = None) -> None:
        self.event = event
        self.values = values
        self.policy = policy
        self.dialect = dialect
        self.is_old_form = dialect is None and "hook_event_name" not in values
        """A call without an event name is made manually, or in the older form of the protocol."""

    @property
    def is_by_hand(self) -> bool:
        """A manual call: this process was started neither by a run nor by a client, which would name the project."""
        return self.policy is None and not (os.environ.get("CLAUDE_PROJECT_DIR") or os.environ.get("RALPH_POLICY"))

    @property
    def session(self) -> str:
        return self.text("session_id") or "by-hand"

    @property
    def tool(self) -> str:
        return self.text("tool_name")

    @property
    def cwd(self) -> str:
        return self.text("cwd") or (self.policy.workspace if self.policy else "")

    def text(self, name: str) -> str:
        value = self.values.get(name)
        return value if isinstance(value, str) else ""

    def input(self, name: str) -> str:
        given = self.values.get("tool_input")
        value = given.get(name) if isinstance(given, dict) else None
        if isinstance(value, list) and name == "command":  # as a list of words
            return " ".join(_quoted(word) for word in value)
        return value if isinstance(value, str) else ""

    def paths(self) -> list[str]:
        """Every path in the call. A tool uses one of them; the caller must not choose which one is judged. A patch has
        several, which a dialect lists as `file_paths`."""
        given = self.values.get("tool_input")
        listed = given.get("file_paths") if isinstance(given, dict) else None
        several = [path for path in listed if isinstance(path, str) and path] if isinstance(listed, list) else []
        return [path for name in ("file_path", "notebook_path", "path") if (path := self.input(name))] + several


def _quoted(word: object) -> str:
    """For a shell. `shlex` would import `re`."""
    return "'" + str(word).replace("'", "'\"'\"'") + "'"


class Answer:
    """What a hook decided. `kind`: allow, deny, block, context, or nothing."""

    def __init__(self, kind: str = "", reason: str = "", category: str = "") -> None:
        self.kind = kind
        self.reason = reason
        self.category = category

    def __bool__(self) -> bool:
        return bool(self.kind)


NOTHING = Answer()
ALLOWED = Answer("allow", "permitted by Ralph")


def deny(reason: str, category: str) -> Answer:
    return Answer("deny", reason, category)


def block(reason: str, category: str) -> Answer:
    """Block stopping."""
    return Answer("block", reason, category)


def context(text: str, category: str) -> Answer:
    return Answer("context", text, category)


def written(call: Call, answer: Answer) -> str:
    """The answer in the format the caller expects. Empty if there is nothing to say."""
    if call.dialect is not None:
        return call.dialect.write(call, answer)
    if call.is_old_form and call.event != "Stop":
        return _old_form(call, answer)
    return claude_form(call, answer)


def claude_form(call: Call, answer: Answer) -> str:
    """As Claude Code reads it, and clients that took over its hooks."""
    if answer.kind in ("allow", "deny"):
        decision = {"permissionDecision": answer.kind, "permissionDecisionReason": answer.reason}
        return dumps({"hookSpecificOutput": {"hookEventName": call.event, **decision}})
    if answer.kind == "block":
        return dumps({"decision": "block", "reason": answer.reason})
    return _added(call, answer) if answer.kind == "context" else ""


def _old_form(call: Call, answer: Answer) -> str:
    if answer.kind in ("deny", "block"):
        return dumps({"decision": "block", "message": answer.reason})
    if answer.kind == "context":
        return _added(call, answer)
    return dumps({"decision": "allow"}) if call.event == "PreToolUse" else ""


def _added(call: Call, answer: Answer) -> str:
    return dumps({"hookSpecificOutput": {"hookEventName": call.event, "additionalContext": answer.reason}})
