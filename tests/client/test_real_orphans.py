"""The real client after a `kill -9` of the loop: it ends with it, and where it does not, it changes nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from shlex import quote

import pytest

from ralph.host.process.tree import marked
from support.clients import CLIENT, INSIDE, NO_SANDBOX, Project, say, use
from support.processes import wait_for

pytestmark = [
    pytest.mark.client,
    pytest.mark.skipif(not CLIENT.exists(), reason="THE REAL CLIENT IS NOT TESTED: it is not in .venv/client"),
    pytest.mark.skipif(sys.platform != "linux", reason="needs /proc"),
]


def started(project: Project) -> tuple[str, int]:
    journal = next(project.state.glob("*/runs/*/events.jsonl"))
    event = json.loads(journal.read_text().splitlines()[0])["event"]
    return event["run"], event["pid"]


def kill(pid: int, *, watchdog: bool) -> None:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    dogs = [int(pid) for pid in children if b"process.watchdog" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    for dog in dogs if watchdog else ():
        os.kill(dog, signal.SIGKILL)
    os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize(
    ("options", "watchdog"),
    [pytest.param((), True, marks=pytest.mark.needs("bwrap")), (NO_SANDBOX, False)],
    ids=["sandbox", "no-sandbox"],
)
def test_the_client_and_its_tools_end_with_a_killed_run(
    tmp_path: Path, options: tuple[str, ...], watchdog: bool
) -> None:
    """In a sandbox the system ends them, also without the watchdog: even a daemon in a session of its own."""
    project = Project(tmp_path)

    def files(name: str) -> list[Path]:
        return [*project.root.glob(name), *project.state.glob(f"*/clones/*/*/{name}")]

    daemon = "setsid sh -c 'sleep 4; touch later' & " if watchdog else ""
    turns = [use("Bash", command=f"{daemon}touch ready; sleep 4; touch later"), say()]
    running = project.start(turns, *options)
    try:
        wait_for(lambda: files("ready"), 60)
        run, pid = started(project)
        assert len(marked("RALPH_RUN", run)) >= 2
        kill(pid, watchdog=watchdog)
        wait_for(lambda: marked("RALPH_RUN", run) == [], 3)
        running.communicate(timeout=30)
        time.sleep(4)
        assert files("later") == []
    finally:
        running.kill()
        running.communicate()


def test_a_client_that_outlives_the_loop_is_ended_by_its_next_hook(tmp_path: Path) -> None:
    """A wrapper keeps the client out of reach of the system's own signal, and there is no watchdog."""
    wrapper = tmp_path / "wrapper"
    wrapper.write_text(f'#!/bin/sh\nexec 3<&0\n"{CLIENT}" "$@" <&3 > {tmp_path}/stream.jsonl &\nwait\n')
    wrapper.chmod(0o755)
    project = Project(tmp_path / "p", agent={"command": [str(wrapper)]})
    ready, later = tmp_path / "ready", project.root / "later.txt"
    turns = [
        use("Bash", command=f"touch {ready}; sleep 3"),
        use("Bash", command=f"touch {later}"),
        use("Write", file_path=str(later), content="x"),
        say(),
    ]
    script = project.folder / "script.json"
    script.write_text(json.dumps(turns))
    inner = f"{quote(sys.executable)} -m ralph run --plain --no-sandbox; sleep 25"  # the model stays
    command = [sys.executable, *INSIDE, str(script), str(project.requests), "sh", "-c", inner]
    nowhere = subprocess.DEVNULL
    running = subprocess.Popen(
        command, cwd=project.root, env=project.env, stdout=nowhere, stderr=nowhere, start_new_session=True
    )
    try:
        wait_for(ready.exists, 60)
        run, pid = started(project)
        kill(pid, watchdog=True)
        assert marked("RALPH_RUN", run), "the client lives on"
        wait_for(lambda: marked("RALPH_RUN", run) == [], 20)
        assert not later.exists()
    finally:
        for path in project.state.glob("*/runs/*"):
            for process in marked("RALPH_RUN", path.name):
                os.kill(process.pid, signal.SIGKILL)
        os.killpg(running.pid, signal.SIGKILL)  # the shell that keeps the model alive, too
        running.communicate()
