"""Calls hooks as a client does: a process, a call on its stdin, an answer on its stdout."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ralph.session.hook_policy import hook_command, stop_command

BY_NAME = (sys.executable, "-I", "-m", "ralph.hooks")
"""The form for people. A client is given the one of `hook_command`, which starts faster."""


class Answered(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def values(self) -> dict[str, Any]:
        return dict(json.loads(self.out)) if self.out else {}

    @property
    def reason(self) -> str:
        """Of a denial, a block, or the words added to the context."""
        inner = self.values.get("hookSpecificOutput", {})
        found = self.values.get("reason") or inner.get("permissionDecisionReason") or inner.get("additionalContext")
        return str(found or "")

    @property
    def kind(self) -> str:
        inner = self.values.get("hookSpecificOutput", {})
        decision = self.values.get("decision") or inner.get("permissionDecision")
        return str(decision or ("context" if "additionalContext" in inner else ""))


def call(event: str, data: object, env: Mapping[str, str] | None = None, *, command: tuple[str, ...] = ()) -> Answered:
    """`data` is text or bytes as they are, or values to be sent as JSON."""
    given = data if isinstance(data, bytes) else data.encode() if isinstance(data, str) else json.dumps(data).encode()
    done = subprocess.run(
        [*(command or shlex.split(hook_command())), event],
        input=given,
        env={**os.environ, **(env or {})},
        capture_output=True,
        timeout=60,
        check=False,
    )
    return Answered(done.returncode, done.stdout.decode(), done.stderr.decode())


class LiveRun:
    """A run that is going on, as its hooks see it. This process is the loop."""

    def __init__(self, folder: Path, **policy: Any) -> None:
        run = f"run-{os.urandom(4).hex()}"  # tests of sweeps end whatever carries the same one
        self.workspace = folder / "work"
        self.state = folder / "session"
        self.records = self.state / "records.jsonl"
        for path in (self.workspace, self.state, folder / "elsewhere"):
            path.mkdir(exist_ok=True)
        self.elsewhere = folder / "elsewhere"
        self.policy: dict[str, Any] = {
            "nonce": "n0nce",
            "pid": os.getpid(),
            "run": run,
            "story": "S-1",
            "mode": "implement",
            "workspace": str(self.workspace),
            "state": str(self.state),
            "records": str(self.records),
            "writable": [],
            "protected": [".ralph/config.yaml", ".ralph/configs", "checks/*.toml"],
            "stop_command": stop_command(),
            **policy,
        }
        self.env = {"RALPH_POLICY": str(folder / "policy.json"), "RALPH_NONCE": "n0nce", "RALPH_LOOP": "1"}
        self.env["RALPH_RUN"] = run
        self.write()

    def write(self) -> None:
        Path(self.env["RALPH_POLICY"]).write_text(json.dumps(self.policy))

    def call(self, event: str, *, command: tuple[str, ...] = (), **values: Any) -> Answered:
        """A call in the client's current form. Whatever is answered, it is answered cleanly."""
        common = {"session_id": "s-1", "transcript_path": "", "cwd": str(self.workspace), "hook_event_name": event}
        done = call(event, common | values, self.env, command=command)
        assert (done.code, done.err) == (0, "")
        return done

    def use(self, tool: str, path: str | Path, event: str = "PreToolUse", **values: Any) -> Answered:
        return self.call(event, tool_name=tool, tool_input={"file_path": str(path)}, **values)

    def file(self, name: str, text: str = "old\n") -> Path:
        path = self.workspace / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def recorded(self) -> list[dict[str, Any]]:
        """Every line is a JSON object, or this fails."""
        if not self.records.exists():
            return []
        return [dict(json.loads(line)) for line in self.records.read_text().splitlines()]
