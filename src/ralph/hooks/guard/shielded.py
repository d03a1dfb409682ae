"""Judges a command in a process of its own: the grammar is C, and a crash there must not let the command through.

A client takes a hook that dies for one that has nothing to say.
"""

import os

from ralph.hooks.guard.decide import ALLOWED, Decision, judge_command, needs_reading


class JudgeDied(Exception):
    """Nobody has looked at the command."""


def judge_shielded(command: str, cwd: str, section: dict[str, object]) -> Decision:
    """As `judge_command`. Raises JudgeDied when that comes to no end."""
    if not hasattr(os, "fork") or not needs_reading(command, section):
        return judge_command(command, cwd, section)
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        _answer(writer, command, cwd, section)
    os.close(writer)
    with open(reader, "rb") as answers:
        answer = answers.read().decode("utf-8", "surrogateescape")
    _, status = os.waitpid(child, 0)
    if status or not answer:
        raise JudgeDied(f"the judge ended with {os.waitstatus_to_exitcode(status)}")
    denied, category, reason = answer.split("\0", 2)
    return Decision(True, category, reason) if denied == "denied" else ALLOWED


def _answer(writer: int, command: str, cwd: str, section: dict[str, object]) -> None:
    """The child: it writes and is gone, without anything that an exit of Python would do."""
    code = 1
    try:
        found = judge_command(command, cwd, section)
        text = f"{'denied' if found.denied else 'allowed'}\0{found.category}\0{found.reason}"
        data = text.encode("utf-8", "surrogateescape")
        while data:
            data = data[os.write(writer, data) :]
        code = 0
    finally:
        os._exit(code)
