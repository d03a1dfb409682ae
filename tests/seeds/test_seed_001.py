"""What seed 001 (`ralph/tasks.json`, reviews, Stop hook, context monitor) promises, starting from its own text."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from support.hook_calls import call
from support.seed_projects import SeedProject

# "Tasks Template" of the seed, with a title, a criterion, and checks of the plan's and of each story's own.
STORY: dict[str, Any] = {
    "id": "US-001",
    "title": "Say one",
    "description": "",
    "acceptanceCriteria": ["src/US-001.txt is there"],
    "priority": 1,
    "passes": False,
    "reviewStatus": None,
    "reviewCount": 0,
    "reviewFeedback": "",
    "notes": "",
    "dependsOn": [],
}


def tasks(count: int = 1) -> str:
    stories = [
        STORY | {"id": name, "priority": number, "verify": f"test -s src/{name}.txt"}
        for number in range(1, count + 1)
        if (name := f"US-{number:03}")
    ]
    plan = {"project": "shop", "branchName": "main", "description": "", "verifyCommands": ["! grep -rqs BROKEN src"]}
    return json.dumps(plan | {"userStories": stories}, indent=2) + "\n"


def agent(edit: str) -> str:
    """Writes the story's file, and edits the plan with a line of Python: `plan` is the file, `story` the story."""
    return f"""mkdir -p src && echo "$1" > "src/$1.txt"
python3 - "$1" "$2" "$3" <<'END'
import json, sys
from pathlib import Path
path = Path("ralph/tasks.json")
plan = json.loads(path.read_text())
story = next(each for each in plan["userStories"] if each["id"] == sys.argv[1])
mode, attempt = sys.argv[2], int(sys.argv[3])
{edit}
path.write_text(json.dumps(plan, indent=2))
END
"""


CLAIMS = {
    "empty notes": 'story["passes"] = True',
    "no notes at all": 'story["passes"] = True; del story["notes"]',
    "notes are null": "story.update(passes=True, notes=None)",
    "notes are a list": 'story.update(passes=True, notes=["one", "two"])',
    "a word for true": 'story["passes"] = "true"',
    "fields cleared with null": "story.update(passes=True, reviewFeedback=None, reviewCount=None)",
    "another spelling of a review": 'story["reviewStatus"] = "Needs Review"',
    "a new story with few fields": (
        'story["passes"] = True\n'
        'few = {"id": "US-900", "title": "More", "acceptanceCriteria": ["src/US-900.txt is there"]}\n'
        'few["verify"] = "test -s src/US-900.txt"\n'
        'plan["userStories"] += [few] if len(plan["userStories"]) == 1 else []'
    ),
    "a new story that makes no sense": 'story["passes"] = True\nplan["userStories"].append({"id": "US-901"})',
    "a dependency that is not there": 'story.update(passes=True, dependsOn=["US-777"])',
    "an id twice": 'story["passes"] = True\nplan["userStories"].append(dict(story))',
    "a missing head": 'story["passes"] = True\ndel plan["project"]',
}


@pytest.mark.parametrize("how", CLAIMS)
def test_a_claim_is_read_as_a_claim_however_it_is_written(tmp_path: Path, how: str) -> None:
    project = SeedProject(tmp_path, {"ralph/tasks.json": tasks()}, agent(CLAIMS[how]))
    done = project.run("--skip-review")
    assert done.code == 0, done
    stories = json.loads(project.read("ralph/tasks.json"))["userStories"]
    assert [story["passes"] for story in stories] == [True] * (2 if how.endswith("few fields") else 1)
    assert all(story["notes"].strip() for story in stories)
    assert len(project.ended()) == len(stories)


def test_a_perfect_agent_that_writes_no_notes_needs_one_call_for_each_story(tmp_path: Path) -> None:
    project = SeedProject(tmp_path, {"ralph/tasks.json": tasks(5)}, agent('story["passes"] = True'))
    done = project.run("--skip-review")
    assert done.code == 0, done
    assert len(project.ended()) == 5
    assert "story US-001 was claimed with empty notes" in "".join(project.ended()[0].notices)


def test_a_review_cycle_without_a_word_in_notes_ends_approved(tmp_path: Path) -> None:
    edit = """
if mode == "review":
    story.update(reviewStatus="approved", passes=True, reviewCount=story["reviewCount"] + 1)
else:
    story["reviewStatus"] = "needs_review"
"""
    project = SeedProject(tmp_path, {"ralph/tasks.json": tasks()}, agent(edit))
    done = project.run()
    assert done.code == 0, done
    (story,) = json.loads(project.read("ralph/tasks.json"))["userStories"]
    assert (story["passes"], story["reviewStatus"], story["reviewCount"]) == (True, "approved", 1)
    assert story["notes"].strip()


