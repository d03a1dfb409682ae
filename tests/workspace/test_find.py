"""Finding the workspace and the plan that is meant."""

from __future__ import annotations

import os
from argparse import Namespace
from pathlib import Path

import pytest

from ralph.core.errors import RalphError, SetupError, UsageError
from ralph.plans.registry import LAYOUTS, layout
from ralph.state.places import plan_state
from ralph.workspace.find import Choice, choose_plan, find_plans, find_root, open_plan, root_of
from support.plans import plan_name, sample

ENV = {"HOME": "/nonexistent"}


def put(root: Path, name: str, called: str | None = None, stories: int = 3) -> Path:
    ref = layout(name).refer(root, plan_name(name) if called is None else called)
    ref.path.parent.mkdir(parents=True, exist_ok=True)
    ref.path.write_bytes(sample(name, stories))
    return ref.path


def args(**given: str) -> Namespace:
    basic = {"project_dir": None, "layout": None, "feature": None, "prd": None, "ralph_dir": None}
    return Namespace(**(basic | given))


def test_the_workspace_is_found_from_any_folder_in_it(tmp_path: Path) -> None:
    put(tmp_path, "feature")
    deep = tmp_path / "src" / "a" / "b"
    deep.mkdir(parents=True)
    assert find_root(deep, ENV) == tmp_path
    assert find_root(tmp_path, ENV) == tmp_path


def test_the_home_folder_with_its_settings_is_no_workspace(tmp_path: Path) -> None:
    (tmp_path / ".ralph").mkdir()
    (tmp_path / ".ralph" / "config.yaml").write_text("")
    project = tmp_path / "project"
    project.mkdir()
    assert find_root(project, {"HOME": str(tmp_path)}) is None


def test_an_outer_workspace_is_not_taken_for_that_of_an_inner_repository(tmp_path: Path) -> None:
    put(tmp_path, "feature")
    inner = tmp_path / "vendor" / "lib"
    (inner / ".git").mkdir(parents=True)
    assert find_root(inner, ENV) is None


def test_a_repository_nested_in_its_workspace_finds_it(tmp_path: Path) -> None:
    put(tmp_path, "steps")
    repo = tmp_path / "myproject"
    (repo / ".git").mkdir(parents=True)
    (repo / "src").mkdir()
    assert find_root(repo / "src", ENV) == tmp_path


@pytest.mark.parametrize("name", LAYOUTS.built_in())
def test_a_plan_of_any_layout_is_found_by_itself(tmp_path: Path, name: str) -> None:
    path = put(tmp_path, name)
    ref = choose_plan(tmp_path, Choice())
    assert (ref.layout, ref.path) == (name, path)


def test_all_layouts_can_live_in_one_workspace_and_each_can_be_chosen(tmp_path: Path) -> None:
    paths = {name: put(tmp_path, name) for name in LAYOUTS.built_in()}
    with pytest.raises(UsageError, match=f"there are {len(paths)} plans") as caught:
        choose_plan(tmp_path, Choice())
    for path in paths.values():
        assert str(path.relative_to(tmp_path)) in caught.value.message
    for name, path in paths.items():
        assert choose_plan(tmp_path, Choice(layout=name)).path == path


def test_a_feature_is_chosen_by_name_and_by_the_branch_that_is_checked_out(tmp_path: Path) -> None:
    for feature in ("login", "search"):
        path = put(tmp_path, "feature", feature)
        path.write_text(path.read_text().replace('"branchName": "', f'"branchName": "feature/{feature}-'))
    assert choose_plan(tmp_path, Choice(feature="search")).name == "search"
    branches = {ref.name: open_plan_branch(tmp_path, ref.name) for ref in find_plans(tmp_path, Choice())}
    assert choose_plan(tmp_path, Choice(), branches["search"]).name == "search"
    with pytest.raises(UsageError, match="there are 2 plans"):
        choose_plan(tmp_path, Choice(), "main")


def open_plan_branch(root: Path, feature: str) -> str:
    return open_plan(args(project_dir=str(root), feature=feature), os.environ).plan.branch


@pytest.mark.parametrize("bad", ["../x", "/etc", "a/b", "x" * 300, "con", "a\nb"])
def test_names_of_features_and_prds_cannot_leave_the_folder(tmp_path: Path, bad: str) -> None:
    put(tmp_path, "feature")
    with pytest.raises(RalphError):
        find_plans(tmp_path, Choice(feature=bad))
    with pytest.raises(RalphError):
        find_plans(tmp_path, Choice(prd=bad))


def test_the_folder_of_tasks_json_can_be_chosen_inside_the_workspace_only(tmp_path: Path) -> None:
    other = tmp_path / "ws" / "planning"
    other.mkdir(parents=True)
    (other / "tasks.json").write_bytes(sample("tasks.json", 2))
    root = tmp_path / "ws"
    assert choose_plan(root, Choice(ralph_dir="planning")).path == other / "tasks.json"
    with pytest.raises(UsageError, match="outside the workspace"):
        choose_plan(root, Choice(ralph_dir="../elsewhere"))


def test_nothing_here_says_how_to_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SetupError, match=r"no \.ralph/ folder") as caught:
        root_of(args(), ENV)
    assert "ralph init" in caught.value.hint
    with pytest.raises(UsageError, match="not a folder"):
        root_of(args(project_dir=str(tmp_path / "nope")), ENV)


def test_plans_have_state_folders_of_their_own(tmp_path: Path) -> None:
    refs = [layout("feature").refer(tmp_path, name) for name in ("a", "b")]
    refs.append(layout("tasks.json").refer(tmp_path, "a"))
    folders = {plan_state(ref, {"RALPH_STATE_HOME": str(tmp_path / "state")}) for ref in refs}
    assert len(folders) == 3
