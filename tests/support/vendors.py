"""Two agents of two vendors, as third-party packages: each runs the shell script of its name, and reads its words.

A line of output is `limit SECONDS`, `unreachable`, `no-login`, `tokens MODEL IN OUT`, or text.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path

from ralph.core.agent import AgentEvent, Init, Limit, Result, Text, Tokens, Trouble
from ralph.core.errors import SetupError
from ralph.core.ports import Launch, Reader, Session

POINTS = "[ralph.agents]\nada = support.vendors:ada\nbob = support.vendors:bob\n"


def read(line: bytes) -> Iterable[AgentEvent]:
    match line.decode().split():
        case ["limit", seconds]:
            yield Limit(True, time.time() + float(seconds), "weekly")
            yield Result(ok=False, trouble=Trouble.LIMIT)
        case ["unreachable"]:
            yield Result(ok=False, trouble=Trouble.TRANSPORT, detail="connection refused")
        case ["no-login"]:
            yield Result(ok=False, trouble=Trouble.AUTHENTICATION, detail="401")
        case ["tokens", model, read, written]:
            yield Init(model=model)
            yield Result(ok=True, text="well", tokens=Tokens(int(read), int(written)), models=(model,))
        case words if words:
            yield Text(" ".join(words))


class Vendor:
    HOOKS = REPORTS_CALLS = False
    ENV = ()

    def __init__(self, name: str) -> None:
        self.NAME, self.TITLE = name, f"The agent of {name}"

    def find(self, session: Session, path: str) -> str:
        for folder in path.split(":"):
            if (program := Path(folder, self.NAME)).is_file():
                return str(program)
        raise SetupError(f"{self.NAME} is not installed", hint="install it")

    def launch(self, session: Session, program: str) -> Launch:
        return Launch((program, session.model), session.prompt.encode())

    def reader(self) -> Reader:
        return read

    def hosts(self, env: object) -> tuple[str, ...]:
        return (f"api.{self.NAME}.example",)


ada, bob = Vendor("ada"), Vendor("bob")