def test_a_plan_that_is_not_json_any_more_is_put_back(tmp_path: Path) -> None:
    broken = agent("").replace("path.write_text(json.dumps(plan, indent=2))", 'path.write_text("{ oops")')
    project = SeedProject(tmp_path, {"ralph/tasks.json": tasks()}, broken)
    project.run("--skip-review", "--max-iterations", "1")
    assert project.read("ralph/tasks.json") == tasks()
    assert "could not be read" in "".join(project.ended()[0].notices)


# "Verification Plan", 3: hook scripts, each tried by hand.


class ByHand:
    """A project with a marker and a plan, and the Stop hook called from its folder as a person would."""

    def __init__(self, folder: Path) -> None:
        self.project = SeedProject(folder, {"ralph/tasks.json": tasks(2), ".gitignore": ".ralph-active\n"})

    def stop(self, *stories: dict[str, Any], call: Mapping[str, Any] | None = None, **marker: Any) -> tuple[str, str]:
        """The reason of a block, or nothing; and what was written to stderr."""
        plan = json.loads(tasks()) | {"userStories": list(stories)}
        self.project.write("ralph/tasks.json", json.dumps(plan, indent=2))
        return self.stop_as_it_is(call, **marker)

    def stop_as_it_is(self, call: Mapping[str, Any] | None = None, **marker: Any) -> tuple[str, str]:
        self.project.write(".ralph-active", json.dumps(marker))
        done = subprocess.run(
            [sys.executable, "-I", "-m", "ralph.hooks", "Stop"],
            cwd=self.project.root,
            env={name: value for name, value in os.environ.items() if name != "CLAUDE_PROJECT_DIR"},
            input=json.dumps(call or {"stop_hook_active": False}).encode(),
            capture_output=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0
        answer = json.loads(done.stdout or b"{}")
        assert answer.get("decision", "block") == "block"
        return answer.get("reason", ""), done.stderr.decode()


@pytest.fixture
def by_hand(tmp_path: Path) -> ByHand:
    return ByHand(tmp_path)


def old(**fields: Any) -> dict[str, dict[str, Any]]:
    return {"US-001": {"passes": False, "reviewStatus": None, "reviewCount": 0} | fields}


DONE = STORY | {"notes": "done"}
NEW = DONE | {"id": "US-002"}


def test_a_malformed_task_list_and_uncommitted_changes_block_by_hand(by_hand: ByHand) -> None:
    assert by_hand.stop_as_it_is(preIterationSnapshot=None)[0] == ""
    by_hand.project.write("src/new.txt", "new\n")
    assert "uncommitted changes (src/new.txt)" in by_hand.stop_as_it_is()[0]
    assert "uncommitted changes (src/new.txt)" in by_hand.stop_as_it_is({"hook_event_name": "Stop"})[0]
    by_hand.project.write("ralph/tasks.json", '{"project": "p"}')
    assert "userStories" in by_hand.stop_as_it_is()[0]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"passes": True}, "not 'approved'"),
        ({"passes": True, "reviewStatus": "needs_review"}, "not 'approved'"),
        ({"passes": True, "reviewStatus": "changes_requested"}, "not 'approved'"),
        ({"passes": True, "reviewStatus": "approved"}, ""),
        ({"reviewStatus": "changes_requested"}, "feedback is required"),
        ({"reviewStatus": "approved"}, "out of sync"),
        ({"reviewCount": -1}, "reviewCount"),
    ],
    ids=str,
)
def test_review_integrity_by_hand(by_hand: ByHand, fields: dict[str, Any], words: str) -> None:
    reason, warning = by_hand.stop(DONE | fields)
    assert words in reason
    assert "US-001" in reason or not words or "userStories[0]" in reason
    assert ("US-001" in reason) <= bool(words), "the uncommitted plan is no story's fault"
    assert "preIterationSnapshot" in warning


def test_skip_review_by_hand(by_hand: ByHand) -> None:
    assert "US-001" not in by_hand.stop(DONE | {"passes": True}, skipReview=True)[0]
    assert (
        "story US-001: passes false → true, but notes is empty"
        in by_hand.stop(STORY | {"passes": True}, skipReview=True)[0]
    )


APPROVED = {"reviewStatus": "approved", "passes": True, "reviewCount": 2}
REJECTED = {"reviewStatus": "changes_requested", "reviewCount": 2, "reviewFeedback": "off by one"}
WAITING = {"reviewStatus": "needs_review", "reviewCount": 1}


