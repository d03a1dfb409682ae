"""A disk that is really full: a small tmpfs holds the state folder, or the project, and a hook fills it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from ralph.core.events import AgentStarted, IterationEnded
from support.loops import CONFIG, LoopProject, Scenario, run_ralph

SCRIPT = "stories:\n  US-001:\n    - implement: [{write: {path: src/one.txt, text: one}}, claim]\n"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "none", folder], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("mounting a tmpfs is not permitted")
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)


def fill(disk: Path, *, once: Path) -> str:
    return f"[ -e {once} ] && exit 0\ntouch {once}\ncat /dev/zero > {disk}/filler 2>/dev/null\nexit 0\n"


@pytest.mark.parametrize("where", ["state", "project"])
def test_the_paid_session_is_not_repeated_after_the_disk_was_full(tmp_path: Path, disk: Path, where: str) -> None:
    hook = fill(disk, once=tmp_path / "filled")
    scenario = Scenario("tasks.json", {"US-001": "Say one"}, SCRIPT, [], config=CONFIG, hook=hook)
    folder = disk / "made" if where == "project" else tmp_path / "made"
    project = LoopProject.make(folder, scenario)
    if where == "state":
        (disk / "state").mkdir()
        project.state.symlink_to(disk / "state")
    broken = run_ralph(project)
    assert broken.code == 78, broken.out + broken.err
    assert "No space left on device" in broken.err or "Out of diskspace" in broken.err
    assert "free up space" in broken.err
    assert str(disk) in broken.err or str(project.state) in broken.err, "the message names the path"
    (disk / "filler").unlink()
    done = run_ralph(project)
    assert done.code == 0, done.out + done.err
    assert sum(isinstance(event, AgentStarted) for event in project.events()) == 1
    assert [event.commit != "" for event in project.events() if isinstance(event, IterationEnded)] == [True]
    assert project.git("show", "main:src/one.txt") == "one"
    assert project.git("log", "--format=%s", "main").count("feat(US-001)") == 1
