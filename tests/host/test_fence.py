from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from ralph.host.process.fence import Fence, is_available
from ralph.host.process.start import CannotStart, run, shell

pytestmark = pytest.mark.skipif(not is_available(), reason="the kernel has no Landlock")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    for name in ("hidden/inner", "hidden/allowed", "open", "other"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "file").write_text(f"{name}\n")
    (tmp_path / "file").write_text("beside\n")
    (tmp_path / "open/link").symlink_to(tmp_path / "hidden/inner/file")
    return tmp_path


def _fenced(place: Path, command: str) -> tuple[int, str]:
    fence = Fence.make([place / "hidden"], [place / "hidden/allowed"])
    assert fence is not None
    done = run(shell(command), cwd=place / "open", env=dict(os.environ), enclosure=fence)
    fence.close()
    return done.code, (done.out + done.err).decode()


def test_files_in_a_hidden_folder_cannot_be_read(place: Path) -> None:
    code, text = _fenced(place, "cat ../hidden/inner/file")
    assert code != 0
    assert "Permission denied" in text
    assert _fenced(place, "cat link")[0] != 0, "nor through a link"
    assert _fenced(place, "sh -c 'cat ../hidden/inner/file' & wait $!")[0] != 0, "nor by a child"


def test_everything_else_works(place: Path) -> None:
    command = (
        "cat file ../other/file ../file ../hidden/allowed/file && echo x > new && mv new ../other/ && cat ../other/new"
    )
    assert _fenced(place, command) == (0, "open\nother\nbeside\nhidden/allowed\nx\n")
    assert _fenced(place, "ls ../hidden && git --version > /dev/null && date > /dev/null")[0] == 0


def test_programs_in_a_hidden_folder_cannot_be_started(place: Path) -> None:
    program = place / "hidden/inner/program"
    program.write_text("#!/bin/sh\necho ran\n")
    program.chmod(0o755)
    assert "ran" not in _fenced(place, str(program))[1]


def test_this_process_is_not_restricted(place: Path) -> None:
    _fenced(place, "true")
    assert (place / "hidden/inner/file").read_text() == "hidden/inner\n"


def test_threads_start_fenced_and_free_processes_at_the_same_time(place: Path) -> None:
    fence = Fence.make([place / "hidden"], [])
    assert fence is not None
    results: dict[int, int] = {}

    def start(number: int) -> None:
        inside = fence if number % 2 else None
        for _ in range(3):
            results[number] = run(shell("cat ../hidden/inner/file"), cwd=place / "open", enclosure=inside).code

    threads = [threading.Thread(target=start, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    fence.close()
    assert [bool(results[number]) for number in range(6)] == [False, True] * 3


def test_a_program_that_does_not_exist_is_reported_inside_a_fence_too(place: Path) -> None:
    fence = Fence.make([place / "hidden"], [])
    assert fence is not None
    with pytest.raises(CannotStart):
        run([str(place / "nosuch")], cwd=place, enclosure=fence)
    fence.close()
