"""`acme`: a client that takes the prompt on stdin and prints one JSON object per line. An agent for Ralph.

    {"type": "text", "text": "I will add the flag."}
    {"type": "tool", "name": "edit", "path": "src/app.py"}
    {"type": "limit", "resets_at": 1767225600}
    {"type": "end", "ok": true, "usd": 0.02, "input": 1200, "output": 300}
    {"type": "end", "ok": false, "status": 401, "error": "invalid key"}

An agent is anything with the names below; a module will do. `reader` turns the client's output into typed events. They
decide what a session costs and whether it met a limit, never whether its story is done.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from ralph.core.agent import AgentEvent, Limit, Result, Text, Tokens, ToolUse, Trouble
from ralph.core.agent_traits import AgentTraits, Rehearsal
from ralph.core.errors import SetupError
from ralph.core.ports import Launch, Login, Reader, Session

NAME = "acme"
TITLE = "Acme"
ENV = ("ACME_API_KEY", "ACME_BASE_URL")
HOOKS = False
REPORTS_CALLS = True
LOGIN = (Login(".acme/key.json"),)
TRAITS = AgentTraits(
    program="acme",
    install="pip install acme-client",
    tried="1.2.0",
    log_in="run `acme login`, or set ACME_API_KEY",
    keys=("ACME_API_KEY",),
    reports_cost=True,
)
_TROUBLES = {401: Trouble.AUTHENTICATION, 402: Trouble.BILLING, 403: Trouble.AUTHENTICATION, 404: Trouble.MODEL}
"""By HTTP status. Everything else that fails is the connection or the service: the loop tries again."""


def hosts(env: Mapping[str, str]) -> tuple[str, ...]:
    """What the client contacts, for a sandbox."""
    return (urlsplit(env.get("ACME_BASE_URL", "")).netloc or "api.acme.example",)


def find(session: Session, path: str) -> str:
    program = session.command[0] if session.command else TRAITS.program
    if found := shutil.which(program, path=path):
        return found
    raise SetupError(
        f"the agent program {program} is not on PATH", hint=f"run `{TRAITS.install}`, or set agent.command"
    )


def launch(session: Session, program: str) -> Launch:
    model = ["--model", session.model] if session.model else []
    prompt = f"{session.system}\n\n{session.prompt}" if session.system else session.prompt
    return Launch((program, "--json", *model), prompt.encode())


def rehearse(address: str) -> Rehearsal:
    """What points the client at another model, for `ralph agents test acme` and `ralph bench acme`."""
    return Rehearsal(env={"ACME_BASE_URL": address, "ACME_API_KEY": "test-key"})


def reader() -> Reader:
    return _events


def _end(record: dict[str, Any]) -> Result:
    ok, usd = bool(record["ok"]), record.get("usd")
    return Result(
        ok,
        trouble=None if ok else _TROUBLES.get(record.get("status", 0), Trouble.TRANSPORT),
        detail=str(record.get("error", "")),
        cost_usd=None if usd is None else float(usd),
        tokens=Tokens(int(record.get("input", 0)), int(record.get("output", 0))),
        turns=int(record.get("turns", 0)),
    )


def _events(line: bytes) -> list[AgentEvent]:
    """The events of one line of output. Never raises: a line that is not one of ours is no event."""
    try:
        record: Any = json.loads(line)
        kind = record["type"]
        if kind == "text":
            return [Text(str(record["text"]))]
        if kind == "tool":
            path, command = str(record.get("path", "")), str(record.get("command", ""))
            return [ToolUse(str(record["name"]), path or command, path=path, command=command)]
        if kind == "limit":
            reset = record.get("resets_at")
            return [Limit(rejected=True, resets_at=None if reset is None else float(reset))]
        if kind == "end":
            return [_end(record)]
    except (ValueError, KeyError, TypeError, AttributeError):
        pass
    return []
