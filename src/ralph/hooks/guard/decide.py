"""Decide whether a command may run."""

import os

from ralph.hooks.guard.quick import is_plain, is_risky

TYPE_CHECKING = False  # `typing` is not imported for it
if TYPE_CHECKING:
    from ralph.hooks.guard.state import Shell

_LONGEST = 100_000
_NOWHERE = "/the/workspace"
"""Stands for an unknown workspace."""


class Decision:
    __slots__ = ("category", "denied", "reason")

    def __init__(self, denied: bool, category: str = "", reason: str = "") -> None:
        self.denied = denied
        self.category = category
        self.reason = reason

    @property
    def severity(self) -> str:
        from ralph.hooks.guard.categories import BY_ID

        found = BY_ID.get(self.category)
        return found.severity if found else ("medium" if self.denied else "")


ALLOWED = Decision(False)


def judge_command(command: str, cwd: str, section: dict[str, object]) -> Decision:
    """`section` is the compiled `guard:` of the settings; without its `workspace`, `cwd` is the workspace."""
    if not section.get("deny") and is_plain(command):
        return ALLOWED
    if len(command) > _LONGEST:
        return _unreadable(command, "too long")
    from ralph.hooks.guard.shell import Unreadable
    from ralph.hooks.guard.state import Denied, TooMuch

    shell = _shell(cwd, section)
    try:
        _judge(shell, command)
    except Denied as denied:
        return Decision(True, denied.category, denied.reason)
    except Unreadable as problem:
        return _unreadable(command, str(problem))
    except (TooMuch, RecursionError):
        return _unreadable(command, "too complex")
    return ALLOWED


def _judge(shell: "Shell", command: str) -> None:
    from ralph.hooks.guard.marks import without_marks
    from ralph.hooks.guard.parser import parse
    from ralph.hooks.guard.walk import end, run_script

    run_script(shell, parse(without_marks(command)))
    end(shell)


def _unreadable(command: str, problem: str) -> Decision:
    if not is_risky(command):
        return ALLOWED
    from ralph.hooks.guard.categories import BY_ID

    return Decision(
        True, "unreadable", f"The guard cannot parse this command ({problem}). {BY_ID['unreadable'].advice}"
    )


def _shell(cwd: str, section: dict[str, object]) -> "Shell":
    from ralph.hooks.guard.marks import Names, without_marks
    from ralph.hooks.guard.places import Places, normal
    from ralph.hooks.guard.rules import Rules
    from ralph.hooks.guard.state import Shell

    cwd = normal(without_marks(cwd)) if cwd.startswith("/") else "/"
    given = section.get("workspace")
    workspace = normal(given) if isinstance(given, str) and given.startswith("/") else cwd
    is_guess = workspace == "/"
    if is_guess:
        workspace = cwd = _NOWHERE
    names = Names()
    temp = section.get("writable")
    folders = tuple(each for each in temp if isinstance(each, str)) if isinstance(temp, (list, tuple)) else ()
    shell = Shell(Places(workspace, _home(workspace), folders, names), names, Rules(section))
    shell.places.is_guess = is_guess
    shell.places.follows_links = section.get("links") is True
    shell.cwd = cwd if cwd != "/" else workspace
    return shell


def _home(workspace: str) -> str:
    """The home folder of the workspace's owner, which matters more than that of this process."""
    parts = workspace.split("/")
    if len(parts) > 2 and parts[1] in ("home", "Users"):
        return "/".join(parts[:3])
    if parts[1] == "root":
        return "/root"
    return os.environ.get("HOME") or "/home/user"
