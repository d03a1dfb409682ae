"""Steps `prd.json`: a liberal reader that keeps each file's own spelling."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ralph.core.changes import AddStory, SetFields
from ralph.core.errors import PlanError
from ralph.core.plan import Plan, State, Story
from ralph.core.ports import ProjectFacts
from ralph.core.select import next_story
from ralph.plans import steps_json

TABS = Path(__file__).parent / "samples" / "steps-tabs.json"


def read(*tasks: dict[str, Any], **top: Any) -> Plan:
    full = [{"id": str(number), "title": "t", "status": "todo"} | task for number, task in enumerate(tasks, 1)]
    return steps_json.parse(json.dumps({**top, "tasks": full}).encode(), "prd.json")


def test_numbers_nulls_and_other_spellings_are_read() -> None:
    plan = steps_json.parse(TABS.read_bytes(), "f")
    assert plan.name == "server"
    first, second = plan.stories
    assert (first.id, first.title, first.state, first.criteria) == ("1", "Café lookup", State.DONE, ())
    assert (second.state, second.depends_on) == (State.IN_PROGRESS, ("1",))
    assert second.criteria == ("GET /geo answers 200",)


@pytest.mark.parametrize("key", ["acceptanceCriteria", "acceptance_criteria", "criteria"])
def test_each_spelling_of_criteria(key: str) -> None:
    assert read({key: ["a"]}).stories[0].criteria == ("a",)


@pytest.mark.parametrize("key", ["dependsOn", "depends_on", "dependencies"])
def test_each_spelling_of_dependencies(key: str) -> None:
    assert read({}, {key: ["1"]}).stories[1].depends_on == ("1",)


@pytest.mark.parametrize("key", ["project", "name", "feature"])
def test_the_plan_has_a_name(key: str) -> None:
    assert read({}, **{key: "server"}).name == "server"
    assert read({}).name == ""


def test_two_spellings_at_once_are_refused() -> None:
    with pytest.raises(PlanError, match="criteria and criteria are two spellings"):
        read({"acceptance_criteria": ["a"], "criteria": ["b"]})


def test_a_number_and_a_text_can_be_the_same_id() -> None:
    with pytest.raises(PlanError, match="duplicate story ID"):
        read({"id": 7}, {"id": "7"})


@pytest.mark.parametrize("status", [state.value for state in State])
def test_the_states(status: str) -> None:
    if status == "blocked":
        with pytest.raises(PlanError, match="status"):
            read({"status": status})
    else:
        assert read({"status": status}).stories[0].state == status


def test_tasks_without_priority_go_by_their_place() -> None:
    plan = read({"priority": 9}, {}, {"priority": None}, {"priority": 2})
    assert [story.priority for story in plan.stories] == [9, 2, 3, 2]
    following = next_story(plan)
    assert following is plan.stories[1]


def test_a_new_task_gets_a_priority_only_where_it_means_something() -> None:
    source = b'{"tasks": [{"id": "a", "title": "", "status": "todo"}, {"id": "b", "title": "", "status": "todo"}]}'
    last = steps_json.edit(source, [AddStory(Story(id="c", title="", priority=2))])
    assert b"priority" not in last
    urgent = steps_json.edit(source, [AddStory(Story(id="c", title="", priority=1))])
    assert b'"priority": 1' in urgent


def test_attempts_and_failure_are_kept_in_the_file() -> None:
    source = TABS.read_bytes()
    failed = SetFields("2", {"state": State.FAILED, "attempts": 3})
    story = steps_json.parse(steps_json.edit(source, [failed]), "f").stories[1]
    assert (story.state, story.attempts) == (State.FAILED, 3)


def test_the_plan_is_found_in_its_one_place(tmp_path: Path) -> None:
    (tmp_path / ".ralph").mkdir()
    (tmp_path / ".ralph" / "prd.json").touch()
    [ref] = steps_json.detect(tmp_path)
    assert ref == steps_json.refer(tmp_path, "") == steps_json.refer(tmp_path, "myproject")
    where = steps_json.locations(ref)
    assert where.learnings == tmp_path / ".ralph/learnings.md"
    assert where.prompt == tmp_path / ".ralph/prompts/LOOP_PROMPT.md"
    assert where.progress is None


def test_a_fresh_project_has_a_pipeline(tmp_path: Path) -> None:
    files = steps_json.scaffold(steps_json.refer(tmp_path, ""), ProjectFacts(name="server", date="2026-01-31"))
    assert sorted(files) == [
        ".ralph/configs/default.json",
        ".ralph/learnings.md",
        ".ralph/prd.json",
        ".ralph/requirements.md",
    ]
    steps = json.loads(files[".ralph/configs/default.json"])["steps"]
    assert [(step["name"], step["type"]) for step in steps] == [
        ("setup", "agent"),
        ("run-claude", "agent"),
        ("git-commit", "git-commit"),
    ]
    assert steps[0]["config"]["marker_file"] == ".ralph/.setup_done"
