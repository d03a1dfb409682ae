"""A layout, an agent or a type of step that nobody knows is said with its place and the closest name."""

from __future__ import annotations

from pathlib import Path

import pytest

from ralph.config.layers import load
from ralph.workspace.settings_check import sandbox_misfits
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


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("sandbox: {allow_hosts: ['https://example.org/x']}", "'https://example.org/x' is not a host name"),
        ("sandbox: {allow_hosts: ['*']}", "'*' is every host"),
        ("sandbox: srt\nworkspace: clone", "the sandbox srt cannot work in a clone"),
        ("sandbox: {use: srt, network: open}", "srt cannot open the network"),
        ("sandbox: {network: open, allow_hosts: [pypi]}", "it has no effect: everything can be reached"),
        ("sandbox: {use: bwrap, image: debian}", "it has no effect with `sandbox: bwrap`"),
    ],
)
def test_settings_of_the_sandbox_that_make_no_sense_are_reported(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / ".ralph").mkdir()
    (tmp_path / ".ralph" / "config.yaml").write_text(text)
    [found] = sandbox_misfits(load(root=tmp_path, layout="", name=None, env={}, flags={}))
    assert found.message.startswith(problem)
    assert found.hint
    assert found.where.file.endswith("config.yaml")
    assert found.where.line


def test_a_guard_in_a_sandbox_is_fine(tmp_path: Path) -> None:
    (tmp_path / ".ralph").mkdir()
    (tmp_path / ".ralph" / "config.yaml").write_text(
        "permissions: guard\nsandbox: {allow_hosts: [npm, 'db.local:5432']}"
    )
    assert not list(sandbox_misfits(load(root=tmp_path, layout="", name=None, env={}, flags={})))
