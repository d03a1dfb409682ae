"""The agent that ships with Ralph: plays a script, without a model or network. For tests, demos and dry runs."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from ralph.agents.script import read
from ralph.agents.stream_json import StreamJson
from ralph.core.errors import SetupError
from ralph.core.ports import Launch, Reader, Session
from ralph.host.files import read_bytes

NAME = "scripted"
TITLE = "plays a script of edits and claims, with no model"
HOOKS = False
REPORTS_CALLS = True
ENV = ()


def find(session: Session, path: str) -> str:
    """The interpreter that runs Ralph. A missing or invalid script is reported now, not by a failing process."""
    script = _script(session)
    read(read_bytes(script), str(script))
    return sys.executable


def hosts(env: Mapping[str, str]) -> tuple[str, ...]:
    return ()


def files(session: Session) -> tuple[Path, ...]:
    """What it reads, for a sandbox."""
    script = _script(session)
    own = read(read_bytes(script), str(script)).acts
    return (script, Path(own)) if own else (script,)


def launch(session: Session, program: str) -> Launch:
    env = {
        "RALPH_STORY": session.task.story,
        "RALPH_MODE": session.task.mode.value,
        "RALPH_ATTEMPT": str(session.task.attempt + session.task.free),
        "RALPH_ITERATION": str(session.task.iteration),
    }
    if session.request:
        env["RALPH_REQUEST_FILE"] = str(session.request)
    argv = [program, "-I", "-m", "ralph.agents.play", str(_script(session))]
    if session.plan:
        argv.append(str(session.plan))
    return Launch(tuple(argv), session.prompt.encode("utf-8", "replace"), env)


def _script(session: Session) -> Path:
    if session.script is None:
        raise SetupError(
            "the scripted agent has no script",
            hint="set agent.script or pass --agent-script; docs/scripted-agent.md describes the format",
        )
    return session.cwd / session.script


def reader() -> Reader:
    return StreamJson()
