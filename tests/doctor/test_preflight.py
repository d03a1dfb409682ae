"""Everything that would stop a run is told at once, each with what to do."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from support.cli import ralph, ralph_here
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
        *("trust", "agent", "prompts", "repository"),
    }
    assert found["checks"] == ["warn"], "not run: they are not trusted"
    assert levels(workspace, "--checks", RALPH_TRUST="1")["checks"] == ["fail"]
    assert found["prompts"] == ["fail", "fail"]
    assert found["login"] == ["warn"]
    assert (workspace / "dirty.txt").read_text() == "mine"


def test_an_unknown_variable_in_the_prompt_is_a_failure(workspace: Path) -> None:
    settle(workspace, "prompt: mine.md\n")
    (workspace / "mine.md").write_text("{{NONSENSE}}")
    assert levels(workspace)["prompts"] == ["fail"]
    assert "mine.md:1:3: unknown variable NONSENSE" in ralph("preflight", cwd=workspace).out
    (workspace / "mine.md").write_text("{{STORY}}")
    assert levels(workspace)["prompts"] == ["ok"]


def test_another_agent_can_be_named_as_for_a_run(workspace: Path) -> None:
    settle(workspace, "")
    assert levels(workspace)["agent"] == ["fail"]
    assert levels(workspace, "--agent", "command", "--agent-command", "true")["agent"] == ["ok"]
    done = ralph("doctor", "preflight", "--agent", "command", cwd=workspace)
    assert "the agent `command` has no command line" in done.out


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
    settle(workspace, "fallback: [cursor]\nbudget: {prices: none.yaml}\nnotify: {webhook: 'ftp://x'}\n")
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


@pytest.fixture
def hostile(workspace: Path) -> Path:
    """Everything the workspace names leaves a mark when it runs."""
    (workspace / "bin").mkdir()
    for name in ("evil.sh", "bin/claude", "bin/br", "bin/codex"):
        file = workspace / name
        file.write_text(f'#!/bin/sh\necho "$0 $*" >> {workspace.parent}/ran\necho 9.9.9\n')
        file.chmod(0o755)
    return workspace


ATTACKS = (
    "agent: {command: [./evil.sh]}\n",
    "agent: {name: command, command: [./evil.sh]}\n",
    "checks: [{name: test, command: ./evil.sh}]\n",
    "agent: {command: [./evil.sh]}\nproof: {setup: ./evil.sh}\nnotify: {command: [./evil.sh]}\n",
    "review: {enabled: true, agent: command, command: [./evil.sh]}\nplanning: {command: [./evil.sh]}\n",
)
LOOKS = (
    ("preflight",),
    ("preflight", "--checks"),
    ("run", "--plain"),
    ("run", "--dry-run"),
    ("doctor",),
    ("check",),
    ("exam", "--plain"),
    ("plan", "--no-input", "--feature", "more", "an idea"),
    ("add", "--no-input", "an idea"),
    ("notify", "test"),
    ("init", "--no-input", "other"),
)


@pytest.mark.parametrize("settings", ATTACKS)
def test_nothing_that_a_workspace_names_runs_before_it_is_trusted(hostile: Path, settings: str) -> None:
    settle(hostile, settings)
    for words in LOOKS:
        done = ralph_here(*words, cwd=hostile, env={"PATH": "/usr/bin:/bin"})
        ran = hostile.parent / "ran"
        assert not ran.exists(), (words, ran.read_text(), done.out + done.err)


def test_preflight_says_that_an_untrusted_agent_was_not_started(hostile: Path) -> None:
    settle(hostile, "agent: {command: [./evil.sh]}\nchecks: [{name: test, command: ./evil.sh}]\n")
    env = {"PATH": "/usr/bin:/bin"}
    done = ralph("preflight", "--checks", cwd=hostile, env=env)
    assert "evil.sh was not started: the commands of the workspace are not trusted" in done.out
    assert "the checks were not run: the commands of the workspace are not trusted" in done.out
    assert ralph("trust", "--yes", cwd=hostile, env=env).code == 0
    done = ralph("preflight", "--checks", cwd=hostile, env=env)
    assert "claude 9.9.9" in done.out
    assert len((hostile.parent / "ran").read_text().splitlines()) == 2


@pytest.mark.parametrize("folder", ["bin", "{root}/bin", ""])
def test_a_client_inside_the_workspace_is_not_taken_from_path(hostile: Path, folder: str) -> None:
    settle(hostile, "{}\n")
    if not folder:
        (hostile / "bin/claude").rename(hostile / "claude")
    path = f"{folder.format(root=hostile)}:/usr/bin:/bin"
    for words in (("doctor",), ("preflight",), ("run", "--plain")):
        done = ralph_here(*words, cwd=hostile, env={"PATH": path})
        assert "claude is on PATH only inside the workspace" in done.out + done.err, words
    assert not (hostile.parent / "ran").exists()


def test_the_set_up_of_the_checkout_needs_trust(workspace: Path) -> None:
    settle(workspace, "proof: {setup: ./install.sh}\n")
    done = ralph("run", "--plain", cwd=workspace, env={"PATH": "/usr/bin:/bin"})
    assert done.code == 78
    assert "+ proof.setup: ./install.sh" in done.err


def test_another_program_needs_both_settings_and_the_hints_say_so(workspace: Path) -> None:
    """Follow the hints from a machine without Claude Code to an agent that works."""
    env = {"PATH": "/usr/bin:/bin", "RALPH_TRUST": "1"}
    settle(workspace, "{}\n")
    done = ralph_here("preflight", cwd=workspace, env=env)
    assert "set agent.name to `command` and agent.command to its command line" in done.out
    (workspace / "js.sh").write_text("#!/bin/sh\nexit 1\n")
    (workspace / "js.sh").chmod(0o755)
    settle(workspace, "agent: {command: [./js.sh]}\n")
    done = ralph_here("preflight", cwd=workspace, env=env)
    assert "js.sh --version` exited with code 1" in done.out
    assert "also set agent.name to `command`" in done.out
    assert "reinstall" not in done.out
    settle(workspace, "agent: {name: command, command: [./js.sh]}\n")
    assert ralph_here("preflight", cwd=workspace, env=env).code == 0


def test_a_run_does_not_start_a_client_that_would_run_untrusted_hooks(workspace: Path, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/claude").write_text(f"#!/bin/sh\necho $* >> {tmp_path}/started\necho 2.1.325\n")
    (tmp_path / "bin/claude").chmod(0o755)
    (workspace / ".claude").mkdir()
    hooks = {"SessionStart": [{"hooks": [{"type": "command", "command": "./evil.sh"}]}]}
    (workspace / ".claude/settings.json").write_text(json.dumps({"hooks": hooks}))
    settle(workspace, "{}\n")
    env = {"PATH": f"{tmp_path}/bin:/usr/bin:/bin", "ANTHROPIC_API_KEY": "x"}
    for words in (("run", "--plain", "--once"), ("plan", "--no-input", "--feature", "more", "x")):
        done = ralph_here(*words, cwd=workspace, env=env)
        assert done.code == 78, words
        assert ".claude/settings.json:" in done.err
        assert "./evil.sh" in done.err
    assert not (tmp_path / "started").exists() or "-p" not in (tmp_path / "started").read_text().split()
