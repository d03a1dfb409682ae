"""`ralph plan sync`, with a stand-in for the tracker."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from support.cli import Completed, ralph_here

STAND_IN = Path(__file__).parent.parent / "support" / "beads" / "br"
SPEC = """\
# Login

- [x] **1.1** The schema [TASK-a]
- [ ] **1.2** The rules [TASK-b]
- [x] **1.3** The form [TASK-c]
- [ ] **1.R** Review
"""


@pytest.fixture
def work(tmp_path: Path) -> Path:
    root = tmp_path / "work"
    (tmp_path / "bin").mkdir()
    for folder in (".ralph", ".beads"):
        (root / folder).mkdir(parents=True)
    (root / ".ralph" / "spec.md").write_text(SPEC)
    shutil.copy(STAND_IN, tmp_path / "bin" / "br")
    return root


def verify(work: Path, *arguments: str, **statuses: str) -> Completed:
    issues = [{"id": f"TASK-{name}", "title": name, "status": status} for name, status in statuses.items()]
    (work / ".beads" / "stand-in.json").write_text(json.dumps(issues))
    path = os.pathsep.join([str(work.parent / "bin"), os.environ["PATH"]])
    return ralph_here("verify-sync", *arguments, cwd=work, env={"PATH": path})


def test_a_spec_that_agrees_with_its_beads_exits_with_0(work: Path) -> None:
    done = verify(work, a="closed", b="in_progress", c="closed")
    assert done.code == 0
    assert done.out.splitlines() == ["1.R  open in the spec, names no bead"]


def test_each_step_that_differs_is_said_and_the_exit_code_is_1(work: Path) -> None:
    done = verify(work, a="open", b="closed")
    assert done.code == 1
    assert done.out.splitlines() == [
        "1.1  done in the spec, but the bead TASK-a is open",
        "1.2  open in the spec, but the bead TASK-b is closed",
        "1.3  done in the spec, but the bead TASK-c does not exist",
        "1.R  open in the spec, names no bead",
    ]
    assert "4 steps, 3 of them disagree" in done.err


def test_scripts_get_json(work: Path) -> None:
    done = verify(work, "--json", a="closed", b="closed", c="closed")
    assert done.code == 1
    assert done.json["agree"] is False
    assert done.json["tool"] == "br"
    assert done.json["untracked"] == ["1.R"]
    assert done.json["differences"] == [
        {"step": "1.2", "ref": "TASK-b", "kind": "differs", "spec": "open", "beads": "closed"}
    ]


def test_without_the_tool_the_spec_stands_alone(work: Path) -> None:
    done = ralph_here("verify-sync", cwd=work, env={"PATH": str(work / "nothing")})
    assert done.code == 78
    assert "neither br nor bd" in done.err
    assert "install br" in done.err
    assert verify(work, "--tool", "bd").code == 78


def test_another_layout_has_no_beads(work: Path) -> None:
    (work / ".ralph" / "spec.md").unlink()
    (work / ".ralph" / "PRD-1").mkdir()
    (work / ".ralph" / "PRD-1" / "plan.md").write_text("- [ ] US-001: One\n")
    done = verify(work)
    assert done.code == 64
    assert "spec.md" in done.err
