"""A check that cannot run, or fails, before any work: no agent is paid for before a person has decided."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from shlex import quote
from typing import Any

import pytest

from ralph.core.events import AgentStarted, Baseline, Noted, RunEnded
from support.cli import Completed, ralph_here
from support.proven import Proven, shell, write

ONE = [write("src/one.py", "ONE = 1\n"), "claim"]
FIX = [write("src/one.py", "ONE = 1\n"), shell("touch fixed"), "claim"]
RED = {"name": "old", "command": "test -f fixed"}


def run(made: Proven, *arguments: str, story: Sequence[Any] = ONE) -> Completed:
    """`Proven.run` takes 78 for a mistake of the test."""
    script = str(made.script(US_001=[story]))
    return ralph_here("run", "--plain", "--trust", "--agent-script", script, *arguments, cwd=made.root)


def agents(made: Proven) -> int:
    return sum(isinstance(event, AgentStarted) for event in made.events())


def reason(made: Proven) -> str:
    last = made.events()[-1]
    assert isinstance(last, RunEnded)
    return last.reason.value


@pytest.mark.parametrize("policy", ["strict", "no-worse"])
def test_a_check_that_is_not_installed_costs_no_agent_call(tmp_path: Path, policy: str) -> None:
    made = Proven(tmp_path, checks=["nosuchlinter --strict ."], baseline=policy)
    done = run(made)
    assert done.code == 78
    assert "nosuchlinter is not installed; install nosuchlinter, or fix the command" in done.out
    assert "--allow-broken-checks" in done.out
    assert agents(made) == 0
    assert reason(made) == "broken-check"
    assert made.is_clean()


def test_a_missing_folder_of_a_check_is_named(tmp_path: Path) -> None:
    made = Proven(tmp_path, checks=[{"name": "api", "command": "true", "cwd": "backend"}])
    assert run(made).code == 78
    assert made.events()[-1].detail.startswith("api (`true`) cannot run: folder ")  # type: ignore[union-attr]


def test_allow_broken_checks_continues_and_says_so(tmp_path: Path) -> None:
    made = Proven(tmp_path, checks=["./run-tests.sh"])
    work = [write("run-tests.sh", "#!/bin/sh\nexit 0\n"), shell("chmod +x run-tests.sh"), "claim"]
    done = run(made, "--allow-broken-checks", story=work)
    assert done.code == 0, done.out
    assert "./run-tests.sh does not exist" in done.out
    assert "every story is rejected until it passes" in done.out


def test_what_was_installed_since_the_last_start_is_tried_again(tmp_path: Path) -> None:
    made = Proven(tmp_path, checks=[f"{tmp_path}/tool"])
    assert run(made).code == 78
    (tmp_path / "tool").write_text("#!/bin/sh\nexit 0\n")
    (tmp_path / "tool").chmod(0o755)
    assert run(made).code == 0
    assert [e.results[0].passed for e in made.events() if isinstance(e, Baseline)] == [True]


def test_a_failing_check_stops_a_strict_run_where_nobody_can_be_asked(tmp_path: Path) -> None:
    made = Proven(tmp_path, checks=[RED])
    done = run(made)
    assert done.code == 78
    assert "old (`test -f fixed`) fails before any work" in done.out
    assert "--baseline no-worse" in done.out
    assert (agents(made), reason(made)) == (0, "red-baseline")
    assert run(made, "--baseline", "no-worse").code == 0
    assert any("stories are not rejected for it" in e.text for e in made.events() if isinstance(e, Noted))


def test_a_story_whose_own_check_it_is_is_let_at_it(tmp_path: Path) -> None:
    made = Proven(tmp_path, checks=[RED], stories=[{"verify": ["test -f fixed"]}])
    done = run(made, story=FIX)
    assert done.code == 0, done.out
    assert "fails before any work: old; stories are accepted only once it passes" in done.out


def test_a_check_that_may_fail_does_not_stop_a_run(tmp_path: Path) -> None:
    made = Proven(tmp_path, checks=[{**RED, "allow_failure": True}, {"name": "ok", "command": "true"}])
    assert run(made).code == 0


def test_a_suite_without_a_test_yet_is_no_reason_to_stop(tmp_path: Path) -> None:
    check = f"{quote(sys.executable)} -m pytest -q -p no:cacheprovider -p no:hypothesispytest new"
    made = Proven(tmp_path, checks=[check])
    made.write("new/.keep", "")
    made.git("add", "-A")
    made.git("commit", "-qm", "a folder for tests")
    done = run(made, story=[write("new/test_a.py", "def test_a():\n    assert 1\n"), "claim"])
    assert done.code == 0, done.out


@pytest.mark.parametrize(("typed", "code"), [(b"s\n", 78), (b"n\n", 0), (b"c\n", 0)])
def test_on_a_terminal_the_person_decides(tmp_path: Path, typed: bytes, code: int) -> None:
    made = Proven(tmp_path, checks=[RED])
    script = str(made.script(US_001=[FIX if typed == b"c\n" else ONE]))
    command = [sys.executable, "-m", "ralph", "run", "--trust", "--agent-script", script]
    ours, theirs = pty.openpty()
    try:
        process = subprocess.Popen(command, cwd=made.root, stdin=theirs, stdout=theirs, stderr=theirs)
        seen, end, is_answered = b"", time.monotonic() + 60, False
        while process.poll() is None and time.monotonic() < end:
            if select.select([ours], [], [], 0.1)[0]:
                seen += os.read(ours, 10_000)
            if not is_answered and b"or stop (s)?" in seen:
                os.write(ours, typed)
                is_answered = True
        assert process.wait(10) == code, seen.decode()
    finally:
        os.close(ours)
        os.close(theirs)
    assert is_answered
    assert agents(made) == (0 if code else 1)


def test_caches_and_files_that_checks_leave_never_refuse_the_next_run(tmp_path: Path) -> None:
    """No .gitignore: a baseline leaves bytecode and a report, then the run is stopped; the next one starts."""
    imports = f"PYTHONDONTWRITEBYTECODE= PYTHONPATH=src {quote(sys.executable)} -c 'import shop'"
    made = Proven(tmp_path, checks=[f"{imports} && echo x > report.bin && test -f ../ready"])
    made.write(".gitignore", "")
    made.git("commit", "-qam", "ignore nothing")
    assert run(made).code == 78
    assert "src/__pycache__/" in made.git("status", "--porcelain")
    assert "report.bin" in made.git("status", "--porcelain")
    (tmp_path / "ready").touch()
    made.write(".mypy_cache/x.json", "{}")  # left by a tool that the person ran
    done = run(made)
    assert done.code == 0, done.err
    made.write("mine.txt", "my own work\n")
    assert "mine.txt" in run(made, "--reset-circuit").err


def test_what_checks_leave_is_only_excused_while_it_is_untracked(tmp_path: Path) -> None:
    made = Proven(tmp_path, checks=["echo x > report.bin; test -f ../ready"])
    assert run(made).code == 78
    made.git("add", "report.bin")
    made.git("commit", "-qm", "keep the report")
    made.write("report.bin", "a person's edit\n")
    done = run(made)
    assert done.code == 78
    assert "uncommitted changes" in done.err


@pytest.mark.defaults
def test_a_run_says_what_stories_without_a_check_of_their_own_need(tmp_path: Path) -> None:
    made = Proven(tmp_path, checks=["true"], stories=[{}, {"verify": ["true"]}])
    assert (
        "1 of 2 open stories has no check of its own: it needs a test that fails without the change"
        in run(made, "-n", "1").out
    )
