"""What an agent leaves in its home folder, at the next run: nothing is written or read through a link there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ralph.agents import claude
from ralph.sandbox.login import login as lend
from support.cli import ralph
from support.clients import Project

pytestmark = [pytest.mark.needs("bwrap"), pytest.mark.defaults]

LINKS = (".gitconfig", ".npmrc", ".claude", ".config", ".cargo", "tmp")


def with_agent(folder: Path, script: str) -> Project:
    agent = {"name": "command", "command": ["/bin/sh", "-c", script]}
    sandbox = {"network": "none", "files": ["~/.codex/auth.json"]}
    project = Project(folder, agent=agent, sandbox=sandbox)
    for name, text in {".codex/auth.json": "{}", ".npmrc": "x=y\n", ".gitconfig": "[user]\n\tname = Me\n"}.items():
        (project.home / name).parent.mkdir(exist_ok=True)
        (project.home / name).write_text(text)
    return project


def test_links_in_the_agents_home_lead_nowhere(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    for name in LINKS:
        (precious / name).parent.mkdir(parents=True, exist_ok=True)
        (precious / name).write_text(f"mine: {name}\n")
    (precious / "folder").mkdir()
    commands = [f"rm -rf ~/{name}; ln -s {precious / name} ~/{name}" for name in LINKS]
    commands += [f"rm -rf ~/{name}; ln -s {precious}/folder ~/{name}" for name in (".codex", ".local", ".cache")]
    first = with_agent(tmp_path / "p", "; ".join([*commands, "ls -la ~ > s1.txt"]))
    done = ralph("run", "-n", "1", "--plain", cwd=first.root, env=first.env)
    assert "everything inside its sandbox" in done.out, done.out + done.err
    [home] = first.state.glob("*/sandbox/agent-home")
    assert (home / ".gitconfig").is_symlink(), "the agent has planted them"
    done = ralph("run", "-n", "1", "--plain", cwd=first.root, env=first.env)
    assert "iteration" in done.out, done.out + done.err
    assert {name: (precious / name).read_text() for name in LINKS} == {name: f"mine: {name}\n" for name in LINKS}
    assert list((precious / "folder").iterdir()) == []


def test_a_login_is_not_taken_from_behind_a_link(tmp_path: Path) -> None:
    """The agent's `.claude` leads to a file that has the form of a login."""
    home, inside, other = (tmp_path / name for name in ("home", "inside", "other"))
    for folder in (home / ".claude", inside, other):
        folder.mkdir(parents=True)
    mine, theirs = ({"claudeAiOauth": {"accessToken": token}} for token in ("mine", "of somebody else"))
    (home / ".claude/.credentials.json").write_text(json.dumps(mine))
    (other / ".credentials.json").write_text(json.dumps(theirs))
    with lend(claude.LOGIN, home, inside, {}):
        (inside / ".claude").rename(inside / "old")
        (inside / ".claude").symlink_to(other)
    assert json.loads((home / ".claude/.credentials.json").read_text()) == mine
    with lend(claude.LOGIN, home, inside, {}):
        assert json.loads((inside / ".claude/.credentials.json").read_text()) == mine
    assert json.loads((other / ".credentials.json").read_text()) == theirs
