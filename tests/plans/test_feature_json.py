"""Feature `prd.json`: one folder for each feature."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ralph.core.errors import PlanError, UsageError
from ralph.core.plan import State
from ralph.core.ports import ProjectFacts
from ralph.plans import feature_json
from support.plans import sample

MINIFIED = Path(__file__).parent / "samples" / "feature-minified.json"


def test_all_fields_are_read() -> None:
    plan = feature_json.parse(MINIFIED.read_bytes(), "f")
    assert (plan.name, plan.branch, plan.description) == ("login", "feature/login", "Users log in.")
    assert plan.extra == {"createdAt": "2025-06-15T10:30:00Z"}
    assert not plan.reviewed
    [story] = plan.stories
    assert (story.id, story.title, story.priority, story.state) == ("STORY-001", "Form", 1, State.TODO)


def test_a_story_may_pass_without_notes() -> None:
    source = sample("feature", 2).replace(b"The exporter does it.", b"")
    assert feature_json.parse(source, "f").stories[0].is_done


@pytest.mark.parametrize("date", ["2026-01-31", "2026-01-31T09:30:00+02:00", "2026-01-31T09:30:00.123Z"])
def test_any_iso_time_will_do(date: str) -> None:
    source = sample("feature", 1).replace(b"2026-01-31T09:30:00Z", date.encode())
    assert feature_json.parse(source, "f").extra["createdAt"] == date


@pytest.mark.parametrize("date", ["", "yesterday", "31.01.2026"])
def test_another_time_is_refused(date: str) -> None:
    with pytest.raises(PlanError, match="ISO 8601") as caught:
        feature_json.parse(sample("feature", 1).replace(b"2026-01-31T09:30:00Z", date.encode()), "f")
    assert caught.value.where is not None
    assert caught.value.where.path == "createdAt"


def test_features_are_found_and_other_folders_are_not(tmp_path: Path) -> None:
    for folder in ("login", "basket", "archive/2026-login", "configs", "PRD-1", ".hidden", "a b"):
        (tmp_path / ".ralph" / folder).mkdir(parents=True)
        (tmp_path / ".ralph" / folder / "prd.json").touch()
    (tmp_path / ".ralph" / "prd.json").touch()
    assert [ref.name for ref in feature_json.detect(tmp_path)] == ["basket", "login"]


def test_a_feature_needs_a_name(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        feature_json.refer(tmp_path, "")


def test_a_fresh_feature(tmp_path: Path) -> None:
    ref = feature_json.refer(tmp_path, "login")
    files = feature_json.scaffold(ref, ProjectFacts(name="shop", date="2026-01-31"))
    assert files[".ralph/login/progress.txt"] == "# Progress Log: login\n# Started: 2026-01-31\n"
    assert ".ralph/login/specs/.gitkeep" in files
    document = json.loads(files[".ralph/login/prd.json"])
    assert document["feature"] == "login"
    assert list(document["userStories"][0]) == [
        "id",
        "title",
        "description",
        "acceptanceCriteria",
        "priority",
        "passes",
        "notes",
    ]
    where = feature_json.locations(ref)
    assert where.archive == tmp_path / ".ralph/archive"
    assert where.specs == tmp_path / ".ralph/login/specs"
