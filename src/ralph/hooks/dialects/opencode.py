"""The hook calls of Ralph's plugin for opencode."""

from ralph.hooks.call import Answer, Call
from ralph.hooks.dialects.plugin import FAILED, answered, called
from ralph.hooks.dialects.translation import Tools
from ralph.hooks.policy import Values

__all__ = ["FAILED", "TOOLS", "read", "write"]

_PATH = {"filePath": "file_path"}
TOOLS: Tools = {
    "bash": ("Bash", {}),
    "shell": ("Bash", {}),
    "read": ("Read", _PATH),
    "write": ("Write", _PATH),
    "edit": ("Edit", _PATH),
    "multiedit": ("MultiEdit", _PATH),
    "patch": ("Edit", _PATH),
    "apply_patch": ("Edit", _PATH),
    "grep": ("Grep", {}),
    "glob": ("Glob", {}),
    "list": ("LS", {}),
    "webfetch": ("WebFetch", {}),
    "websearch": ("WebSearch", {}),
    "task": ("Task", {}),
    "skill": ("Skill", {}),
    "todowrite": ("TodoWrite", {}),
    "todoread": ("TodoRead", {}),
}


def read(event: str, values: Values) -> Values:
    return called(event, values, TOOLS)


def write(call: Call, answer: Answer) -> str:
    return answered(answer)
