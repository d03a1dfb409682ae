"""Stories in several workers: what they accept is merged and proved before the branch moves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ralph.core.events import (
    IterationEnded,
    IterationStarted,
    Queued,
    QueueProved,
    WorkerStarted,
)
from support.accepted import CHECK
from support.parallel_runs import Project, writes

UNIQUE = 'test -z "$(cat slot_*.py 2>/dev/null | sort | uniq -d)"'


def test_independent_stories_run_at_the_same_time(tmp_path: Path) -> None:
    stories = {f"S-{n}": [writes(f"f{n}.txt", f"{n}\n", seconds=1)] for n in range(1, 5)}
    project = Project(tmp_path, stories)
    project.run(workers=4)
    project.check("S-1", "S-2", "S-3", "S-4")
    begun = project.events(IterationStarted)
    assert {event.worker for event in begun} == {1, 2, 3, 4}
    assert len(project.events(WorkerStarted)) >= 4
    assert [step.split()[0] for step in project.order()[:4]] == ["begin"] * 4
    assert project.git("show", "HEAD:f3.txt") == "3"


def test_a_story_starts_on_what_it_depends_on(tmp_path: Path) -> None:
    stories = {
        "S-1": [writes("one.txt", "1\n", seconds=0.5)],
        "S-2": [[{"run": "cp one.txt two.txt"}, {"claim": "done"}]],
        "S-3": [writes("three.txt", "3\n")],
    }
    project = Project(tmp_path, stories, depends_on={"S-2": ["S-1"]})
    project.run(workers=3)
    project.check("S-1", "S-2", "S-3")
    assert project.git("show", "HEAD:two.txt") == "1"
    order = [event.story for event in project.events(IterationStarted)]
    assert order.index("S-2") > order.index("S-3")


def test_a_conflict_in_the_text_goes_back_to_its_story(tmp_path: Path) -> None:
    stories = {
        "S-1": [writes("list.txt", "one\n")],
        "S-2": [
            writes("list.txt", "two\n", seconds=1.5),
            [
                {"run": "cp list.txt ../seen.txt 2>/dev/null; grep -c '<<<<<<<' list.txt > marks.txt"},
                *writes("list.txt", "one\ntwo\n"),
            ],
        ],
    }
    project = Project(tmp_path, stories)
    project.run()
    project.check("S-1", "S-2")
    assert project.kinds("S-2") == ["returned", "accepted"]
    returned = next(event for event in project.events(IterationEnded) if event.kind.value == "returned")
    assert "conflict" in returned.headline
    assert "list.txt" in returned.headline
    assert project.git("show", "HEAD:list.txt") == "one\ntwo"
    assert project.git("show", "HEAD:marks.txt") == "1"  # the second session found the conflict marked


def test_conflict_markers_that_stay_are_rejected(tmp_path: Path) -> None:
    keep = [{"write": {"path": "other.txt", "text": "x\n"}}, {"claim": "done"}]
    stories = {
        "S-1": [writes("list.txt", "one\n")],
        "S-2": [writes("list.txt", "two\n", seconds=1.5), keep, writes("list.txt", "one\ntwo\n")],
    }
    project = Project(tmp_path, stories)
    project.run()
    project.check("S-1", "S-2")
    assert project.kinds("S-2") == ["returned", "rejected", "accepted"]
    assert project.git("show", "HEAD:list.txt") == "one\ntwo"


def test_green_alone_and_red_together_is_told_apart(tmp_path: Path) -> None:
    stories = {
        "S-1": [writes("slot_1.py", "SLOT = 1\n")],
        "S-2": [writes("slot_2.py", "SLOT = 1\n", seconds=1.5), writes("slot_2.py", "SLOT = 2\n")],
    }
    project = Project(tmp_path, stories, check=UNIQUE)
    done = project.run()
    project.check("S-1", "S-2")
    assert project.kinds("S-2") == ["returned", "accepted"]
    returned = next(event for event in project.events(IterationEnded) if event.kind.value == "returned")
    assert "green alone, red merged" in returned.headline
    assert [event.passed for event in project.events(QueueProved)].count(False) == 1
    assert len(project.events(Queued)) == 3
    assert "S-2" in done.out


def test_a_lie_is_rejected_in_its_worker_and_the_next_attempt_is_merged(tmp_path: Path) -> None:
    bad = writes("bad.txt", "bad\n")
    stories = {"S-1": [bad, writes("good.txt", "1\n")], "S-2": [writes("two.txt", "2\n")]}
    project = Project(tmp_path, stories, check="! test -f bad.txt")
    project.run()
    project.check("S-1", "S-2")
    assert project.kinds("S-1") == ["rejected", "accepted"]
    assert "bad.txt" not in project.git("ls-tree", "--name-only", "HEAD")
    rescued = next(event.rescue for event in project.events(IterationEnded) if event.rescue)
    assert project.git("show", f"{rescued}:bad.txt") == "bad"


def test_a_claim_without_changes_is_proved_on_the_merged_tree(tmp_path: Path) -> None:
    """S-2 holds where its worker began, and no longer after S-1."""
    stories: dict[str, list[Any]] = {
        "S-1": [writes("readme.txt", "changed\n")],
        "S-2": [
            [{"sleep": 1.5}, {"claim": "already-satisfied"}],
            writes("two.txt", "hello\n"),
        ],
    }
    project = Project(tmp_path, stories)
    plan = json.loads(project.plan.read_text())
    plan["userStories"][1]["verify"] = "grep -q hello *.txt"
    project.plan.write_text(json.dumps(plan))
    project.git("commit", "-qam", "checks")
    project.run()
    project.check("S-1", "S-2")
    assert project.kinds("S-2") == ["returned", "accepted"]


def test_work_that_was_not_claimed_can_be_claimed_by_the_next_session(tmp_path: Path) -> None:
    """It was kept. The proof is about all that the story has changed, wherever its sessions ran."""
    code = [{"write": {"path": "two.py", "text": "def two():\n    return 2\n"}}]
    test = "import two\n\n\ndef test_two():\n    assert two.two() == 2\n"
    stories: dict[str, list[Any]] = {
        "S-1": [writes("one.txt", "1\n", seconds=1)],
        "S-2": [[*code, {"write": {"path": "tests/test_two.py", "text": test}}], [{"claim": "done"}]],
        "S-3": [writes("three.txt", "3\n")],
    }
    project = Project(tmp_path, stories, check=CHECK, config={"proof": {}, "review": {"enabled": False}})
    (project.root / "tests").mkdir()
    (project.root / "tests/test_start.py").write_text("def test_start():\n    pass\n")
    (project.root / "conftest.py").write_text("")
    (project.root / ".gitignore").write_text("__pycache__/\n")
    project.git("add", "-A")
    project.git("commit", "-qm", "tests")
    project.run(code=None)
    assert project.kinds("S-2") == ["partial", "accepted"]
    assert "S-2" in project.done()
    ended = [event for event in project.events(IterationEnded) if event.story == "S-2"]
    assert (ended[-1].completes, ended[-1].grade) == (True, "witnessed")


def test_stories_whose_checks_name_the_same_script_run_at_the_same_time(tmp_path: Path) -> None:
    """They read it: that is no reason to wait for each other."""
    stories = {f"S-{n}": [writes(f"f{n}.txt", f"{n}\n", seconds=1)] for n in (1, 2)}
    project = Project(tmp_path, stories)
    text = project.plan.read_text().replace('"passes"', '"verify": "sh check.sh", "passes"')
    project.plan.write_text(text)
    (project.root / "check.sh").write_text("test -f readme.txt\n")
    project.git("add", "-A")
    project.git("commit", "-qm", "checks")
    project.run()
    project.check("S-1", "S-2")
    assert [step.split()[0] for step in project.order()[:2]] == ["begin"] * 2
