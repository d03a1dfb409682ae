"""Everything that would stop a run is told at once, each with what to do."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from support.cli import ralph
from support.workspaces import write_first_story

pytestmark = pytest.mark.usefixtures("git_identity")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    root = tmp_path / "repo"
    root.mkdir()
    subprocess.run(["git", "init", "-q", "-b", "main"], cwd=root, check=True)
    assert ralph("init", "--layout", "tasks.json", "work", cwd=root).code == 0
    write_first_story(root)
    return root


def settle(root: Path, text: str) -> None:
    (root / ".ralph").mkdir(exist_ok=True)
    (root / ".ralph/config.yaml").write_text(text)
    for words in (["add", "-A"], ["commit", "-qm", "x"]):
        subprocess.run(["git", *words], cwd=root, check=True)


def levels(root: Path, *flags: str, **env: str) -> dict[str, list[str]]:
    done = ralph("preflight", "--json", *flags, cwd=root, env={"PATH": "/usr/bin:/bin"} | env)
    found: dict[str, list[str]] = {}
    for line in json.loads(done.out)["findings"]:
        found.setdefault(line["topic"], []).append(line["level"])
        assert line["level"] == "ok" or line["fix"], line
    assert done.code == (78 if any("fail" in each for each in found.values()) else 0)
    return found


def test_all_that_is_wrong_is_told_at_once(workspace: Path) -> None:
    settle(workspace, 'checks: [{name: no, command: "false"}]\nprompt: nowhere.md\nreviewers: [beauty]\n')
    (workspace / "dirty.txt").write_text("mine")
    found = levels(workspace, "--checks")
    assert {topic for topic, each in found.items() if "fail" in each} == {
        *("trust", "agent", "prompts", "repository", "checks"),
    }
    assert found["prompts"] == ["fail", "fail"]
    assert found["login"] == ["warn"]
    assert (workspace / "dirty.txt").read_text() == "mine"


def test_what_the_agent_may_do_is_told(workspace: Path) -> None:
    settle(workspace, "web: deny\nallow_paths: [~/data]\n")
    [line] = [line for line in ralph("preflight", cwd=workspace).out.splitlines() if " may: " in line]
    assert "read all, edit inside the project and in ~/data, run commands the guard allows; may not: push" in line
    assert line.endswith("use the web tools")


def test_a_workspace_that_is_ready_has_nothing_to_fix(workspace: Path) -> None:
    (workspace / "script.yaml").write_text("stories: {'*': [[{claim: done}]]}\n")
    settle(workspace, 'agent: {name: scripted, script: script.yaml}\nchecks: [{name: yes, command: "true"}]\n')
    found = levels(workspace, "--checks", RALPH_TRUST="1")
    assert not any("fail" in each for each in found.values()), found


def test_credentials_are_looked_for_and_never_shown(workspace: Path) -> None:
    settle(workspace, "{}\n")
    assert levels(workspace, ANTHROPIC_API_KEY="sk-secret")["login"] == ["ok"]
    done = ralph("preflight", cwd=workspace, env={"ANTHROPIC_API_KEY": "sk-secret"})
    assert "sk-secret" not in done.out + done.err


def test_a_run_that_cannot_start_tells_of_everything_else_too(workspace: Path) -> None:
    settle(workspace, "reviewers: [beauty]\n")
    (workspace / "dirty.txt").write_text("mine")
    done = ralph("run", cwd=workspace, env={"PATH": "/usr/bin:/bin", "RALPH_TRUST": "1"})
    assert done.code == 78
    for words in ("Claude Code is not installed", "unknown reviewer 'beauty'", "uncommitted changes"):
        assert done.err.count(words) == 1, done.err


def test_a_plan_that_cannot_be_read_and_wrong_settings_keep_nobody_from_looking_at_the_rest(workspace: Path) -> None:
    settle(workspace, "fallback: [codex]\nbudget: {prices: none.yaml}\nnotify: {webhook: 'ftp://x'}\n")
    (plan,) = workspace.glob(".ralph/*/tasks.json")
    plan.write_text("{}")
    found = levels(workspace, RALPH_TRUST="1")
    assert found["settings"] == ["fail", "fail", "warn"]
    assert "fail" in found["plan"]
    assert {"agent", "repository", "disk", "checks"} <= set(found)


def test_a_run_that_is_not_trusted_tells_of_everything_else_too(workspace: Path) -> None:
    settle(workspace, "checks: [{name: no, command: 'false'}]\nprompt: nowhere.md\n")
    done = ralph("run", cwd=workspace, env={"PATH": "/usr/bin:/bin"})
    assert done.code == 78
    assert "are not trusted yet" in done.err
    assert "prompts: the prompt file nowhere.md does not exist" in done.err
    assert "trust: " not in done.err, "that is what it says first"
