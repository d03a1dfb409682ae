"""State that cannot be trusted: forged, cut, of a newer version, or not even files."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ralph.core.events import Recovered
from support import stunts
from support.loops import LoopProject, finish, run_ralph, short, start_ralph
from support.processes import wait_for

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
HANGING = f"""acts: {stunts.__file__}
stories:
  '*':
    - implement:
        - write: {{path: src/half.txt, text: half}}
        - daemon: {{}}
        - write: {{path: build/ready, text: ''}}
        - hang
"""


@pytest.fixture
def project(tmp_path: Path) -> Iterator[LoopProject]:
    made = LoopProject.make(tmp_path / "loop", short("tasks.json"))
    yield made
    for pid in made.processes():
        os.kill(pid, signal.SIGKILL)


def killed(project: LoopProject) -> Path:
    """A run that was killed in its first iteration, with its watchdog; what its agent left is alive. Its journal."""
    path = project.home / "script.yaml"
    path.write_text(HANGING)
    process = start_ralph(project, "run", "--plain", "--agent-script", str(path))
    wait_for((project.root / "build/ready").exists)
    for pid in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split():
        if b"ralph.host.process.watchdog" in Path(f"/proc/{pid}/cmdline").read_bytes():
            os.kill(int(pid), signal.SIGKILL)
    process.kill()
    process.communicate()
    wait_for(lambda: len(project.processes()) == 1, 5)
    return project.journals()[-1]


def recovered(project: LoopProject) -> str:
    return " ".join(event.what for event in project.events() if isinstance(event, Recovered))


def forge(journal: Path) -> None:
    """Have recovery keep another tree than the one that was checked."""
    text = journal.read_text()
    settling = {"type": "Settling", "iteration": 1, "keep": False, "tree": "0" * 40}
    last = json.loads(text.splitlines()[-1])["seq"]
    journal.write_text(text + json.dumps({"seq": last + 1, "t": time.time(), "event": settling, "v": 1}) + "\n")


def cut(journal: Path) -> None:
    journal.write_bytes(journal.read_bytes().splitlines(keepends=True)[0])


def fill_with_zeros(journal: Path) -> None:
    journal.write_bytes(b"\0" * journal.stat().st_size)


def empty(journal: Path) -> None:
    journal.write_bytes(b"")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (forge, "does not continue the one before it"),
        (cut, "was cut or changed"),
        (fill_with_zeros, "is empty"),
        (empty, "is empty"),
    ],
)
def test_a_journal_that_cannot_be_trusted_is_named_and_not_acted_on(
    project: LoopProject, damage: Callable[[Path], None], message: str
) -> None:
    journal = killed(project)
    head = project.git("rev-parse", "HEAD")
    damage(journal)
    done = run_ralph(project)
    assert message in done.out + done.err
    assert "nothing is undone because of it" in done.out + done.err
    assert project.processes() == [], "the agent's daemon is found by its mark"
    assert project.git("rev-parse", "HEAD") == head
    assert (project.root / "src/half.txt").read_text() == "half", "nothing is undone by a journal nobody can trust"
    assert list(journal.parent.glob("events.jsonl.corrupt-*"))


def test_a_checkpoint_that_its_refs_do_not_name_is_not_restored(project: LoopProject) -> None:
    journal = killed(project)
    ref = project.git("for-each-ref", "--format=%(refname)", "refs/ralph/checkpoint/").splitlines()
    tree = next(name for name in ref if name.endswith("/tree"))
    project.git("update-ref", tree, project.git("rev-parse", "elsewhere^{tree}"))
    project.git("update-ref", tree, project.git("mktree", "--missing"))
    done = run_ralph(project)
    assert "name different checkpoints" in done.out + done.err + recovered(project)
    assert (project.root / "src/half.txt").exists()
    assert journal.exists()


@pytest.mark.parametrize("content", [b"", b"\0" * 22, b"20260101-0"], ids=["empty", "zeros", "half"])
def test_the_last_run_is_found_without_the_file_that_names_it(project: LoopProject, content: bytes) -> None:
    killed(project)
    (last,) = project.state.glob("*/plans/*/last-run")
    last.write_bytes(content)
    run_ralph(project, "run", "--plain", "--once")
    assert "last-run was damaged; the last run of this plan is" in recovered(project)
    assert "killed 1 process" in recovered(project)
    assert project.processes() == []
    assert not (project.root / "src/half.txt").exists()


def test_state_of_a_newer_version_is_refused_and_nothing_is_touched(project: LoopProject) -> None:
    journal = killed(project)
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:-1]) + lines[-1].replace(b'"v":1', b'"v":2'))
    files = {path: path.read_bytes() for path in project.state.rglob("*") if path.is_file() and "lock" not in path.name}
    done = run_ralph(project)
    assert done.code == 78
    assert "newer version of Ralph" in done.err
    assert len(project.processes()) == 1, "whose process it is can only the newer version know"
    now = {path: path.read_bytes() for path in project.state.rglob("*") if path.is_file() and "lock" not in path.name}
    assert now == files
    assert (project.root / "src/half.txt").exists()


def test_story_states_of_a_newer_version_are_refused(project: LoopProject) -> None:
    assert run_ralph(project, "run", "--plain", "--once").code in (0, 1)
    (plan,) = project.state.glob("*/plans/*/")
    (plan / "beside.json").write_text('{"version": 2, "stories": {"US-001": {"state": "of tomorrow"}}}')
    done = run_ralph(project)
    assert done.code == 78
    assert "newer version of Ralph" in done.err
    assert (plan / "beside.json").exists()
    assert not list(plan.glob("beside.json.corrupt*"))


def make_fifo(path: Path) -> None:
    os.mkfifo(path)


def make_socket(path: Path) -> None:
    here = Path.cwd()
    os.chdir(path.parent)  # its name is limited to 108 bytes
    try:
        with socket.socket(socket.AF_UNIX) as door:
            door.bind(path.name)
    finally:
        os.chdir(here)


def make_device(path: Path) -> None:
    """A link to one of its own, never to the system's: root can replace that."""
    if os.geteuid() != 0:
        pytest.skip("only root can make one")
    device = path.with_name("endless")
    os.mknod(device, 0o600 | stat.S_IFCHR, os.makedev(1, 5))
    path.symlink_to(device)


