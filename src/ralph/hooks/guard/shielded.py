"""Judges a command in a child process: the grammar is C, and a crash there must not allow the command.

A client treats a hook that crashes like one without an answer.
"""

import os

from ralph.hooks.guard.decide import ALLOWED, Decision, judge_command, needs_reading


class JudgeDied(Exception):
    """The command was not judged."""


def judge_shielded(command: str, cwd: str, section: dict[str, object]) -> Decision:
    """Like `judge_command`. Raises JudgeDied if that does not finish."""
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
        raise JudgeDied(f"the guard process exited with {os.waitstatus_to_exitcode(status)}")
    denied, category, reason = answer.split("\0", 2)
    return Decision(True, category, reason) if denied == "denied" else ALLOWED


def _answer(writer: int, command: str, cwd: str, section: dict[str, object]) -> None:
    """The child: writes its result and exits without Python's usual cleanup."""
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
