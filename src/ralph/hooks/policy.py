"""The policy of one session, compiled by the loop into a JSON file before the client starts."""

import os

from ralph.hooks.quick_json import loads

Values = dict[str, object]

# Files in the folder of one session, which the loop writes or reads too.
PLAN_BEFORE, ANSWERED, CONTEXT_TOKENS, CONTEXT_WINDOW = "plan.before", "answered", "context-tokens", "context-window"


class Policy:
    """Typed access to the compiled file. Missing values have a harmless default."""

    def __init__(self, values: Values) -> None:
        self.values = values
        self.run = self.text("run")
        self.story = self.text("story")
        self.mode = self.text("mode")
        self.workspace = self.text("workspace")
        self.state = self.text("state")
        """A folder outside the workspace for the state of one session."""

    def text(self, name: str) -> str:
        value = self.values.get(name)
        return value if isinstance(value, str) else ""

    def texts(self, name: str) -> list[str]:
        value = self.values.get(name)
        return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []

    def number(self, name: str, otherwise: float) -> float:
        value = self.values.get(name)
        return value if isinstance(value, (int, float)) and not isinstance(value, bool) else otherwise

    def flag(self, name: str, otherwise: bool) -> bool:
        value = self.values.get(name)
        return value if isinstance(value, bool) else otherwise

    def section(self, name: str) -> Values:
        value = self.values.get(name)
        return value if isinstance(value, dict) else {}


DEAD = "the Ralph run that started this session has ended"
_UNUSABLE = "Ralph's policy for this session cannot be read"


def find_policy(env: "os._Environ[str] | dict[str, str]") -> tuple[Policy | None, str]:
    """The policy of the live run this process belongs to, or why a client of a run has none.

    Neither: no run started this client. The nonce ties a client to the run that started it. A client of a run has no
    terminal, so one that has is a person's, in an environment that was copied.
    """
    path, nonce = env.get("RALPH_POLICY"), env.get("RALPH_NONCE")
    if not path or not nonce:
        return None, ""
    try:
        with open(path, encoding="utf-8") as stream:
            values = loads(stream.read())
    except (OSError, ValueError, RecursionError):
        values = None
    if not isinstance(values, dict) or values.get("nonce") != nonce:
        return None, "" if _has_terminal() else _UNUSABLE
    policy = Policy(values)
    number = policy.number("pid", 0)
    if number == number and is_alive(int(number), policy.text("pid_start")):  # not NaN
        return policy, ""
    return None, "" if _has_terminal() else DEAD


def _has_terminal() -> bool:
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC))
    except OSError:
        return False
    return True


def is_alive(pid: int, start: str = "") -> bool:
    """`start`: when the process started, as the loop wrote it. Another one may have its number by now."""
    if pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        pass
    try:
        with open(f"/proc/{pid}/stat", "rb") as stream:
            fields = stream.read().rpartition(b")")[2].split()
    except OSError:  # no /proc here
        return True
    is_same = "@" not in start or len(fields) < 20 or fields[19].decode() == start.partition("@")[0]
    return is_same and fields[:1] not in ([b"Z"], [b"X"])