@pytest.mark.parametrize(
    ("mode", "before", "after", "words"),
    [
        ("implement", {}, [DONE | {"passes": True}], "US-001: passes false → true: implement iterations cannot"),
        ("implement", {}, [DONE | {"reviewStatus": "approved"}], "US-001: reviewStatus null → 'approved'"),
        ("implement", {}, [DONE | {"reviewCount": 1}], "US-001: reviewCount 0 → 1: implement iterations cannot"),
        ("implement", {}, [DONE | {"reviewStatus": "needs_review"}], ""),
        ("implement", {}, [DONE, NEW], ""),
        ("implement", {}, [DONE, NEW | {"passes": True}], "US-002: passes (new) → true"),
        ("review", WAITING, [DONE | APPROVED], ""),
        ("review", WAITING, [DONE | REJECTED], ""),
        ("review", WAITING, [DONE | WAITING | {"reviewStatus": "approved", "passes": True}], "increment reviewCount"),
        ("review-fix", REJECTED, [DONE | REJECTED | {"passes": True}], "US-001: passes false → true: a fix cannot"),
        ("review-fix", REJECTED, [DONE | {"reviewStatus": "needs_review", "reviewCount": 2}], ""),
        ("review-fix", REJECTED, [DONE | {"reviewStatus": "needs_review", "reviewCount": 3}], "reviewCount 2 → 3"),
    ],
    ids=str,
)
def test_transitions_by_hand(
    by_hand: ByHand, mode: str, before: dict[str, Any], after: list[dict[str, Any]], words: str
) -> None:
    snapshot = old(**{key: value for key, value in before.items() if key != "reviewFeedback"})
    reason, _ = by_hand.stop(*after, iterationMode=mode, preIterationSnapshot=snapshot)
    assert words in reason
    assert ("story US-" in reason) == bool(words), reason


def test_a_review_may_only_modify_one_story_by_hand(by_hand: ByHand) -> None:
    both = {name: old(**WAITING)["US-001"] for name in ("US-001", "US-002")}
    reason, _ = by_hand.stop(DONE | APPROVED, NEW | APPROVED, iterationMode="review", preIterationSnapshot=both)
    assert "story US-002: review 'needs_review' → 'approved': a review may only change the one story" in reason


def test_the_context_monitor_by_hand_alerts_once_at_each_threshold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.delenv("CLAUDE_PROJECT_DIR", raising=False)
    transcript = tmp_path / "transcript.jsonl"
    heard = []
    for percent in (40, 50, 55, 60, 70, 80, 81, 90, 95):
        transcript.write_text("x" * (200_000 * 4 * percent // 100))
        for _ in range(2):
            for form in ({}, {"hook_event_name": "PostToolUse"}):
                done = call("PostToolUse", {"transcript_path": str(transcript), "tool_name": "Read"} | form)
                heard.append((percent, done.reason.partition(":")[0]))
    assert [(percent, word) for percent, word in heard if word] == [
        (50, "NOTICE"),
        (60, "NOTICE"),
        (70, "WARNING"),
        (80, "WARNING"),
        (90, "CRITICAL"),
    ]
    transcript.write_text("x" * 1000)  # a second try
    assert call("PostToolUse", {"transcript_path": str(transcript)}).reason == ""
    transcript.write_text("x" * 500_000)
    assert call("PostToolUse", {"transcript_path": str(transcript)}).reason.startswith("NOTICE")


def test_the_summary_of_an_archive_counts_attempts(tmp_path: Path) -> None:
    """`ralph-archive.sh`: generates a `summary.md`. A story that took three attempts says so, also when it is done."""
    right = agent('story.update(passes=True, notes="done")')
    tries = f'if [ "$1" = US-001 ] && [ "$3" -lt 3 ]; then exit 1; fi\n{right}'
    project = SeedProject(tmp_path, {"ralph/tasks.json": tasks(2)}, tries)
    assert project.run("--skip-review").code == 0
    assert project.ralph("archive").code == 0
    (summary,) = project.root.glob("ralph-archive/*/summary.md")
    text = summary.read_text()
    assert "- Attempts: 4 total, up to 3 for one story" in text
    rows = [line for line in text.splitlines() if line.startswith("| US-")]
    assert [row.split(" | ")[-1] for row in rows] == ["3 |", "1 |"]
    project.write("ralph/tasks.json", tasks(1))  # the next plan of the same folder begins again
    assert project.ralph("archive", "--label", "again").code == 0
    (again,) = project.root.glob("ralph-archive/*again/summary.md")
    assert "Attempts:" not in again.read_text()
