"""What keeps an agent from stopping, asked in this process: the plan's schema, in every layout, and the policy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ralph.core.plan import Mode
from ralph.plans.registry import LAYOUTS
from ralph.session.stop_rules import StopPolicy, problems_at_stop, read_policy
from support.cli import ralph_here
from support.workspaces import workspace

STORY: dict[str, Any] = {
    "id": "US-001",
    "title": "A title",
    "acceptanceCriteria": ["it works"],
    "priority": 1,
    "passes": False,
    "reviewStatus": None,
    "reviewCount": 0,
    "reviewFeedback": "",
    "notes": "",
}
PLAN: dict[str, Any] = {"project": "p", "branchName": "b", "description": "d", "userStories": [STORY]}


def problems(root: Path, plan: object, **policy: Any) -> list[str]:
    path = root / "ralph" / "tasks.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(plan if isinstance(plan, str) else json.dumps(plan))
    values = {"workspace": str(root), "layout": "tasks.json", "plan": str(path), "state": str(root / "state")}
    return problems_at_stop(msgspec.convert(values | {"mode": "implement", "review": True} | policy, StopPolicy))


def without(values: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name != key}


def test_a_sound_plan_lets_an_agent_stop(tmp_path: Path) -> None:
    assert problems(tmp_path, PLAN) == []


@pytest.mark.parametrize("key", PLAN)
def test_a_missing_key_of_the_plan_is_named(tmp_path: Path, key: str) -> None:
    [problem, *_] = problems(tmp_path, without(PLAN, key))
    assert key in problem


@pytest.mark.parametrize("key", [key for key in STORY if key != "notes"])
def test_a_missing_key_of_a_story_is_named(tmp_path: Path, key: str) -> None:
    [problem, *_] = problems(tmp_path, PLAN | {"userStories": [without(STORY, key)]})
    assert key in problem


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("id", 7),
        ("title", None),
        ("passes", "yes"),
        ("priority", "high"),
        ("acceptanceCriteria", []),
        ("acceptanceCriteria", "it works"),
        ("reviewStatus", "fine"),
        ("reviewCount", -1),
        ("reviewCount", 1.5),
        ("reviewFeedback", None),
    ],
)
def test_a_value_of_the_wrong_kind_is_named(tmp_path: Path, key: str, value: object) -> None:
    [problem, *_] = problems(tmp_path, PLAN | {"userStories": [STORY | {key: value}]})
    assert f"userStories[0].{key}" in problem or key in problem
    assert "tasks.json" in problem


def test_what_is_done_has_notes(tmp_path: Path) -> None:
    done = STORY | {"passes": True, "reviewStatus": "approved", "reviewCount": 1}
    [problem] = problems(tmp_path, PLAN | {"userStories": [done]})
    assert "notes is empty" in problem
    assert "describe in notes what was done" in problem


def test_an_id_is_there_once(tmp_path: Path) -> None:
    [problem, *_] = problems(tmp_path, PLAN | {"userStories": [STORY, STORY]})
    assert "US-001" in problem


def test_a_plan_that_is_a_link_to_elsewhere_is_not_read(tmp_path: Path) -> None:
    root = tmp_path / "work"
    (root / "ralph").mkdir(parents=True)
    (tmp_path / "secret").write_text("s3cret")
    (root / "ralph" / "tasks.json").symlink_to(tmp_path / "secret")
    values = StopPolicy(str(root), "tasks.json", str(root / "ralph" / "tasks.json"), str(root), Mode.IMPLEMENT)
    [problem] = problems_at_stop(values)
    assert "outside" in problem
    assert "s3cret" not in problem


@pytest.mark.parametrize("name", LAYOUTS.built_in())
def test_every_layout_is_understood(tmp_path: Path, name: str) -> None:
    ref = workspace(tmp_path, name)
    policy = StopPolicy(str(tmp_path), name, str(ref.path), str(tmp_path), Mode.IMPLEMENT, review=True)
    assert problems_at_stop(policy) == []
    ref.path.write_bytes(b"\xff\xfe\x00")
    assert problems_at_stop(policy)


def test_no_repository_no_word_about_commits(tmp_path: Path) -> None:
    assert problems(tmp_path, PLAN, require_commit=True) == []


def test_a_policy_that_is_not_there_asks_nothing(tmp_path: Path) -> None:
    assert read_policy({}) is None
    assert read_policy({"RALPH_POLICY": str(tmp_path / "none")}) is None
    (tmp_path / "broken").write_text('{"workspace": 1}')
    assert read_policy({"RALPH_POLICY": str(tmp_path / "broken")}) is None


def test_the_command_prints_one_list(tmp_path: Path) -> None:
    (tmp_path / "tasks.json").write_text("{")
    policy = {"workspace": str(tmp_path), "layout": "tasks.json", "plan": str(tmp_path / "tasks.json")}
    (tmp_path / "policy.json").write_text(json.dumps(policy | {"state": str(tmp_path), "mode": "review"}))
    done = ralph_here("hooks", "at-stop", cwd=tmp_path, env={"RALPH_POLICY": str(tmp_path / "policy.json")})
    assert done.code == 0
    [problem] = done.json
    assert "tasks.json" in problem
