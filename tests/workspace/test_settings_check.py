"""A layout, an agent or a type of step that nobody knows is said with its place and the closest name."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.cli import ralph_here
from support.workspaces import workspace


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return workspace(tmp_path / "work", "plan.md").root


def configure(root: Path, text: str) -> Path:
    file = root / ".ralph" / "config.yaml"
    file.write_text(text)
    return file


@pytest.mark.parametrize("command", [("status",), ("task", "list"), ("trust", "--show"), ("run", "--dry-run")])
def test_a_wrong_layout_in_a_file_is_bad_data_with_its_line(root: Path, command: tuple[str, ...]) -> None:
    file = configure(root, "timeout: 5m\nlayout: plan\n")
    done = ralph_here(*command, cwd=root)
    assert done.code == 65
    assert f"{file}:2 (layout): unknown layout 'plan'" in done.err
    assert "did you mean plan.md?" in done.err


def test_a_wrong_layout_in_the_environment_names_the_variable(root: Path) -> None:
    done = ralph_here("status", cwd=root, env={"RALPH_LAYOUT": "plan"})
    assert done.code == 65
    assert "RALPH_LAYOUT (layout): unknown layout" in done.err


def test_a_wrong_layout_on_the_command_line_is_wrong_usage(root: Path) -> None:
    for command in ("status", "check"):
        done = ralph_here(command, "--layout", "plan", cwd=root)
        assert (done.code, "did you mean plan.md?" in done.err) == (64, True)


def test_check_tells_all_unknown_names_and_looks_at_the_plans_too(root: Path) -> None:
    configure(root, "layout: pla\nagent: {name: claud}\nsteps:\n  - {type: agnet}\n  - {type: nop, enabled: false}\n")
    done = ralph_here("check", "--json", cwd=root)
    assert done.code == 65
    found = [
        (p["where"]["line"], p["where"]["path"], p["hint"])
        for p in done.json["problems"]
        if p["code"] == "unknown-name"
    ]
    assert found == [
        (1, "layout", "did you mean plan.md?"),
        (2, "agent.name", "did you mean claude?"),
        (3, "steps[0].type", "did you mean agent?"),
    ]
    assert [Path(plan["plan"]).name for plan in done.json["plans"]] == ["plan.md"]
