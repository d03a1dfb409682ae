"""Real runs of scripted agents, for tests of what people see of them: one that is hostile, one that is under way."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from support.loops import LoopProject, Scenario
from support.processes import wait_for
from support.web_server import Served, served

DEMO = Path(__file__).resolve().parents[2] / "examples" / "demo"
HOSTILE = "<img src=x onerror=\"document.title='owned'\"> \u202egnp.exe [a](javascript:alert(1)) https://example.org/"
SHOWN = "<img src=x onerror=\"document.title='owned'\"> <U+202E>gnp.exe [a](javascript:alert(1)) https://example.org/"
"""The same as people see it."""
ANSI = "\x1b[2J\x1b[31mred\x1b[0m\x1b]0;title\x07 </script><script>document.title='owned'</script>"

WORK = [{"run": "echo fine > src/$RALPH_STORY.txt"}, "claim"]
BROKEN = [{"write": {"path": "src/x.txt", "text": f"BROKEN {HOSTILE}\n"}}, "claim"]
FOUND = {
    "verdict": {
        "what": "changes_requested",
        "findings": [
            {"text": "an empty name is greeted", "place": "src/US-001.txt:1", "severity": "major", "evidence": HOSTILE},
            {"text": "the name of the file is too short", "severity": "minor"},
        ],
    }
}
FIXES = {"fixes": [{"id": "F1", "fate": "fixed", "reason": "done"}, {"id": "F2", "fate": "rejected", "reason": "no"}]}
PLAY: Mapping[str, Any] = {
    "US-001": [
        {
            "implement": [{"say": f"{HOSTILE}\n{ANSI}"}, {"cost": {"usd": 0.12, "input": 4200, "output": 650}}, *WORK],
            "review": [FOUND],
            "fix": [{"run": "echo better > src/US-001.txt"}, FIXES, "claim"],
        },
        {
            "review": [
                {
                    "verdict": {
                        "what": "changes_requested",
                        "findings": [{"text": "nobody says goodbye", "severity": "minor"}],
                    }
                }
            ]
        },
    ],
    "US-002": [[{"ask": f"Which colour? {HOSTILE}"}]],
    "US-003": [BROKEN],
    "US-004": [{"implement": ["flood", {"append": {"path": "src/base.txt", "text": HOSTILE}}, *WORK]}],
    "*": [{"review": [{"verdict": "approved"}]}],
}
TITLES = {"US-001": "Greet people", "US-002": "Choose a colour", "US-003": "Break a check", "US-004": HOSTILE}
CHECK = """\
if grep -rn BROKEN src; then printf '\\033[31mred\\033[0m %s\\n' '</pre><script>alert(1)</script>'; exit 1; fi
"""
SETTINGS: Mapping[str, Any] = {
    "agent": {"name": "scripted", "script": ".ralph/script.yaml"},
    "archive": {"on_complete": False},
    "checks": [{"name": "words", "command": "sh check.sh"}],
    "sandbox": "none",
    "max_loops_per_task": 1,
    "review": {"cap": 2},
    "circuit_breaker": {"retry_rounds": 0},
}
IN_PLACE = {"RALPH_PROOF_MINIMUM": "unproven", "RALPH_PROOF_WHERE": "in-place"}


class Place(NamedTuple):
    """The home and the state of one user, whose runs a server shows."""

    folder: Path

    @classmethod
    def make(cls, folder: Path) -> Place:
        place = cls(folder)
        place.home.mkdir(parents=True)
        place.state.mkdir()
        (place.home / ".gitconfig").write_text("[user]\n\tname = Ada Tester\n\temail = ada@example.test\n")
        return place

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def state(self) -> Path:
        return self.folder / "state"

    @property
    def env(self) -> dict[str, str]:
        own = {"HOME": str(self.home), "RALPH_STATE_HOME": str(self.state), "RALPH_TRUST": "1"}
        return {**os.environ, **own, "RALPH_SANDBOX": "none"}

    def serve(self, *options: str, port: str = "0") -> AbstractContextManager[Served]:
        return served(self.state, *options, port=port, env={"HOME": str(self.home)})

    def project(self, name: str, play: Mapping[str, Any], titles: Mapping[str, str], **settings: Any) -> LoopProject:
        """Words in files, and a check that no word is BROKEN."""
        script = json.dumps({"acts": str(Path(__file__).with_name("flood.py")), "stories": play})
        config = json.dumps({**SETTINGS, **settings})
        made = LoopProject.make(self.folder / name, Scenario("tasks.json", dict(titles), script, [], CHECK, config))
        made.root = made.root.rename(made.folder / name)
        shutil.move(made.root / ".ralph" / "words", made.root / ".ralph" / name)
        plan = f".ralph/{name}/tasks.json"
        made.write(plan, (made.root / plan).read_text().replace('"project": "words"', f'"project": "{name}"'))
        made.write("measure.sh", _waits(made.folder))
        made.git("add", "-A")
        made.git("commit", "-qm", "what was lying around")  # so that an attempt without a change is one
        return made

    def demo(self) -> Path:
        """The project of `scripts/demo`, at default settings, with a third story whose second attempt does not end."""
        root = self.folder / "demo" / "textkit"
        shutil.copytree(DEMO, root)
        play = yaml.safe_load((root / "script.yaml").read_text())
        says = {"say": "The default has to stay one exclamation mark."}
        play["stories"]["US-003"][1]["implement"][:0] = [says, {"run": "sh measure.sh"}]
        (root / "script.yaml").write_text(json.dumps(play | {"pace": 0}))
        (root / "measure.sh").write_text(_waits(root.parent))
        for command in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-qm", "A text kit with one function"]):
            subprocess.run(["git", *command], cwd=root, env=self.env, check=True)
        return root

    def run(self, root: Path) -> str:
        """Until it ends. The run."""
        command = [sys.executable, "-m", "ralph", "run"]
        before = set(self.runs())
        done = subprocess.run(
            command, cwd=root, env={**self.env, **IN_PLACE}, stdin=subprocess.DEVNULL, capture_output=True, check=False
        )
        (found,) = set(self.runs()) - before or [done.stderr.decode()]
        return found

    @contextmanager
    def running(self, root: Path, env: Mapping[str, str] = IN_PLACE) -> Iterator[Running]:
        """A run whose agent has come to `measure.sh` and waits there."""
        before = set(self.runs())
        with (root.parent / "output").open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "ralph", "run"],
                cwd=root,
                env={**self.env, **env},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
        try:
            wait_for(lambda: list(root.parent.glob("started-*")) or process.poll() is not None, 120)
            assert process.poll() is None, (root.parent / "output").read_text()
            (run,) = set(self.runs()) - before
            yield Running(run, root, process)
        finally:
            process.terminate()
            process.wait(timeout=60)

    def runs(self) -> list[str]:
        return sorted(path.parent.name for path in self.state.glob("*/runs/*/events.jsonl"))

    def journal(self, run: str) -> Path:
        (found,) = self.state.glob(f"*/runs/{run}/events.jsonl")
        return found


def _waits(folder: Path) -> str:
    story = "$RALPH_STORY"
    return f"touch {folder}/started-{story}; while [ ! -e {folder}/go-{story} ]; do sleep 0.05; done\n"


WAITING = [{"say": "Let me measure first."}, {"run": "sh measure.sh"}, *WORK]
"""What an agent does that waits. Its project has the script."""


class Running(NamedTuple):
    run: str
    root: Path
    process: subprocess.Popen[bytes]

    def go_on(self, story: str) -> None:
        (self.root.parent / f"go-{story}").touch()

    def has_started(self, story: str) -> bool:
        return (self.root.parent / f"started-{story}").exists()

    def end(self) -> int:
        return self.process.wait(timeout=60)
