"""The real client at default settings: an exam finds a failure, which becomes a story and is fixed."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.clients import CLIENT, Project, claim, say, use, write

pytestmark = [
    pytest.mark.client,
    pytest.mark.skipif(
        not CLIENT.exists(),
        reason="THE REAL CLIENT IS NOT TESTED: claude-agent-sdk could not be installed into .venv/client",
    ),
]

RUN_ALL = 'for path in tests/test_*.sh; do sh "$path" || { echo "FAILED $path"; exit 1; }; done\n'
EXAM = "tests/test_exam_words.sh"
SECOND = "tests/test_exam_again.sh"
TEST = "grep -q sesame s1.txt || { echo 'expected sesame in s1.txt'; exit 1; }\n"


def test_an_exam_adds_a_story_and_may_not_read_the_history(tmp_path: Path) -> None:
    project = Project(tmp_path, checks=["sh tests/run.sh"])
    (project.root / "tests").mkdir()
    (project.root / "tests/run.sh").write_text(RUN_ALL)
    (project.root / "tests/test_old.sh").write_text("grep -q old old.txt\n")
    project.commit()
    read = use("Read", file_path=str(project.root / "s1.txt"))
    turns = [
        *(write(project, "s1.txt", "x\n"), claim(project), say()),
        *(use("Bash", command="git log -p > leak.txt"), write(project, EXAM, TEST), say()),
        *(read, write(project, "s1.txt", "open sesame\n"), claim(project), say()),
        *(write(project, SECOND, "grep -q open s1.txt\n"), say()),
    ]
    ran = project.run(turns, "--exam", seconds=240)
    ended = [(event["mode"], event["kind"]) for event in ran.of("IterationEnded")]
    assert ended == [("implement", "accepted"), ("exam", "accepted")] * 2, ran.out
    assert (ran.code, ran.done()) == (0, [True, True]), ran.out
    exam, fix = ran.of("IterationEnded")[1:3]
    assert "the exam found 1 failing test" in exam["headline"]
    assert "leak.txt" not in str(exam["notices"]), "it was denied, not only restored"
    assert "settings.json" not in ran.out, "and there is nothing for the user to allow"
    assert fix["grade"] == "proven"
