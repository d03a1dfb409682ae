"""Limits of an agent's processes, memory and files, and processes that nobody here may end."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from shlex import quote

import pytest

from ralph.agents.registry import agent
from ralph.core.events import IterationEnded, Noted
from ralph.core.ports import Session
from ralph.core.rules import Patience
from ralph.engine.agent_run import AgentRunner
from ralph.host.process.signals import StopSignal
from ralph.journal.records import Journal, read
from support.loops import LoopProject, run_ralph, shell_project

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc and the kernel's limits")


def ended(made: LoopProject) -> list[IterationEnded]:
    return [event for event in made.events() if isinstance(event, IterationEnded)]


def limited(tmp_path: Path, body: str, **limits: int) -> LoopProject:
    made = shell_project(tmp_path, body, max_iterations=1)
    config = made.root / ".ralph/config.yaml"
    config.write_text(
        config.read_text().replace('"name":', "".join(f'"{k}": {v}, ' for k, v in limits.items()) + '"name":')
    )
    made.git("commit", "-qam", "limits")
    return made


def test_an_agent_that_starts_too_many_processes_is_ended(tmp_path: Path) -> None:
    made = limited(tmp_path, "i=0\nwhile [ $i -lt 60 ]; do sleep 300 & i=$((i+1)); done\nwait\n", max_processes=40)
    run_ralph(made)
    assert "agent.max_processes is 40" in ended(made)[0].headline
    assert made.processes() == []


def test_an_agent_that_uses_too_much_memory_is_ended(tmp_path: Path) -> None:
    """Two processes, each of which is within the limit."""
    eat = f"{quote(sys.executable)} -c 'import time; x = bytearray(90_000_000); time.sleep(300)'"
    made = limited(tmp_path, f"{eat} & {eat} & wait\n", max_memory_mb=150)
    run_ralph(made)
    assert "agent.max_memory_mb is 150" in ended(made)[0].headline
    assert made.processes() == []


def test_a_single_process_gets_no_more_memory_than_the_limit(tmp_path: Path) -> None:
    eat = f"{quote(sys.executable)} -c 'bytearray(400_000_000)'"
    made = limited(tmp_path, f"{eat} 2>&1 | tail -1\necho one > src/one.txt\nexit 0\n", max_memory_mb=300)
    run_ralph(made)
    assert "MemoryError" in "".join(path.read_text() for path in made.state.glob("*/runs/*/raw/*-agent.log"))


def test_a_file_grows_no_larger_than_the_limit(tmp_path: Path) -> None:
    made = limited(tmp_path, "yes | head -c 9000000 > big.txt\nwc -c < big.txt\nrm big.txt\n", max_file_mb=2)
    run_ralph(made)
    assert "2000000\n" in "".join(path.read_text() for path in made.state.glob("*/runs/*/raw/*-agent.log"))


@pytest.mark.skipif(os.geteuid() != 0, reason="needs two users")
@pytest.mark.skipif(not shutil.which("cc"), reason="needs a compiler")
def test_no_other_agent_is_started_beside_a_process_that_cannot_be_ended(tmp_path: Path) -> None:
    """The loop is `nobody`, in a fork; its agent starts a program that becomes root, which nobody may not signal."""
    source, program = tmp_path / "root.c", tmp_path / "root"
    source.write_text("#include <unistd.h>\nint main(void) { setgid(0); setuid(0); setsid(); return pause(); }\n")
    subprocess.run(["cc", "-o", str(program), str(source)], check=True)
    os.chown(program, 0, 0)
    program.chmod(0o4755)
    for path in (tmp_path, *tmp_path.parents):
        if path.is_relative_to("/tmp") and path != Path("/tmp"):
            path.chmod(0o755)
    own = tmp_path / "own"
    own.mkdir()
    os.chown(own, 65534, 65534)
    journal = Journal(own / "journal.jsonl", time.time)
    with StopSignal() as stop:
        runner = AgentRunner(
            lambda _: agent("command"),
            journal,
            stop,
            run="r",
            raw_folder=own / "raw",
            env={"PATH": os.environ["PATH"]},
            wanted_env=(),
            promise="",
        )
        runner(session(own, "exit 0"), "agent", Patience())  # loads whatever `nobody` could not
        os.chown(own / "raw", 65534, 65534)
        child = os.fork()
        if not child:
            code = 1
            try:
                os.setgid(65534)
                os.setuid(65534)
                first, _ = runner(session(own, f"{program} & echo $! > pid; sleep 0.5"), "first", Patience(grace=0.5))
                second, _ = runner(session(own, "touch second"), "second", Patience())
                (own / "ended").write_text(f"{first.how} {second.how} {second.detail}")
                code = 0
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)
    survivor = int((own / "pid").read_text())
    try:
        assert status == 0
        assert (
            (own / "ended")
            .read_text()
            .startswith(f"exited failed-to-start pid {survivor} (root) of an earlier session")
        )
        assert not (own / "second").exists()
        notes = [record.event.text for record in read(journal.path) if isinstance(record.event, Noted)]
        assert notes == [f"could not be ended: pid {survivor} (root)"]
    finally:
        os.kill(survivor, signal.SIGKILL)
        journal.close()


def session(folder: Path, line: str) -> Session:
    return Session(prompt="", cwd=folder, command=("sh", "-c", line))
