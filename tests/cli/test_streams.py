"""Ctrl-C at any moment of the start, and a stdout that takes nothing."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path
from shlex import quote

import pytest

from ralph.core.events import RunEnded
from support.loops import LoopProject, short


@pytest.fixture
def project(tmp_path: Path) -> LoopProject:
    return LoopProject.make(tmp_path / "loop", short("tasks.json"))


@pytest.mark.slow
def test_ctrl_c_while_it_starts_shows_no_traceback(project: LoopProject) -> None:
    """From the first statement of ours on; before that the interpreter is on its own."""
    shown = []
    for step in range(40):
        command = [sys.executable, "-X", "importtime", "-m", "ralph", "status"]
        process = subprocess.Popen(
            command, cwd=project.root, env=project.env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        assert process.stderr is not None
        for line in process.stderr:
            if line.rstrip().endswith(" ralph.cli"):  # the first import of `main`
                break
        time.sleep(0.004 * step)
        process.send_signal(signal.SIGINT)
        rest = process.stderr.read()
        process.wait()
        assert process.returncode in (0, 130, -signal.SIGINT), (step, rest[-2000:])
        shown.append(process.returncode)
        assert "Traceback" not in rest, (step, rest[-3000:])
        process.stderr.close()
    assert set(shown) - {0}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("flags", [(), ("--json",), ("--quiet",), ("--verbose",)], ids=str)
def test_a_full_stdout_does_not_change_the_exit_code_of_a_complete_run(
    project: LoopProject, flags: tuple[str, ...]
) -> None:
    with Path("/dev/full").open("wb") as full:
        command = [sys.executable, "-m", "ralph", "run", "--plain", *flags]
        done = subprocess.run(
            command, cwd=project.root, env=project.env, stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 0, done.stderr
    assert project.events()[-1] == next(e for e in project.events() if isinstance(e, RunEnded))
    assert "Traceback" not in done.stderr
    assert "the output could not be written: No space left on device" in done.stderr or flags == ("--json",)


def test_a_reader_that_left_does_not_change_the_exit_code(project: LoopProject) -> None:
    line = f"{quote(sys.executable)} -m ralph run --plain --once; echo $? >&2"
    command = ["bash", "-c", f"({line}) | true"]
    done = subprocess.run(command, cwd=project.root, env=project.env, capture_output=True, text=True, check=False)
    assert done.stderr.split()[-1] == "1", "the first attempt is rejected"
    assert "Traceback" not in done.stderr
