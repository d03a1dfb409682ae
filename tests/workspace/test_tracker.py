"""A spec with beads: a step shows its bead, and the bead goes along with its step."""

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

- [ ] **1.1** The schema [TASK-a]
- [ ] **1.2** The rules [TASK-b]
- [ ] **1.3** The form
"""


@pytest.fixture
def work(tmp_path: Path) -> Path:
    root = tmp_path / "work"
    (tmp_path / "bin").mkdir()
    for folder in (".ralph", ".beads"):
        (root / folder).mkdir(parents=True)
    (root / ".ralph" / "spec.md").write_text(SPEC)
    shutil.copy(STAND_IN, tmp_path / "bin" / "br")
    issues = [
        {"id": "TASK-a", "title": "Schema", "status": "open", "acceptance_criteria": "- a table\x1b[31m\n- a key"},
        {"id": "TASK-b", "title": "Rules", "status": "open", "description": None},
    ]
    (root / ".beads" / "stand-in.json").write_text(json.dumps(issues))
    return root


def task(work: Path, *arguments: str, **env: str) -> Completed:
    path = os.pathsep.join([str(work.parent / "bin"), os.environ["PATH"]])
    return ralph_here("task", *arguments, cwd=work, env={"PATH": path} | env)


def bead(work: Path, name: str) -> dict[str, str]:
    issues = json.loads((work / ".beads" / "stand-in.json").read_text())
    return next(issue for issue in issues if issue["id"] == f"TASK-{name}")


def test_a_step_shows_what_its_bead_says(work: Path) -> None:
    for arguments in (("show", "1.1"), ("next",)):
        out = task(work, *arguments).out
        assert "bead TASK-a  Schema\nstatus     open\n\nacceptance criteria:\n  - a table\n  - a key\n" in out
    assert task(work, "show", "1.1", "--json").json["bead"]["acceptance_criteria"].endswith("- a key")
    assert task(work, "show", "1.3", "--json").json["bead"] is None


def test_a_bead_goes_along_with_its_step(work: Path) -> None:
    assert task(work, "set", "1.1", "--state", "in_progress").code == 0
    assert bead(work, "a")["status"] == "in_progress"
    done = task(work, "done", "1.1", "--note", "it has a table")
    assert (done.code, bead(work, "a")["status"]) == (0, "closed")
    assert bead(work, "a")["close_reason"] == "it has a table"
    assert "the bead TASK-a is now closed" in done.err
    assert task(work, "reopen", "1.1").code == 0
    assert bead(work, "a")["status"] == "open"
    assert bead(work, "b")["status"] == "open"


def test_the_spec_is_changed_even_when_its_bead_cannot_be(work: Path) -> None:
    (work / ".ralph" / "spec.md").write_text(SPEC.replace("TASK-a", "TASK-gone"))
    done = task(work, "done", "1.1")
    assert done.code == 0
    assert "- [x] **1.1**" in (work / ".ralph" / "spec.md").read_text()
    assert "warning: the bead TASK-gone could not be set to closed: br: Issue not found" in done.err
    assert "`ralph plan sync`" in done.err


@pytest.mark.parametrize(("beads", "told"), [("auto", "neither br nor bd is on PATH"), ("bd", "bd is not on PATH")])
def test_without_the_tool_the_spec_stands_alone_and_says_so(work: Path, beads: str, told: str) -> None:
    (work / ".ralph" / "config.yaml").write_text(f"beads: {beads}\n")
    done = task(work, "done", "1.1", PATH=os.defpath)
    assert done.code == 0
    assert told in done.err
    assert bead(work, "a")["status"] == "open"


def test_beads_can_be_left_out(work: Path) -> None:
    (work / ".ralph" / "config.yaml").write_text("beads: off\n")
    done = task(work, "done", "1.1")
    assert (done.code, done.err) == (0, "")
    assert bead(work, "a")["status"] == "open"
