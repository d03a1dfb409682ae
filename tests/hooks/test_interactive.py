"""`RALPH_LOOP=1`: the Stop hook ends the interactive client it belongs to, and nobody else."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import shlex
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

from ralph.hooks.interactive import find_client, is_asked_for
from ralph.session.hook_policy import hook_command
from support.cli import ralph_here
from support.clients import CLIENT, INSIDE

# A client, as far as a hook can see: a process with this name that calls a hook by a shell, and waits.
CLIENT_SCRIPT = """
import json, os, signal, subprocess, sys, time
name, call = sys.argv[1:]
if name:
    with open("/proc/self/comm", "w") as stream:
        stream.write(name)
def interrupted(*_):
    print("interrupted", flush=True)
    sys.exit(0)
signal.signal(signal.SIGINT, interrupted)
env = dict(os.environ)
if env.get("CLAUDE_PID") == "own":
    env["CLAUDE_PID"] = str(os.getpid())
call = ["sh", "-c", call + "; true"]
done = subprocess.run(call, input=b'{"hook_event_name": "Stop"}', env=env, start_new_session=True)
time.sleep(0.3)
print("went on", done.returncode, flush=True)
"""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are renamed by /proc")


def client(name: str, *, call: str = "", **env: str) -> str:
    """What becomes of a client whose Stop hook is called."""
    done = subprocess.run(
        [sys.executable, "-c", CLIENT_SCRIPT, name, call or f"{hook_command()} Stop"],
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout.strip()


@pytest.mark.parametrize("name", ["claude", "node"])
def test_the_client_is_found_by_its_name(name: str) -> None:
    assert client(name, RALPH_LOOP="1") == "interrupted"


def test_the_client_is_found_by_the_number_it_gives() -> None:
    assert client("anything", RALPH_LOOP="1", CLAUDE_PID="own") == "interrupted"


@pytest.mark.parametrize(
    "env",
    [
        {},
        {"RALPH_LOOP": ""},
        {"RALPH_LOOP": "0"},
        {"RALPH_LOOP": "1", "RALPH_RUN": "20260101-000000-abcd"},
        {"RALPH_LOOP": "1", "RALPH_POLICY": "/none"},
        {"RALPH_LOOP": "1", "CLAUDE_CODE_ENTRYPOINT": "sdk-cli"},
    ],
    ids=str,
)
def test_nobody_is_ended_who_is_not_in_such_a_loop(env: dict[str, str]) -> None:
    assert client("claude", **env) == "went on 0"


def test_a_client_far_above_is_somebody_elses() -> None:
    """Whoever runs these tests inside a client would be ended by them otherwise."""
    call = f"{hook_command()} Stop; true"
    for _ in range(3):
        call = f"sh -c {shlex.quote(call)}; true"
    assert client("claude", call=call, RALPH_LOOP="1") == "went on 0"


def test_a_program_that_is_no_client_is_not_ended() -> None:
    assert client("python", RALPH_LOOP="1") == "went on 0"


def test_a_number_of_somebody_else_is_not_taken() -> None:
    """Old, or made up: only a process above the hook is ever ended."""
    with subprocess.Popen(["sleep", "30"]) as bystander:
        try:
            assert client("python", RALPH_LOOP="1", CLAUDE_PID=str(bystander.pid)) == "went on 0"
            assert bystander.poll() is None
        finally:
            bystander.kill()
    for odd in ("1", "0", "-1", "x", "", "99999999999999999999"):
        assert client("python", RALPH_LOOP="1", CLAUDE_PID=odd) == "went on 0"


@pytest.mark.parametrize("event", ["PreToolUse", "PostToolUse", "SessionEnd", "UserPromptSubmit"])
def test_only_the_stop_hook_ends_it(event: str) -> None:
    assert client("claude", call=f"{hook_command()} {event}", RALPH_LOOP="1") == "went on 0"


def test_the_nearest_client_is_meant(tmp_path: Path) -> None:
    """A client started by a tool of another one: the outer one goes on."""
    (tmp_path / "client.py").write_text(CLIENT_SCRIPT)
    inner = [sys.executable, str(tmp_path / "client.py"), "claude", f"{hook_command()} Stop"]
    said = client("claude", call=shlex.join(inner), RALPH_LOOP="1")
    assert said.splitlines() == ["interrupted", "went on 0"]


def test_without_a_client_above_there_is_nobody_to_end() -> None:
    assert is_asked_for({"RALPH_LOOP": "1"})
    assert find_client({"CLAUDE_PID": str(os.getpid())}) != os.getpid(), "only processes above this one"


# The real client, at a terminal.


class Terminal:
    """An interactive client on a terminal of its own, offline, with a model that says one word."""

    def __init__(self, folder: Path, **env: str) -> None:
        self.project = folder / "project"
        home = folder / "home"
        for path in (self.project / ".ralph", home, folder / "tmp"):
            path.mkdir(parents=True, exist_ok=True)
        ready = {
            "hasCompletedOnboarding": True,
            "theme": "dark",
            "customApiKeyResponses": {"approved": ["test-key"], "rejected": []},
            "projects": {str(self.project): {"hasTrustDialogAccepted": True}},
            "bypassPermissionsModeAccepted": True,
        }
        (home / ".claude.json").write_text(json.dumps(ready))
        (folder / "script.json").write_text('[{"say": "One word."}]')
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "TMPDIR": str(folder / "tmp"),
            "CLAUDE_CODE_TMPDIR": str(folder / "tmp"),
            "SHELL": "/bin/bash",
            "TERM": "xterm",
            "ANTHROPIC_API_KEY": "test-key",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "IS_SANDBOX": "1",
            **env,
        }
        inside = [sys.executable, *INSIDE, str(folder / "script.json"), str(folder / "requests.jsonl")]
        self.command = [*inside, str(CLIENT), "say a word"]

    def watch(self, word: str, patience: float) -> tuple[bool, str]:
        """Whether the client ended by itself soon after this word was on the screen, and all that was on it."""
        ours, theirs = pty.openpty()
        fcntl.ioctl(ours, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        process = subprocess.Popen(
            self.command, cwd=self.project, env=self.env, stdin=theirs, stdout=theirs, stderr=theirs, process_group=0
        )
        os.close(theirs)
        seen, said, until = b"", False, time.monotonic() + 40
        while process.poll() is None and time.monotonic() < until:
            if select.select([ours], [], [], 0.1)[0]:
                try:
                    seen += os.read(ours, 65536)
                except OSError:  # the other end is closed
                    break
            if not said and word.encode() in seen:
                said, until = True, time.monotonic() + patience
        ended = True
        try:
            process.wait(max(0.1, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            ended = False
            process.send_signal(signal.SIGTERM)
            process.wait(20)
        os.close(ours)
        return ended, seen.decode(errors="replace")


@pytest.mark.client
@pytest.mark.skipif(
    not CLIENT.exists(),
    reason="THE REAL CLIENT IS NOT TESTED: claude-agent-sdk could not be installed into .venv/client",
)
def test_installed_hooks_end_a_real_interactive_client_in_such_a_loop_only(tmp_path: Path) -> None:
    terminal = Terminal(tmp_path, RALPH_LOOP="1")
    installed = ralph_here("hooks", "install", cwd=terminal.project)
    assert installed.code == 0, installed.err
    ended, seen = terminal.watch("One", patience=20)
    assert "One" in seen
    assert ended, seen
    del terminal.env["RALPH_LOOP"]
    ended, seen = terminal.watch("One", patience=3)
    assert "One" in seen
    assert not ended, seen
