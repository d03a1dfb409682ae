"""Steps that cannot do what they say are told before a run begins, each with its place."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.cli import Completed, ralph_here
from support.workspaces import workspace


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "work"
    workspace(root, "steps")
    (root / ".ralph" / "prompts").mkdir()
    (root / ".ralph" / "prompts" / "LOOP_PROMPT.md").write_text("Do the task.\n")
    return root


def step(root: Path, config: dict[str, Any], kind: str = "agent", **fields: Any) -> Path:
    file = root / ".ralph" / "configs" / "default.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps({"name": "default", "steps": [{"type": kind, "config": config} | fields]}, indent=1))
    return file


def found(done: Completed) -> list[tuple[str, str]]:
    return [(p["code"], p["where"]["path"]) for p in done.json["problems"] if p["where"]["path"].startswith("steps")]


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "a prompt that is not there": ({"prompt_file": ".ralph/prompts/LOPP.md"}, "missing-file"),
    "a prompt elsewhere": ({"prompt_file": "../../secret.md"}, "outside"),
    "another plan": ({"prd_file": ".ralph/other.json"}, "other-plan"),
    "a marker elsewhere": ({"marker_file": "../.bashrc"}, "outside"),
    "a marker that is the workspace": ({"marker_file": "."}, "outside"),
    "no length of time": ({"timeout": "soon"}, "wrong-type"),
}


@pytest.mark.parametrize(("config", "code"), WRONG.values(), ids=WRONG)
def test_what_cannot_be_done_is_an_error_with_its_place(config: dict[str, Any], code: str, root: Path) -> None:
    file = step(root, config)
    told = ralph_here("check", "--json", cwd=root)
    [key] = config
    assert (told.code, found(told)) == (65, [(code, f"steps[0].config.{key}")])
    for arguments in (("run", "--trust"), ("run", "--dry-run")):
        done = ralph_here(*arguments, cwd=root)
        assert done.code == 65
        assert f"{file}:3 (steps[0].config.{key})" in done.err


def test_a_command_without_a_command_is_an_error(root: Path) -> None:
    step(root, {"command": " "}, "command")
    assert found(ralph_here("check", "--json", cwd=root)) == [("missing", "steps[0].config.command")]


def test_a_key_that_a_step_does_not_know_is_a_warning_with_the_closest_one(root: Path) -> None:
    step(root, {"promt_file": "x.md"})
    told = ralph_here("check", "--json", cwd=root)
    assert (told.code, found(told)) == (0, [("unknown-key", "steps[0].config.promt_file")])
    done = ralph_here("run", "--dry-run", "--agent", "command", "--agent-command", "true", cwd=root)
    assert done.code == 0
    assert "did you mean" not in done.out
    assert "promt_file" in done.err


def test_what_is_off_or_set_up_or_of_somebody_else_is_left_alone(root: Path) -> None:
    step(root, {"prompt_file": "gone.md"}, enabled=False)
    assert found(ralph_here("check", "--json", cwd=root)) == []
    (root / ".ralph" / ".setup_done").touch()
    step(root, {"prompt_file": "gone.md", "marker_file": ".ralph/.setup_done"})
    assert found(ralph_here("check", "--json", cwd=root)) == []


def test_the_step_files_of_the_layout_fit(tmp_path: Path) -> None:
    assert ralph_here("init", "--layout", "steps", cwd=tmp_path).code == 0
    assert found(ralph_here("check", "--json", cwd=tmp_path)) == []