def make_folder(path: Path) -> None:
    path.mkdir()


def make_enormous(path: Path) -> None:
    with path.open("wb") as stream:
        stream.truncate(200 * 1024**3)


PLACES = {
    "plan": ".ralph/words/tasks.json",
    "config": ".ralph/config.yaml",
    "last-run": "state:*/plans/*/last-run",
    "sidecar": "state:*/plans/*/beside.json",
    "lock": "state:*/plans/*/run.lock",
    "journal": "state:*/runs/*/events.jsonl",
    "ledger": "state:*/**/spending.jsonl",
    "index": "state:*/plans/*/index",
    "settings": "state:*/plans/*/index.git/config",
    "git's settings": "home:.gitconfig",
    "request": ".ralph/words/request.json",
}


@pytest.mark.slow
@pytest.mark.parametrize("make", [make_fifo, make_socket, make_device, make_folder, make_enormous])
@pytest.mark.parametrize("place", PLACES)
def test_what_is_no_ordinary_file_hangs_nothing(project: LoopProject, place: str, make: Callable[[Path], None]) -> None:
    assert run_ralph(project, "run", "--plain", "--once").code in (0, 1)
    where = PLACES[place]
    path = next(project.state.glob(where[6:]), None) if where.startswith("state:") else project.root / where
    if where.startswith("home:"):
        path = project.home / where[5:]
    if path is None:
        path = next(project.state.glob("*/plans/*/")) / "beside.json"
    path.unlink(missing_ok=True)
    make(path)
    for command in (["status"], ["run", "--plain", "--once"]):
        begun = time.monotonic()
        process = start_ralph(project, *command)
        try:
            done = finish(process, timeout=20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            pytest.fail(f"`ralph {' '.join(command)}` hangs")
        assert "Traceback" not in done.err
        assert done.code in (0, 1, 2, 3, 4, 5, 65, 75, 78) or done.err, done
        assert time.monotonic() - begun < 20
    if make is make_device:
        assert stat.S_ISCHR(path.with_name("endless").lstat().st_mode), "what a link leads to is not replaced"
