"""The policy of one session, compiled by the loop into a JSON file before the client starts."""

import os

from ralph.hooks.quick_json import loads

Values = dict[str, object]


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


def live_policy(env: "os._Environ[str] | dict[str, str]") -> Policy | None:
    """The policy of the run this process belongs to; None: there is none, or it is over.

    The nonce ties a client to the run that started it: a policy file left behind, or an environment that was copied,
    does not activate hooks.
    """
    path, nonce = env.get("RALPH_POLICY"), env.get("RALPH_NONCE")
    if not path or not nonce:
        return None
    try:
        with open(path, encoding="utf-8") as stream:
            values = loads(stream.read())
    except (OSError, ValueError):
        return None
    if not isinstance(values, dict) or values.get("nonce") != nonce:
        return None
    policy = Policy(values)
    return policy if _is_alive(int(policy.number("pid", 0))) else None


def _is_alive(pid: int) -> bool:
    if pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True
