"""The hook calls of Ralph's extension for Pi."""

from ralph.hooks.call import Answer, Call
from ralph.hooks.dialects.plugin import FAILED, answered, called
from ralph.hooks.dialects.translation import Tools
from ralph.hooks.policy import Values

__all__ = ["FAILED", "TOOLS", "read", "write"]

_PATH = {"path": "file_path"}
TOOLS: Tools = {
    "bash": ("Bash", {}),
    "read": ("Read", _PATH),
    "write": ("Write", _PATH),
    "edit": ("Edit", _PATH),
    "grep": ("Grep", {}),
    "find": ("Glob", {}),
    "ls": ("LS", {}),
}
_SPACES = dict.fromkeys([0xA0, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000], " ")


def read(event: str, values: Values) -> Values:
    args = values.get("args")
    if isinstance(args, dict) and isinstance(path := args.get("path"), str):
        # The client reads a path like this.
        values = {**values, "args": {**args, "path": path.translate(_SPACES).removeprefix("@")}}
    return called(event, values, TOOLS)


def write(call: Call, answer: Answer) -> str:
    return answered(answer)
