"""What an earlier version left opens: views, checks and the next run, also after a killed one.

`data/state-0.1.0.tar.xz` was recorded with a wheel of commit 153d4952: a workspace and its state folder. Its first run
ended at its cap of iterations with one of two stories done; its second one was killed with SIGKILL while the agent
was at work.
"""

from __future__ import annotations

import json
import os
import tarfile
from pathlib import Path

import pytest

from ralph.state.names import JOURNAL
from ralph.state.places import workspace_state
from support.cli import ralph_here

RECORDED = Path(__file__).parent / "data" / "state-0.1.0.tar.xz"
FIRST, KILLED = "20261119-035111-327e", "20261119-035135-4473"


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """The workspace, with the state in the place of this test's state folder."""
    with tarfile.open(RECORDED) as archive:
        archive.extractall(tmp_path, filter="data")
    state = workspace_state(tmp_path / "work", os.environ)
    state.parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / "state").rename(state)
    return tmp_path / "work"


VIEWS = {
    "status": "✓ US-001 Whisper a word  1 review, witnessed",
    f"report {FIRST}": "witnessed by unit",
    "report": "Whisper a word",
    "report --html -": "<svg",
    "report --markdown -": "**US-001** Whisper a word",
    "runs": f"{KILLED}  killed",
    "runs cost": "$0.07 +? for 4 iterations in 2 runs",
    "runs stats": "implement             3",
    f"log {FIRST}": "rejected US-002: no files changed",
    f"explain {FIRST}": "3 iterations; the cap is 3",
    f"runs replay {FIRST}": "",
    "proof US-001": "in a clean checkout of the commit",
    "config show --origin": "script.yaml",
    "check --json": "",
    "trust --show": "python3 -m unittest -q",
    "rescue list": "",
    f"record {FIRST} --svg -": "<svg",
}


def test_every_view_opens_the_state_of_an_earlier_version(old: Path) -> None:
    for line, expected in VIEWS.items():
        done = ralph_here(*line.split(), cwd=old)
        assert done.code == 0, f"{line}: {done.err}"
        assert expected in done.out, line


@pytest.mark.slow
@pytest.mark.defaults
def test_the_next_run_recovers_the_killed_one_and_finishes_the_plan(old: Path) -> None:
    done = ralph_here("run", "--plain", "--trust", cwd=old)
    assert done.code == 0, done.out + done.err
    assert f"recovered run {KILLED}" in done.out
    assert "accepted US-001" not in done.out  # what was done stays done
    assert "2/2  every story is done" in done.out
    report = ralph_here("report", "--json", cwd=old).json
    assert [story["state"] for story in report["stories"]] == ["done", "done"]


def test_nothing_must_change_for_it(old: Path) -> None:
    done = ralph_here("migrate", "--check", cwd=old)
    assert done.code == 0, done.out
    assert "2 runs can be read: 2 of 0.1.0" in done.out
    assert done.out.endswith("nothing must change\n")
    assert ralph_here("migrate", "--json", cwd=old).json["changes"] == []


def test_a_run_of_a_newer_version_is_named_and_kept(old: Path) -> None:
    journal = workspace_state(old, os.environ) / "runs" / FIRST / JOURNAL
    first, rest = journal.read_bytes().split(b"\n", 1)
    newer = first.replace(b'"version":"0.1.0"', b'"version":"99.0.0"').replace(b'"v":1', b'"v":2')
    assert newer != first
    journal.write_bytes(newer + b"\n" + rest)
    before = journal.read_bytes()
    done = ralph_here("migrate", cwd=old)
    assert done.code == 78
    assert "the journal was written with schema 2 of Ralph; this is 1" in done.out
    assert "1 run can be read" in done.out
    assert journal.read_bytes() == before


def test_hooks_that_call_another_installation_are_rewritten(tmp_path: Path) -> None:
    assert ralph_here("hooks", "install", "--user", cwd=tmp_path).code == 0
    settings = Path.home() / ".claude" / "settings.json"
    ours = settings.read_text()
    command = json.loads(ours)["hooks"]["Stop"][0]["hooks"][0]["command"]
    settings.write_text(ours.replace(command.split()[0], "/opt/ralph-0.0.9/bin/python"))
    done = ralph_here("migrate", "--check", cwd=tmp_path)
    assert done.code == 1, done.out
    assert "calls another installation of Ralph" in done.out
    assert done.out.endswith("1 file must change\n")
    assert "/opt/ralph-0.0.9" in settings.read_text()
    assert ralph_here("migrate", cwd=tmp_path, env={"RALPH_LOOP": "1"}).code == 78  # an agent does not
    done = ralph_here("migrate", cwd=tmp_path)
    assert (done.code, done.out.splitlines()[-1]) == (0, "1 file rewritten")
    assert json.loads(settings.read_text()) == json.loads(ours)
    assert ralph_here("migrate", "--check", cwd=tmp_path).code == 0
