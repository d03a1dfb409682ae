"""git: the current branch, from the command itself or from the HEAD of the repository it runs in."""

import os

from ralph.hooks.guard.invoke import Invocation

_REF = "ref: refs/heads/"


def current_branch(call: Invocation) -> str:
    """Empty if unknown: a detached HEAD, no repository."""
    return call.shell.branch or branch_in(_folder(call))


def branch_in(folder: str) -> str:
    while folder not in ("", "/"):
        head = _first_line(f"{folder}/.git/HEAD")
        if not head and (link := _first_line(f"{folder}/.git")).startswith("gitdir: "):
            head = _first_line(f"{os.path.join(folder, link[8:])}/HEAD")  # a worktree has a file in place of the folder
        if head:
            return head[len(_REF) :] if head.startswith(_REF) else ""
        folder = os.path.dirname(folder)
    return ""


def _folder(call: Invocation) -> str:
    """Where git runs: the shell's folder, followed by every `-C`."""
    folder = call.shell.cwd
    for option, value in zip(call.args, call.args[1:], strict=False):
        if option == "-C":
            folder = os.path.normpath(os.path.join(folder, value))
    return folder


def _first_line(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as stream:
            return stream.readline(4096).strip()
    except (OSError, ValueError):  # ValueError: a NUL in the name
        return ""
