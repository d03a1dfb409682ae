"""`ralph config paths`: every location, in and outside of a workspace."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ralph.core.exit_codes import ExitCode
from ralph.core.ports import PlanRef
from ralph.plans.registry import LAYOUTS
from ralph.state.places import plan_state, workspace_state
from support.cli import ralph_here
from support.workspaces import workspace


@pytest.fixture(params=LAYOUTS.built_in())
def ref(request: pytest.FixtureRequest, tmp_path: Path) -> PlanRef:
    return workspace(tmp_path / "w", request.param)


def test_the_users_own_places_are_known_everywhere(tmp_path: Path) -> None:
    found = ralph_here("paths", "--json", cwd=tmp_path).json
    assert found == {
        "user_config": str(Path(os.environ["HOME"], ".ralph", "config.yaml")),
        "state_home": os.environ["RALPH_STATE_HOME"],
        "error_logs": str(Path(os.environ["RALPH_STATE_HOME"], "logs")),
    }


def test_a_workspace_has_places_in_it_and_in_the_state_folder(ref: PlanRef) -> None:
    found = ralph_here("paths", "--json", cwd=ref.root).json
    state = workspace_state(ref.root, os.environ)
    assert found["workspace"] == str(ref.root)
    assert found["project_config"] == str(ref.root / ".ralph" / "config.yaml")
    assert found["plan"] == str(ref.path)
    assert found["plan_state"] == str(plan_state(ref, os.environ))
    assert (found["state"], found["runs"], found["trust"]) == (
        str(state),
        str(state / "runs"),
        str(state / "trust.json"),
    )
    assert "archive" in found
    assert None not in found.values()


def test_what_is_not_there_yet_says_so(ref: PlanRef) -> None:
    done = ralph_here("paths", cwd=ref.root)
    assert (done.code, done.err) == (0, "")
    lines = dict(line.split("  ", 1) for line in done.out.splitlines())
    assert lines["plan"].strip() == str(ref.path)
    assert lines["user config"].endswith("config.yaml  (does not exist yet)")


def test_a_folder_further_down_is_in_the_workspace(ref: PlanRef) -> None:
    (ref.root / "src" / "deep").mkdir(parents=True)
    here = ralph_here("paths", "--json", cwd=ref.root / "src" / "deep")
    assert here.json == ralph_here("paths", "--json", cwd=ref.root).json
    assert here.json == ralph_here("paths", "--json", "-d", ref.root, cwd=ref.root.parent).json


def test_of_several_plans_none_is_shown_until_one_is_named(tmp_path: Path) -> None:
    one, other = workspace(tmp_path, "spec.md"), workspace(tmp_path, "plan.md")
    done = ralph_here("paths", "--json", cwd=tmp_path)
    assert done.code == 0
    assert "plan" not in done.json
    assert "no plan: there are 2 plans" in done.err
    assert ralph_here("paths", "--json", "--layout", "spec.md", cwd=tmp_path).json["plan"] == str(one.path)
    assert ralph_here("paths", "--json", "--prd", "1", cwd=tmp_path).json["plan"] == str(other.path)


def test_broken_settings_do_not_hide_the_rest(ref: PlanRef) -> None:
    config = ref.root / ".ralph" / "config.yaml"
    config.parent.mkdir(exist_ok=True)
    config.write_text("nonsense: 1\n")
    done = ralph_here("paths", "--json", cwd=ref.root)
    assert (done.code, done.json["project_config"]) == (0, str(config))
    assert f"no plan: {config}:1" in done.err


def test_a_broken_plan_has_a_place_too(ref: PlanRef) -> None:
    ref.path.write_bytes(b"\0")
    assert ralph_here("paths", "--json", cwd=ref.root).json["plan"] == str(ref.path)


def test_a_folder_that_is_none_is_told(tmp_path: Path) -> None:
    done = ralph_here("paths", "-d", "nope", cwd=tmp_path)
    assert (done.code, done.out) == (ExitCode.USAGE, "")
