"""The real client at default settings: one session writes hidden acceptance tests, another one implements the story."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from support.clients import CLIENT, Project, claim, say, write

pytestmark = [
    pytest.mark.client,
    pytest.mark.skipif(
        not CLIENT.exists(),
        reason="THE REAL CLIENT IS NOT TESTED: claude-agent-sdk could not be installed into .venv/client",
    ),
]

RUN_ALL = 'for path in tests/test_*.sh; do sh "$path" || { echo "FAILED $path"; exit 1; }; done\n'
HIDDEN = "tests/test_acceptance_s_1.sh"
TEST = "grep -q sesame s1.txt || { echo 'expected another word in s1.txt'; exit 1; }\n"


def test_hidden_tests_reject_with_a_reason_and_join_the_commit(tmp_path: Path) -> None:
    project = Project(tmp_path, checks=["sh tests/run.sh"])
    (project.root / "tests").mkdir()
    (project.root / "tests/run.sh").write_text(RUN_ALL)
    (project.root / "tests/test_old.sh").write_text("grep -q old old.txt\n")
    project.commit()
    turns = [
        *(write(project, HIDDEN, TEST), claim(project), say()),
        *(write(project, "s1.txt", "x\n"), claim(project), say()),
        *(write(project, "s1.txt", "open sesame\n"), claim(project), say()),
    ]
    ran = project.run(turns, "--acceptance", "hidden", seconds=240)
    assert (ran.code, ran.done()) == (0, [True]), ran.out
    ended = [(event["mode"], event["kind"]) for event in ran.of("IterationEnded")]
    assert ended == [("acceptance", "accepted"), ("implement", "rejected"), ("implement", "accepted")]
    feedback = ran.of("IterationEnded")[1]["feedback"]
    assert "expected another word in s1.txt" in feedback
    assert "sesame" not in feedback
    command = ["git", "show", f"HEAD:{HIDDEN}"]
    shown = subprocess.run(command, cwd=project.root, env=project.environment(), capture_output=True, check=True)
    assert shown.stdout.decode() == TEST
    assert ran.of("IterationEnded")[2]["grade"] == "proven"
