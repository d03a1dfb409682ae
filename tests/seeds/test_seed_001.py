"""What seed 001 (`ralph/tasks.json`, reviews, Stop hook, context monitor) promises, starting from its own text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.seed_projects import SeedProject

# "Tasks Template" of the seed, with a title, a criterion and a check of the plan's own.
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
    stories = [STORY | {"id": f"US-{number:03}", "priority": number} for number in range(1, count + 1)]
    plan = {"project": "shop", "branchName": "main", "description": "", "verifyCommands": ["test -d src"]}
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
