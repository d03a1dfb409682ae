"""`tasks.json`: where it is, how its fields map, what it cannot say."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from ralph.core.changes import SetFields
from ralph.core.errors import IllegalChange, UsageError
from ralph.core.plan import State
from ralph.core.ports import ProjectFacts
from ralph.core.review import NO_REVIEW, Review, ReviewStatus
from ralph.plans import tasks_json
from ralph.plans.lint import Places, lint
from support.plans import sample

PRETTIER = Path(__file__).parent / "samples" / "tasks-prettier.json"
FACTS = ProjectFacts(name="shop", date="2026-01-31T09:30:00Z")


def test_all_fields_are_read() -> None:
    plan = tasks_json.parse(PRETTIER.read_bytes(), "f")
    assert (plan.name, plan.branch, plan.description) == ("Shop", "ralph/basket", "A basket that survives a reload.")
    assert plan.verify == ("npm test", "npm run lint")
    assert plan.reviewed
    assert plan.extra == {"owner": {"name": "Zoë", "team": "front end"}}
    first, second = plan.stories
    assert first.state is State.DONE
    assert first.review == Review(ReviewStatus.APPROVED, 2, "")
    assert first.notes == "basket.ts writes on every change."
    assert first.criteria == ("A reload shows the same items", "An empty basket stays empty")
    assert first.extra == {}
    assert second.state is State.TODO
    assert second.review.status is ReviewStatus.CHANGES_REQUESTED
    assert second.review.feedback.startswith("The badge shows 0")
    assert second.depends_on == ("US-001",)
    assert (second.description, second.notes) == ("", "")
    assert second.extra == {"labels": ["ui"]}


def test_a_story_that_passes_without_notes_can_be_read_and_is_warned_about() -> None:
    source = sample("tasks.json", 2).replace(b"The exporter does it.", b" ")
    plan = tasks_json.parse(source, "f")
    assert plan.stories[0].is_done
    assert "missing-notes" in [problem.code for problem in lint(plan, Places(plan, source, "f"), has_checks=True)]
    source = sample("tasks.json", 1).replace(b"The exporter does it.", b"")
    done = tasks_json.edit(source, [SetFields("US-001", {"state": State.DONE, "notes": "It exports."})])
    assert tasks_json.parse(done, "f").stories[0].is_done


def test_state_and_review_are_written_independently() -> None:
    source = sample("tasks.json", 2)
    review = Review(ReviewStatus.NEEDS_REVIEW, 1, "look at the header")
    story = tasks_json.parse(tasks_json.edit(source, [SetFields("US-002", {"review": review})]), "f").stories[1]
    assert (story.state, story.review) == (State.TODO, review)
    reopened = SetFields("US-001", {"state": State.TODO, "review": NO_REVIEW})
    story = tasks_json.parse(tasks_json.edit(source, [reopened]), "f").stories[0]
    assert (story.state, story.review) == (State.TODO, NO_REVIEW)


def test_what_the_review_rules_forbid_can_still_be_read() -> None:
    """They are rules of the loop; a person may skip reviews."""
    source = sample("tasks.json", 2).replace(b'"approved"', b"null")
    assert tasks_json.parse(source, "f").stories[0].is_done


def test_attempts_have_no_place() -> None:
    with pytest.raises(IllegalChange, match="attempts"):
        tasks_json.edit(sample("tasks.json", 1), [SetFields("US-001", {"attempts": 1})])


def test_a_command_may_stand_alone() -> None:
    source = sample("tasks.json", 1).replace(b'"priority"', b'"verify": "make a", "priority"')
    assert tasks_json.parse(source, "f").stories[0].verify == ("make a",)


def test_both_places_are_found(tmp_path: Path) -> None:
    for folder in ("ralph", ".ralph/login", ".ralph/archive/2026", ".ralph/PRD-1", ".ralph/prompts", ".ralph/a b"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "tasks.json").touch()
    (tmp_path / ".ralph" / "empty").mkdir()
    own, login = tasks_json.detect(tmp_path)
    assert (own.name, own.path) == ("ralph", tmp_path / "ralph/tasks.json")
    assert (login.name, login.path) == ("login", tmp_path / ".ralph/login/tasks.json")
    assert tasks_json.refer(tmp_path, "") == own
    assert tasks_json.refer(tmp_path, "login") == login


def test_a_pipe_in_place_of_the_plan_is_found_without_opening_it(tmp_path: Path) -> None:
    (tmp_path / "ralph").mkdir()
    os.mkfifo(tmp_path / "ralph" / "tasks.json")
    assert len(tasks_json.detect(tmp_path)) == 1


def test_a_file_called_ralph_is_no_plan(tmp_path: Path) -> None:
    (tmp_path / "ralph").touch()
    (tmp_path / ".ralph").touch()
    assert tasks_json.detect(tmp_path) == []


@pytest.mark.parametrize("name", ["archive", "Archive", "configs", "PRD-1", "prd-12", "worktrees"])
def test_names_with_another_meaning_are_refused(name: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is reserved"):
        tasks_json.refer(tmp_path, name)


def test_each_place_has_its_archive(tmp_path: Path) -> None:
    own = tasks_json.locations(tasks_json.refer(tmp_path, ""))
    assert own.archive == tmp_path / "ralph-archive"
    assert own.progress == tmp_path / "ralph/progress.txt"
    assert own.requirements == tmp_path / "ralph/prd.md"
    assert own.prompt == tmp_path / "ralph/prompt.md"
    feature = tasks_json.locations(tasks_json.refer(tmp_path, "login"))
    assert feature.archive == tmp_path / ".ralph/archive"
    assert feature.progress == tmp_path / ".ralph/login/progress.txt"


def test_a_fresh_plan_has_all_fields_and_a_progress_log(tmp_path: Path) -> None:
    files = tasks_json.scaffold(tasks_json.refer(tmp_path, ""), FACTS)
    document = json.loads(files["ralph/tasks.json"])
    assert document["branchName"] == "ralph/shop"
    assert list(document["userStories"][0]) == [
        "id",
        "title",
        "description",
        "acceptanceCriteria",
        "priority",
        "passes",
        "reviewStatus",
        "reviewCount",
        "reviewFeedback",
        "notes",
        "dependsOn",
    ]
    lines = files["ralph/progress.txt"].splitlines()
    assert lines[:3] == ["# Ralph Progress Log", "Started: 2026-01-31T09:30:00Z", "PRD: shop"]
    assert "## Codebase Patterns" in lines
    assert lines[-1] == "---"
