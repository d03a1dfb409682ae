"""A project that has only the files of snarktank/ralph, worked on by the real client, offline."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from support.clients import CLIENT, Project, say, use, write
from support.plans import sample

pytestmark = [
    pytest.mark.client,
    pytest.mark.skipif(
        not CLIENT.exists(),
        reason="THE REAL CLIENT IS NOT TESTED: claude-agent-sdk could not be installed into .venv/client",
    ),
]
RULES = "Commit ALL changes and set passes to true."
"""What that tool's own prompt tells agents."""


def test_its_open_story_is_done_in_place_and_its_prompt_is_not_used(tmp_path: Path) -> None:
    project = Project(tmp_path)
    shutil.rmtree(project.root / ".ralph")
    folder = project.root / "scripts" / "ralph"
    folder.mkdir(parents=True)
    before = json.loads(sample("snarktank", 2, odd=True))
    before["userStories"][1]["verify"] = "test -f two.txt"
    (folder / "prd.json").write_text(json.dumps(before, indent=2))
    (folder / "CLAUDE.md").write_text(RULES)
    (folder / "ralph.sh").write_text("exit 1\n")
    project.commit()
    turns = [
        write(project, "two.txt"),
        use("Write", file_path=str(folder / "request.json"), content='{"claim": "done"}'),
        say(),
    ]
    ran = project.run(turns, RALPH_AGENT_COMMAND=str(CLIENT), RALPH_BRANCH_AUTO_CREATE="false")
    assert ran.code == 0, ran.out
    assert ran.verdicts() == [("US-002", "accepted")]
    assert RULES not in ran.told()
    before["userStories"][1]["passes"] = True
    assert json.loads((folder / "prd.json").read_bytes()) == before
    assert not (project.root / ".ralph").exists()
