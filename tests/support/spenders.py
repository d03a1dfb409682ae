"""A project whose scripted agent spends money: story N is done when the file sN.txt is there."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ralph.core.events import AnyEvent
from ralph.journal.records import read
from support.cli import Completed, ralph_here

_WHO = {f"GIT_{a}_{b}": "ada@example.test" for a in ("AUTHOR", "COMMITTER") for b in ("NAME", "EMAIL")}


def works(number: int, **cost: Any) -> dict[str, Any]:
    """An attempt that does the story, and costs this much."""
    write = {"write": {"path": f"s{number}.txt", "text": "x\n"}}
    return {"implement": [write, {"cost": cost}, {"claim": "done"}]}


def idles(**cost: Any) -> dict[str, Any]:
    """An attempt that only costs."""
    return {"implement": [{"cost": cost}, {"claim": "done"}]}


class Spender:
    def __init__(self, folder: Path, attempts: Sequence[Sequence[dict[str, Any]]], **config: Any) -> None:
        self.folder = folder
        self.root = folder / "project"
        self.state = folder / "state"
        (self.root / ".ralph/work").mkdir(parents=True)
        (folder / "home").mkdir()
        listed = [
            {
                "id": f"S-{n}",
                "title": f"Story {n}",
                "acceptanceCriteria": ["it is there"],
                "priority": n,
                "passes": False,
                "notes": "",
                "verify": f"test -f s{n}.txt",
            }
            for n in range(1, len(attempts) + 1)
        ]
        head = {"feature": "work", "branchName": "main", "description": "d", "createdAt": "2026-01-01"}
        (self.root / ".ralph/work/prd.json").write_text(json.dumps(head | {"userStories": listed}))
        basic: dict[str, Any] = {
            "agent": {"name": "scripted", "script": str(folder / "script.yaml")},
            "review": {"enabled": False},
            "archive": {"on_complete": False},
            "branch": {"auto_create": False},
        }
        (self.root / ".ralph/config.yaml").write_text(json.dumps(basic | config))
        self.play(attempts)
        for command in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-qm", "by a person"]):
            subprocess.run(["git", *command], cwd=self.root, env={**os.environ, **self.env}, check=True)

    def play(self, attempts: Sequence[Sequence[dict[str, Any]]], **more: Any) -> None:
        """The agent does these, from now on."""
        stories = {f"S-{n}": list(tries) for n, tries in enumerate(attempts, 1)}
        (self.folder / "script.yaml").write_text(json.dumps({"stories": stories} | more))

    @property
    def env(self) -> dict[str, str]:
        return {
            **_WHO,
            "HOME": str(self.folder / "home"),
            "RALPH_STATE_HOME": str(self.state),
            "RALPH_TRUST": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
        }

    def cost(self, *arguments: str) -> Completed:
        return ralph_here("cost", *arguments, cwd=self.root, env=self.env)

    def run(self, *arguments: str) -> Completed:
        return ralph_here("run", "--plain", *arguments, cwd=self.root, env=self.env)

    def journals(self) -> list[Path]:
        return sorted(self.state.glob("*/runs/*/events.jsonl"), key=lambda path: path.stat().st_mtime)

    def events(self, number: int = -1) -> list[AnyEvent]:
        """Of one run; the last one unless another is named."""
        return [record.event for record in read(self.journals()[number])]

    def ledger(self) -> Path:
        (path,) = self.state.glob("*/spending.jsonl")
        return path
