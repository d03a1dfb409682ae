"""`acme`: a client that takes the prompt on stdin and prints one JSON object per line. An agent for Ralph.

    {"type": "text", "text": "I will add the flag."}
    {"type": "tool", "name": "edit", "path": "src/app.py"}
    {"type": "limit", "resets_at": 1767225600}
    {"type": "end", "ok": true, "usd": 0.02, "input": 1200, "output": 300}

An agent is anything with the names below; a module will do. `reader` turns the client's output into typed events. They
decide what a session costs and whether it met a limit, never whether its story is done.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from typing import Any

from ralph.core.agent import AgentEvent, Limit, Result, Text, Tokens, ToolUse, Trouble
from ralph.core.errors import SetupError
from ralph.core.ports import Launch, Login, Reader, Session

NAME = "acme"
TITLE = "Acme"
ENV = ("ACME_API_KEY",)
HOOKS = False
REPORTS_CALLS = True
LOGIN = (Login(".acme/key.json"),)


def hosts(env: Mapping[str, str]) -> tuple[str, ...]:
    """What the client contacts, for a sandbox."""
    return ("api.acme.example",)


def find(session: Session, path: str) -> str:
    program = session.command[0] if session.command else "acme"
    if found := shutil.which(program, path=path):
        return found
    raise SetupError(f"the agent program {program} is not on PATH", hint="install it, or set agent.command")


def launch(session: Session, program: str) -> Launch:
    model = ["--model", session.model] if session.model else []
    prompt = f"{session.system}\n\n{session.prompt}" if session.system else session.prompt
    return Launch((program, "--json", *model), prompt.encode())


def reader() -> Reader:
    return _events


def _events(line: bytes) -> list[AgentEvent]:
    """The events of one line of output. Never raises: a line that is not one of ours is no event."""
    try:
        record: Any = json.loads(line)
        kind = record["type"]
        if kind == "text":
            return [Text(str(record["text"]))]
        if kind == "tool":
            return [ToolUse(str(record["name"]), path=str(record.get("path", "")))]
        if kind == "limit":
            return [Limit(rejected=True, resets_at=float(record["resets_at"]))]
        if kind == "end":
            tokens = Tokens(int(record.get("input", 0)), int(record.get("output", 0)))
            trouble = None if record["ok"] else Trouble.OTHER
            return [Result(bool(record["ok"]), trouble=trouble, cost_usd=float(record.get("usd", 0)), tokens=tokens)]
    except (ValueError, KeyError, TypeError, AttributeError):
        pass
    return []
