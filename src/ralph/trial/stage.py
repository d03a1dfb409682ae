"""A small project for one trial of an agent, and what a run did there."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from ralph.core.agent import Outcome
from ralph.core.agent_traits import Rehearsal
from ralph.core.errors import SetupError, UsageError
from ralph.core.ports import Agent
from ralph.core.text import one_line
from ralph.host.process.tree import marked
from ralph.trial.model import MODEL, Turn

PLAN = ".ralph/work/prd.json"
REQUEST = ".ralph/work/request.json"
_LONGEST = 240.0
_KEPT = ("PATH", "LANG", "LC_ALL", "SSL_CERT_FILE", "PYTHONPATH")
"""Of the caller's variables. An adapter that is being written may be on PYTHONPATH only."""


class Stage:
    """`program`: the client's, instead of the one on PATH. `folder` is a temporary one.

    `stories`: how many, each done when its file sN.txt is there; or the stories themselves. `is_real`: with the user's
    own login and the service's model, instead of a scripted one. `beside`: agents that the settings name besides this
    one. Their programs are on PATH. `about`: what the project says it is.
    """

    def __init__(
        self,
        folder: Path,
        agent: Agent,
        *,
        program: str = "",
        stories: int | list[dict[str, Any]] = 1,
        config: Mapping[str, Any] | None = None,
        is_real: bool = False,
        beside: Sequence[Agent] = (),
        about: str = "A trial",
    ) -> None:
        self.folder, self.agent, self.is_real, self.about = folder, agent, is_real, about
        self.root, self.home, self.state = folder / "project", folder / "home", folder / "state"
        self.requests = folder / "requests.jsonl"
        self.port = _free_port()
        address = f"http://127.0.0.1:{self.port}"
        self.rehearsal = Rehearsal() if is_real else together([rehearsal_of(one, address) for one in (agent, *beside)])
        for path in (self.root / ".ralph" / "work", self.home, folder / "tmp"):
            path.mkdir(parents=True)
        for name, text in self.rehearsal.files.items():
            (self.home / name).parent.mkdir(parents=True, exist_ok=True)
            (self.home / name).write_text(text)
        self._write_plan(stories)
        self._write_config(program, dict(config or {}))
        subprocess.run(["git", "init", "-q", "-b", "main"], cwd=self.root, env=self.env(), check=True)
        self.commit({"old.txt": "old\n"})

    def commit(self, files: Mapping[str, str]) -> None:
        for name, text in files.items():
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            (self.root / name).write_text(text)
        for command in (["add", "-A"], ["-c", "commit.gpgsign=false", "commit", "-qm", self.about]):
            subprocess.run(["git", *command], cwd=self.root, env=self.env(), check=True)

    def _write_plan(self, stories: int | list[dict[str, Any]]) -> None:
        if isinstance(stories, int):
            stories = [
                {"title": f"Story {n}", "acceptanceCriteria": [f"s{n}.txt is there"], "verify": f"test -f s{n}.txt"}
                for n in range(1, stories + 1)
            ]
        common = {"passes": False, "notes": ""}
        listed = [{"id": f"S-{n}", **story, "priority": n, **common} for n, story in enumerate(stories, 1)]
        head = {"feature": "work", "branchName": "main", "description": self.about, "createdAt": "2026-01-01"}
        (self.root / PLAN).write_text(json.dumps(head | {"userStories": listed}, indent=1))

    def _write_config(self, program: str, config: dict[str, Any]) -> None:
        chosen: dict[str, Any] = {"name": self.agent.NAME, "env": sorted(self.rehearsal.env)}
        if program:
            chosen["command"] = [program]
        if self.rehearsal.model:
            chosen["model"] = self.rehearsal.model
        basic: dict[str, Any] = {
            "agent": chosen | config.pop("agent", {}),
            "archive": {"on_complete": False},
            "branch": {"auto_create": False},
            "on_limit": "exit",
            "transport_retries": 0,
        }
        if not self.is_real:
            basic["sandbox"] = {"allow_hosts": [f"127.0.0.1:{self.port}"]}
        (self.root / ".ralph/config.yaml").write_text(json.dumps(basic | config))

    def env(self, **more: str) -> dict[str, str]:
        who = {f"GIT_{a}_{b}": "trial@example.com" for a in ("AUTHOR", "COMMITTER") for b in ("NAME", "EMAIL")}
        if self.is_real:
            return {**os.environ, **who, "RALPH_STATE_HOME": str(self.state), "RALPH_TRUST": "1", **more}
        places = {"HOME": str(self.home), "TMPDIR": str(self.folder / "tmp"), "RALPH_STATE_HOME": str(self.state)}
        kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
        return kept | who | places | self.rehearsal.env | {"RALPH_TRUST": "1", "MODEL_PORT": str(self.port)} | more

    def path(self, name: str) -> str:
        return str(self.root / name)

    def play(
        self,
        turns: list[Turn],
        *arguments: str,
        seconds: float = _LONGEST,
        meanwhile: Callable[[Stage, subprocess.Popen[bytes]], object] | None = None,
    ) -> Played:
        """`ralph run` in the project, beside the scripted model."""
        script = self.folder / "script.json"
        script.write_text(json.dumps(turns))
        beside = [sys.executable, "-m", "ralph.trial.inside", str(script), str(self.requests)]
        command = [] if self.is_real else beside
        command += [sys.executable, "-m", "ralph", "run", "--plain", "-v", *arguments]
        with (self.folder / "output").open("wb") as out:
            process = subprocess.Popen(
                command, cwd=self.root, env=self.env(), stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT
            )
        try:
            if meanwhile is not None:
                meanwhile(self, process)
            process.wait(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=60)
            return Played(self, None)
        finally:
            if process.poll() is None:
                process.kill()
        return Played(self, process.returncode)

    def wait_for(self, text: str, process: subprocess.Popen[bytes], seconds: float = 60) -> bool:
        """Until the journal says `text`."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and process.poll() is None:
            if any(text in path.read_text() for path in self.state.glob("*/runs/*/events.jsonl")):
                return True
            time.sleep(0.1)
        return False


class Played:
    """What a run did. `code` is None if it did not end by itself in time."""

    def __init__(self, stage: Stage, code: int | None) -> None:
        self.stage, self.code = stage, code
        self.out = (stage.folder / "output").read_text(errors="replace")

    @cached_property
    def events(self) -> list[dict[str, Any]]:
        journals = sorted(self.stage.state.glob("*/runs/*/events.jsonl"))
        return [json.loads(line)["event"] for path in journals for line in path.read_text().splitlines()]

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["type"] == kind]

    @property
    def outcomes(self) -> list[Outcome]:
        return [msgspec.convert(event["outcome"], Outcome, strict=False) for event in self.of("AgentEnded")]

    @property
    def verdicts(self) -> list[str]:
        return [event["kind"] for event in self.of("IterationEnded")]

    @property
    def done(self) -> list[bool]:
        plan = json.loads((self.stage.root / PLAN).read_text())
        return [story["passes"] for story in plan["userStories"]]

    @cached_property
    def asked(self) -> list[dict[str, Any]]:
        """The requests to the model, each with the turn that answered it."""
        if not self.stage.requests.exists():
            return []
        return [json.loads(line) for line in self.stage.requests.read_text().splitlines()]

    @property
    def why_unfinished(self) -> str:
        """What the last session, the run or its output says about it."""
        said = [outcome.detail for outcome in self.outcomes if outcome.detail]
        reasons = [event.get("detail") or event.get("reason") for event in self.of("RunEnded")]
        last = [line for line in self.out.splitlines() if line.strip()][-1:]
        return one_line(next((text for text in (*said[-1:], *reasons[-1:], *last) if text), "no reason was given"), 250)

    @property
    def told(self) -> str:
        """Everything the model was ever sent."""
        return "\n".join(json.dumps(one["request"], ensure_ascii=False) for one in self.asked)

    @property
    def answers(self) -> int:
        """Requests that the model answered, not counting errors."""
        return sum(not ({"fail", "error", "cut"} & one["turn"].keys()) for one in self.asked)

    @property
    def leftovers(self) -> list[int]:
        runs = {event["run"] for event in self.of("RunStarted")}
        return [process.pid for run in runs for process in marked("RALPH_RUN", run)]


def together(rehearsals: Sequence[Rehearsal]) -> Rehearsal:
    """For several agents in one run. The model is that of the first."""
    env = {name: value for one in rehearsals for name, value in one.env.items()}
    files = {name: text for one in rehearsals for name, text in one.files.items()}
    return Rehearsal(env=env, files=files, model=rehearsals[0].model)


def rehearsal_of(agent: Agent, address: str) -> Rehearsal:
    rehearse = getattr(agent, "rehearse", None)
    if rehearse is None:
        raise UsageError(
            f"the agent `{agent.NAME}` cannot be pointed at a scripted model",
            hint="its adapter has no `rehearse(address)`; docs/agents.md tells how to write one",
        )
    found: Rehearsal = rehearse(address)
    return found


def _free_port() -> int:
    with socket.socket() as free:
        try:
            free.bind(("127.0.0.1", 0))
        except OSError as error:
            raise SetupError(f"no port of loopback is free: {error}") from None
        port: int = free.getsockname()[1]
        return port


__all__ = ["MODEL", "PLAN", "REQUEST", "Played", "Stage", "rehearsal_of"]
