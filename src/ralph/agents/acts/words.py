"""What the agent prints."""

from __future__ import annotations

import json
import os
import time
from typing import Any, Literal

from msgspec import field

from ralph.agents.acts.action import Action
from ralph.agents.stage import Stage
from ralph.core.agent import Tokens

_CHUNK = 64 * 1024
_LINE = b"the quick brown fox jumps over the lazy dog, again and again and again, and never gets anywhere\n"


class Say(Action, frozen=True):
    text: str

    def play(self, stage: Stage) -> None:
        stage.say(self.text)


class Answer(Action, frozen=True):
    """The answer of a planning session: questions, or a plan. Printed as the final message, where it is expected."""

    questions: list[dict[str, Any]] = field(default_factory=list)
    requirements: str = ""
    description: str = ""
    verifyCommands: list[str] = field(default_factory=list)
    stories: list[dict[str, Any]] = field(default_factory=list)

    def play(self, stage: Stage) -> None:
        given = {name: value for name in self.__struct_fields__ if (value := getattr(self, name))}
        stage.say(json.dumps(given, ensure_ascii=False))


class Think(Action, frozen=True):
    text: str

    def play(self, stage: Stage) -> None:
        stage.message({"type": "thinking", "thinking": self.text, "signature": ""})


class Use(Action, frozen=True):
    """A tool call that is only shown and does nothing."""

    tool: str
    input: dict[str, Any] = field(default_factory=dict)
    ok: bool = True
    denied: bool = False
    seconds: float = 0

    def play(self, stage: Stage) -> None:
        call = stage.begin(self.tool, self.input)
        time.sleep(self.seconds)
        if self.denied:
            stage.emit({"type": "system", "subtype": "permission_denied", "tool_name": self.tool, "tool_use_id": call})
        stage.end(call, ok=self.ok and not self.denied)


class Cost(Action, frozen=True):
    """Adds to the numbers that the result reports."""

    usd: float = 0
    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0

    def play(self, stage: Stage) -> None:
        stage.cost_usd += self.usd
        stage.tokens += Tokens(self.input, self.output, self.cache_read, self.cache_write)


class Result(Action, frozen=True):
    """A result that is not the last one: the session continues after it."""

    text: str = "So far, so good."

    def play(self, stage: Stage) -> None:
        stage.say(self.text)
        stage.result()
        stage.init()


class Print(Action, frozen=True):
    """Bytes that are not an event of the stream."""

    text: str = ""
    size: int = 0
    """Bytes of padding."""
    kind: Literal["lines", "line", "event", "invalid_utf8", "nul"] = "lines"
    newline: bool = True
    to: Literal["stdout", "stderr"] = "stdout"

    def play(self, stage: Stage) -> None:
        where = 1 if self.to == "stdout" else 2
        if self.text:
            stage.write(self.text.encode(), where)
        if self.size:
            before, pattern, after = self._parts()
            stage.write(before, where)
            chunk = pattern * (_CHUNK // len(pattern))
            whole, rest = divmod(self.size, len(chunk))
            for _ in range(whole):
                stage.write(chunk, where)
            stage.write(chunk[:rest], where)
            stage.write(after, where)
        if self.newline:
            stage.write(b"\n", where)

    def _parts(self) -> tuple[bytes, bytes, bytes]:
        if self.kind == "event":  # one event of the stream, however large
            start = b'{"type":"assistant","message":{"content":[{"type":"text","text":"'
            return start, b"x", b'"}]}}'
        patterns = {"lines": _LINE, "line": b"x", "invalid_utf8": b"\xff\xfe\xc3(", "nul": b"\0"}
        return b"", patterns[self.kind], b""


class CloseOutput(Action, frozen=True):
    """Closes stdout and continues: the end of output is not the end of the agent."""

    def play(self, stage: Stage) -> None:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.close(nowhere)


class Prompt(Action, frozen=True):
    """Writes its prompt to a file."""

    path: str

    def play(self, stage: Stage) -> None:
        (stage.cwd / self.path).write_bytes(stage.prompt)
