"""Sessions of other kinds in a run with several workers: acceptance tests, the exam and the set-up."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ralph.core.events import IterationEnded, IterationStarted, Judged, Noted
from support.accepted import CHECK
from support.parallel_runs import Project, writes

STORIES = ("S-1", "S-2")
NUMBERS = {"S-1": 2, "S-2": 3}


def write(path: str, text: str) -> dict[str, Any]:
    return {"write": {"path": path, "text": text}}


def module(story: str) -> str:
    return f"times_{NUMBERS[story]}"


def acceptance_of(story: str) -> list[Any]:
    """An acceptance session: the tests fail as long as there is no implementation."""
    text = (
        f"import {module(story)}\n\n\ndef test_{module(story)}():\n    secret_expectation = 5 * {NUMBERS[story]}\n"
        f"    assert {module(story)}.times(5) == secret_expectation\n"
    )
    return [write(f"tests/test_accept_{module(story)}.py", text), {"claim": "done"}]


def code_of(story: str, *, is_right: bool = True) -> list[Any]:
    answer = f"x * {NUMBERS[story]}" if is_right else f"{NUMBERS[story]}"
    own = f"import {module(story)}\n\n\ndef test_one():\n    assert {module(story)}.times(1) == {NUMBERS[story]}\n"
    text = f"def times(x):\n    return {answer}\n"
    return [write(f"{module(story)}.py", text), write(f"tests/test_{module(story)}.py", own), {"claim": "done"}]


def project(folder: Path, sessions: dict[str, list[Any]], **more: Any) -> Project:
    made = Project(folder, sessions, check=CHECK, **more)
    files = {"conftest.py": "", ".gitignore": "__pycache__/\n", "tests/test_start.py": "def test_start():\n    pass\n"}
    (made.root / "tests").mkdir()
    for name, text in files.items():
        (made.root / name).write_text(text)
    made.git("add", "-A")
    made.git("commit", "-qm", "tests")
    return made


def outcomes(made: Project, story: str) -> list[tuple[str, str]]:
    return [(one.mode.value, one.kind.value) for one in made.events(IterationEnded) if one.story == story]


@pytest.mark.parametrize("kind", ["visible", "hidden"])
def test_acceptance_tests_of_one_worker_decide_in_another(tmp_path: Path, kind: str) -> None:
    """S-2 is implemented wrongly at first; only its acceptance test notices."""
    sessions = {
        "S-1": [{"acceptance": acceptance_of("S-1"), "implement": code_of("S-1")}],
        "S-2": [
            {"acceptance": acceptance_of("S-2"), "implement": code_of("S-2", is_right=False)},
            {"implement": code_of("S-2")},
        ],
    }
    made = project(tmp_path, sessions, config={"acceptance": kind, "proof": {}})
    made.run()
    made.check(*STORIES)
    assert outcomes(made, "S-1") == [("acceptance", "accepted"), ("implement", "accepted")]
    assert outcomes(made, "S-2") == [
        ("acceptance", "accepted"),
        ("implement", "rejected"),
        ("implement", "accepted"),
    ]
    for story in STORIES:
        path = f"tests/test_accept_{module(story)}.py"
        assert made.git("show", f"HEAD:{path}") == acceptance_of(story)[0]["write"]["text"].rstrip()
        first = made.git("log", "--format=%s", "--reverse", "--", path).splitlines()[0]
        assert first.startswith(f"{'test' if kind == 'visible' else 'feat'}({story})")
    feedback = next(one.feedback for one in made.events(IterationEnded) if one.kind.value == "rejected")
    assert "test_times_3" in feedback
    assert ("secret_expectation" in feedback) is (kind == "visible")
    assert {one.grade for one in made.events(IterationEnded) if one.completes} == {"proven"}


def test_hidden_tests_are_in_no_object_before_their_story_is_done(tmp_path: Path) -> None:
    sessions = {story: [{"acceptance": acceptance_of(story), "implement": [{"claim": "done"}]}] for story in STORIES}
    made = project(tmp_path, sessions, config={"acceptance": "hidden", "max_loops_per_task": 1})
    made.run(code=None)
    assert [outcomes(made, story)[0] for story in STORIES] == [("acceptance", "accepted")] * 2
    command = ["git", "cat-file", "--batch-all-objects", "--batch", "--unordered"]
    content = subprocess.run(command, cwd=made.root, capture_output=True, check=True).stdout
    assert b"secret_expectation" not in content
    assert made.done() == []


def test_a_story_continues_without_acceptance_tests_after_two_sessions(tmp_path: Path) -> None:
    wrong = [write("tests/test_accept.py", "def test_nothing():\n    pass\n"), {"claim": "done"}]
    sessions = {
        "S-1": [{"acceptance": wrong, "implement": code_of("S-1")}],
        "S-2": [{"acceptance": acceptance_of("S-2"), "implement": code_of("S-2")}],
    }
    made = project(tmp_path, sessions, config={"acceptance": "hidden"})
    made.run()
    made.check(*STORIES)
    assert outcomes(made, "S-1") == [("acceptance", "rejected")] * 2 + [("implement", "accepted")]
    notes = [one.text for one in made.events(Noted)]
    assert sum("S-1 continues without acceptance tests: already passes" in note for note in notes) == 1, notes


def test_stories_of_the_exam_go_to_workers(tmp_path: Path) -> None:
    imports = "import times_2\nimport times_3\n\n\n"
    both = f"{imports}def test_both():\n    assert times_3.times(times_2.times('a')) == 'A' * 6\n"
    more = f"{imports}def test_more():\n    assert times_3.times(times_2.times(1)) == 6\n"
    cheat = [write("tests/test_exam_both.py", "def test_both():\n    pass\n"), {"claim": "done"}]
    fixed = "def times(x):\n    return (x * 3).upper() if isinstance(x, str) else x * 3\n"
    anything = [
        {"exam": [write("tests/test_exam_both.py", both), {"claim": "done"}], "implement": cheat},
        {
            "exam": [write("tests/test_exam_more.py", more), {"claim": "done"}],
            "implement": [write("times_3.py", fixed), {"claim": "done"}],
        },
    ]
    sessions: dict[str, Any] = {story: [{"implement": code_of(story)}] for story in STORIES}
    made = project(tmp_path, sessions)
    script = json.loads((tmp_path / "script.yaml").read_text())
    script["stories"]["*"] = anything
    (tmp_path / "script.yaml").write_text(json.dumps(script))
    made.run("--exam")
    assert made.reason() == "complete"
    ended = [(one.mode.value, one.kind.value) for one in made.events(IterationEnded)]
    assert ended[2:] == [
        ("exam", "accepted"),
        ("implement", "rejected"),
        ("implement", "accepted"),
        ("exam", "accepted"),
    ]
    assert made.git("show", "HEAD:tests/test_exam_both.py") == both.rstrip()
    story = made.events(IterationStarted)[3]
    assert story.worker > 0
    assert made.done() == [*STORIES, story.story]
    assert not made.processes()


def test_the_set_up_is_over_before_workers_start(tmp_path: Path) -> None:
    every = [{"run": "cp made.txt $RALPH_STORY.txt"}, {"claim": "done"}]
    script = {"setup": [write("made.txt", "made\n")], "stories": {"*": [{"implement": every}]}}
    made = Project(tmp_path, {"S-1": []}, config={"review": {"enabled": False}})
    made.git("rm", "-rqf", ".ralph/many")
    (tmp_path / "script.yaml").write_text(json.dumps(script))
    tasks = [
        {"id": story, "title": story, "acceptanceCriteria": ["it is there"], "status": "todo"} for story in STORIES
    ]
    (made.root / ".ralph/prd.json").write_text(json.dumps({"project": "p", "tasks": tasks}))
    (made.root / ".ralph/configs").mkdir()
    steps = [
        {"type": "agent", "name": "setup", "config": {"marker_file": ".ralph/.setup_done"}},
        {"type": "agent", "name": "run-claude"},
        {"type": "git-commit"},
    ]
    (made.root / ".ralph/configs/default.json").write_text(json.dumps({"name": "default", "steps": steps}))
    made.git("add", "-A")
    made.git("commit", "-qm", "the plan")
    made.run()
    assert made.reason() == "complete"
    begun = made.events(IterationStarted)
    assert [(one.mode.value, one.worker > 0) for one in begun] == [
        ("setup", False),
        ("implement", True),
        ("implement", True),
    ]
    assert made.order()[1] == "end "
    assert [made.git("show", f"HEAD:{story}.txt") for story in STORIES] == ["made", "made"]
    assert (made.root / ".ralph/.setup_done").exists()
    assert not made.processes()
    made.run()
    assert made.events(IterationStarted) == []


def test_every_worker_has_the_set_up_of_the_sandbox(tmp_path: Path) -> None:
    every = [[{"run": f"cat ~/.made > {story}.txt"}, {"claim": "done"}] for story in STORIES]
    config = {"sandbox": {"setup": "echo made > ~/.made"}}
    made = Project(tmp_path, {story: [each] for story, each in zip(STORIES, every, strict=True)}, config=config)
    made.run()
    made.check(*STORIES)
    assert [made.git("show", f"HEAD:{story}.txt") for story in STORIES] == ["made", "made"]


def test_every_worker_has_the_set_up_of_the_proof_checkout(tmp_path: Path) -> None:
    """Installed dependencies are in no commit: the checkouts of workers get them from the command."""
    sessions = {story: [writes(f"{story}.txt", "1\n")] for story in STORIES}
    config = {"proof": {"setup": "mkdir -p node_modules && echo from-setup > node_modules/dep.txt"}}
    made = Project(tmp_path, sessions, check="cat node_modules/dep.txt", config=config)
    (made.root / ".gitignore").write_text("node_modules/\n")
    (made.root / "node_modules").mkdir()
    (made.root / "node_modules/dep.txt").write_text("from-checkout\n")
    (made.root / "package.json").write_text("{}\n")
    made.git("add", "-A")
    made.git("commit", "-qm", "dependencies")
    made.run("--skip-review", code=None)
    assert {one.worker for one in made.events(IterationStarted)} == {1, 2}
    accepted = [one for one in made.events(Judged) if one.verdict.kind.value == "accepted"]
    assert len(accepted) >= 2
    assert {one.evidence.proof.where for one in accepted if one.evidence.proof} == {"checkout"}
