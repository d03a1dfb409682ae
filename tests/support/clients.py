"""A project, the real Claude client and a scripted model, put together for one test."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from ralph.host.process.tree import marked

ROOT = Path(__file__).resolve().parents[2]
CLIENT = ROOT / ".venv" / "client" / "claude_agent_sdk" / "_bundled" / "claude"
INSIDE = ("-m", "ralph.trial.inside")
NO_SANDBOX = ("--no-sandbox",)
"""For tests about the guard where nothing else keeps an agent in."""
Turn = dict[str, Any]


class Project:
    """A repository with a plan of some stories: story N is done when the file sN.txt is there.

    `own`: each story has a check of its own, which says so.
    """

    def __init__(self, folder: Path, stories: int = 1, *, own: bool = True, **config: Any) -> None:
        self.folder = folder
        self.root = folder / "project"
        self.home = folder / "home"
        self.state = folder / "state"
        self.requests = folder / "requests.jsonl"
        self.more: list[str] = []
        for path in (self.root / ".ralph" / "work", self.home, folder / "tmp"):
            path.mkdir(parents=True, exist_ok=path == self.home)
        listed = [
            {
                "id": f"S-{n}",
                "title": f"Story {n}",
                "acceptanceCriteria": [f"s{n}.txt is there"],
                "priority": n,
                "passes": False,
                "notes": "",
                **({"verify": f"test -f s{n}.txt"} if own else {}),
            }
            for n in range(1, stories + 1)
        ]
        head = {"feature": "work", "branchName": "main", "description": "d", "createdAt": "2026-01-01"}
        (self.root / ".ralph/work/prd.json").write_text(json.dumps(head | {"userStories": listed}, indent=1))
        basic: dict[str, Any] = {
            "agent": {"command": [str(CLIENT)]},
            "archive": {"on_complete": False},
            "branch": {"auto_create": False},
        }
        (self.root / ".ralph/config.yaml").write_text(json.dumps(basic | config))
        (self.root / "old.txt").write_text("old\n")
        subprocess.run(["git", "init", "-q", "-b", "main"], cwd=self.root, env=self.environment(), check=True)
        self.commit()

    def commit(self) -> None:
        for command in (["add", "-A"], ["commit", "-qm", "by a person"]):
            subprocess.run(["git", *command], cwd=self.root, env=self.environment(), check=True)

    @property
    def env(self) -> dict[str, str]:
        return self.environment()

    def environment(self, **more: str) -> dict[str, str]:
        who = {f"GIT_{a}_{b}": "t@example.com" for a in ("AUTHOR", "COMMITTER") for b in ("NAME", "EMAIL")}
        places = {"HOME": str(self.home), "TMPDIR": str(self.folder / "tmp"), "RALPH_STATE_HOME": str(self.state)}
        keys = {"ANTHROPIC_API_KEY": "test-key", "RALPH_TRUST": "1"}
        return {"PATH": os.environ["PATH"], **who, **places, **keys, **more}

    def start(self, turns: list[dict[str, Any]], *args: str, **env: str) -> subprocess.Popen[bytes]:
        script = self.folder / "script.json"
        script.write_text(json.dumps(turns))
        command = [sys.executable, *INSIDE, str(script), str(self.requests)]
        command += [sys.executable, "-m", "ralph", "run", "--plain", "-v", *args]
        return subprocess.Popen(
            command, cwd=self.root, env=self.environment(**env), stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )

    def run(self, turns: list[dict[str, Any]], *args: str, seconds: float = 120, **env: str) -> Ran:
        process = self.start(turns, *args, **env)
        try:
            out, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGTERM)
            out, _ = process.communicate(timeout=30)
            raise AssertionError(f"the run did not end:\n{out.decode()}") from None
        return Ran(self, process.returncode, out.decode())

    def wait_for(self, text: str, process: subprocess.Popen[bytes], seconds: float = 60) -> None:
        """Until a journal says `text`."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if any(text in path.read_text() for path in self.state.glob("*/runs/*/events.jsonl")):
                return
            if process.poll() is not None:
                break
            time.sleep(0.1)
        raise AssertionError(f"{text!r} never came")


class Ran:
    def __init__(self, project: Project, code: int, out: str) -> None:
        self.project = project
        self.code = code
        self.out = out
        self.events = [json.loads(line)["event"] for path in self.journals() for line in path.read_text().splitlines()]

    def journals(self) -> list[Path]:
        return sorted(self.project.state.glob("*/runs/*/events.jsonl"))

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [event for event in self.events if event["type"] == kind]

    def verdicts(self) -> list[tuple[str, str]]:
        return [(event["story"], event["kind"]) for event in self.of("IterationEnded")]

    def told(self) -> str:
        """Everything the model was ever sent."""
        return self.project.requests.read_text() if self.project.requests.exists() else ""

    def done(self) -> list[bool]:
        plan = json.loads((self.project.root / ".ralph/work/prd.json").read_text())
        return [story["passes"] for story in plan["userStories"]]

    def leftovers(self) -> list[int]:
        runs = {event["run"] for event in self.of("RunStarted")}
        return [process.pid for run in runs for process in marked("RALPH_RUN", run)]


def use(tool: str, **given: Any) -> dict[str, Any]:
    return {"use": [tool, given]}


def write(project: Project, name: str, text: str = "x\n") -> dict[str, Any]:
    return use("Write", file_path=str(project.root / name), content=text)


def claim(project: Project) -> dict[str, Any]:
    return write(project, ".ralph/work/request.json", '{"claim": "done"}')


def say(text: str = "Done.") -> dict[str, Any]:
    return {"say": text}
