"""Any command line: the prompt is passed on stdin, and every line of output is a message of the agent.

Arguments may contain `{story}`, `{title}`, `{mode}`, `{iteration}`, `{attempt}`, `{model}`, `{plan}` and
`{cwd}`. No shell is involved, so a title with quotes or a `;` stays one argument.
"""

from __future__ import annotations

import re
from difflib import get_close_matches

from ralph.agents.program import argument, not_found, which
from ralph.core.agent import AgentEvent, Text
from ralph.core.errors import ConfigError, SetupError
from ralph.core.ports import Launch, Reader, Session

NAME = "command"
TITLE = "any command line"
HOOKS = False
REPORTS_CALLS = False
ENV = ()

_SHOWN = 2000
"""Lines that become messages of their own."""
_END = 16 * 1024
"""Bytes of a later block of lines that are read; more than is kept of a message."""
_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")


def find(session: Session, path: str) -> str:
    if not session.command:
        raise SetupError(
            "the agent `command` has no command line",
            hint="set agent.command, e.g. [my-agent, --model, '{model}'], or pass --agent-command",
        )
    _fill(session)
    program = session.command[0]
    if found := which(program, session.cwd, path):
        return found
    missing = f"the agent program {program} is not installed, or not on PATH"
    raise not_found(program, session.cwd, path, missing, "install it, or set its full path in agent.command")


def launch(session: Session, program: str) -> Launch:
    # There is no system prompt to append to: what the layout `steps` puts there comes first.
    text = f"{session.system}\n\n{session.prompt}" if session.system else session.prompt
    return Launch((program, *_fill(session)), text.encode("utf-8", "replace"))


def _fill(session: Session) -> list[str]:
    """The arguments after the program, with placeholders filled in. Other braces stay as they are."""
    values = {
        "story": session.task.story,
        "title": session.task.title,
        "mode": session.task.mode.value,
        "iteration": str(session.task.iteration),
        "attempt": str(session.task.attempt),
        "model": session.model,
        "plan": str(session.plan or ""),
        "cwd": str(session.cwd),
    }

    def value(match: re.Match[str]) -> str:
        name = match[1]
        if name in values:
            return argument(values[name])
        if close := get_close_matches(name, values, 1, cutoff=0.75):
            raise ConfigError(f"unknown placeholder {{{name}}} in agent.command", hint=f"did you mean {{{close[0]}}}?")
        return match[0]

    return [_PLACEHOLDER.sub(value, word) for word in session.command[1:]]


class PlainText:
    """Every line is a message. After the first ones, which are shown, only the end of the output matters."""

    def __init__(self) -> None:
        self._lines = 0

    def __call__(self, line: bytes) -> list[AgentEvent]:
        text = line.decode("utf-8", "replace").rstrip()
        return [Text(text, more=True)] if text else []

    def skim(self, block: bytes) -> list[bytes]:
        if self._lines >= _SHOWN:
            return [block[-_END:]]
        lines = block.split(b"\n", _SHOWN)
        self._lines += len(lines)
        return [*lines[:_SHOWN], *(line[-_END:] for line in lines[_SHOWN:])]


def reader() -> Reader:
    return PlainText()
