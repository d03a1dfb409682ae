"""Agents in the settings and on the command line: a misspelt one is refused, and every command names the same ones."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from support.cli import Completed, ralph_here
from support.workspaces import write_first_story

pytestmark = pytest.mark.usefixtures("git_identity")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """With clients that cannot do anything, and are not logged in."""
    root, programs = tmp_path / "repo", tmp_path / "bin"
    for folder in (root, programs):
        folder.mkdir()
    subprocess.run(["git", "init", "-q", "-b", "main"], cwd=root, check=True)
    assert ralph_here("init", "--layout", "tasks.json", "work", cwd=root, env={"PATH": "/usr/bin:/bin"}).code == 0
    write_first_story(root)
    for name in ("claude", "codex", "gemini"):
        (programs / name).write_text("#!/bin/sh\nexit 1\n")
        (programs / name).chmod(0o755)
    return root


def settle(root: Path, text: str) -> None:
    (root / ".ralph/config.yaml").write_text(text)
    subprocess.run(["git", "add", "-A"], cwd=root, check=True)
    subprocess.run(["git", "commit", "-qm", "x"], cwd=root, check=True)


def ask(root: Path, *words: str, **env: str) -> Completed:
    path = {"PATH": f"{root.parent / 'bin'}:/usr/bin:/bin"}
    return ralph_here(*words, cwd=root, env=path | env)


def command_of(done: Completed) -> str:
    return next(line for line in done.out.splitlines() if line.startswith("command "))


def test_the_example_of_the_readme_works_in_every_command(root: Path) -> None:
    settle(root, "fallback: [codex, gemini/gemini-2.5-flash]\nreview: {enabled: true, agent: other}\n")
    assert ask(root, "check").code == 0
    assert ask(root, "run", "--dry-run").code == 0
    found = ask(root, "explain", "route", "--json").json
    assert [(each["agent"], each["model"]) for each in found["lineup"]] == [
        *(("claude", ""), ("codex", ""), ("gemini", "gemini-2.5-flash")),
    ]
    assert [each["agent"] for each in found["reviewers"]] == ["codex"]
    preflight = ask(root, "doctor", "preflight", RALPH_TRUST="1").out
    assert "fallback codex: " in preflight
    assert "fallback gemini: " in preflight


def test_a_dry_run_shows_the_command_of_the_agent_that_routing_chooses(root: Path) -> None:
    settle(root, "routing: {enabled: true, simple: codex/gpt-5-mini}\nreview: {agent: other}\n")
    command = command_of(ask(root, "run", "--dry-run"))
    assert "bin/codex exec " in command
    assert "--model gpt-5-mini" in command
    assert ask(root, "explain", "route", "--json").json["reviewers"][0]["agent"] == "claude"


def test_routing_without_models_hands_no_model_of_claude_to_another_agent(root: Path) -> None:
    settle(root, "agent: {name: codex}\nrouting: {enabled: true}\n")
    assert "--model" not in command_of(ask(root, "run", "--dry-run"))
    assert "haiku" not in ask(root, "explain", "route").out
    settle(root, "agent: {name: codex}\n")
    assert "haiku" not in ask(root, "explain", "route").out


@pytest.mark.parametrize(
    ("choice", "meant"),
    [("cdoex", "codex"), ("cdoex/gpt-5", "codex/gpt-5"), ("codex/", "codex"), ("/gpt", "gpt"), ("gemni", "gemini")],
)
def test_a_misspelt_choice_is_refused_with_what_was_meant(root: Path, choice: str, meant: str) -> None:
    file = root / ".ralph/config.yaml"
    settle(root, f"fallback: [{choice}]\n")
    for command in (("check",), ("run", "--dry-run"), ("run",)):
        done = ask(root, *command)
        assert (done.code, "(fallback)" in done.out + done.err) == (65, True), done.err
        assert f"did you mean {meant}?" in done.out + done.err
    settle(root, f"routing: {{enabled: true, complex: {choice}}}\n")
    assert f"{file}:1 (routing.complex): " in ask(root, "run", "--dry-run").err
    settle(root, "")
    done = ask(root, "run", "--fallback", choice)
    assert (done.code, f"did you mean {meant}?" in done.err) == (64, True)


@pytest.mark.parametrize(
    "model", ["sonnet", "qwen3", "gemini-2.5-pro", "gpt-5-codex", "mini", "openai/gpt-5", "google/x"]
)
def test_a_word_that_is_no_agent_stays_a_model(root: Path, model: str) -> None:
    settle(root, f"fallback: [{model}]\n")
    assert ask(root, "check").code == 0
    assert ask(root, "explain", "route", "--json").json["lineup"][1]["model"] == model


def test_a_reviewer_with_an_unknown_agent_is_refused_with_its_place(root: Path) -> None:
    settle(root, "review: {enabled: true, reviewers: [x@nonsense]}\n")
    for command in (("check",), ("run", "--dry-run")):
        done = ask(root, *command)
        text = done.out + done.err
        assert done.code == 65, text
        assert "config.yaml:1 (review.reviewers): " in text
        assert "reviewer 'x@nonsense': unknown agent 'nonsense'" in text


def test_check_and_route_agree_on_reviewers(root: Path) -> None:
    settle(root, "review: {enabled: true, agent: other}\n")
    done = ask(root, "check")
    assert (done.code, "claude is the only agent of this run" in done.out) == (65, True)
    assert "claude is the only agent of this run" in ask(root, "explain", "route").err
    settle(root, "review: {enabled: true, reviewers: [beauty]}\n")
    done = ask(root, "check")
    assert (done.code, "unknown reviewer 'beauty'" in done.out) == (65, True)
    assert "unknown reviewer 'beauty'" in ask(root, "run", "--dry-run").err
    settle(root, "review: {enabled: true, reviewers: [security@codex, quality]}\n")
    assert ask(root, "check").code == 0
    assert "reviews    security@codex: codex, its own model" in ask(root, "explain", "route").out


def test_a_dry_run_without_the_agents_program_ends_with_how_to_install_it(root: Path) -> None:
    done = ralph_here("run", "--dry-run", "--agent", "codex", cwd=root, env={"PATH": "/usr/bin:/bin"})
    assert (done.code, "npm install -g @openai/codex" in done.err) == (78, True)
    assert "--- prompt " in done.out


def test_a_dry_run_shows_no_folder_that_does_not_exist(root: Path) -> None:
    for name in ("aider", "copilot", "droid", "pi"):
        program = root.parent / "bin" / name
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
        command = command_of(ask(root, "run", "--dry-run", "--agent", name))
        assert "/nonexistent" not in command
        assert "…/" in command


def test_a_run_warns_once_of_agents_that_are_not_logged_in(root: Path) -> None:
    settle(root, "agent: {name: codex}\nfallback: [gemini]\nreview: {enabled: false}\n")
    done = ask(root, "run", "--plain", "--trust", "--no-sandbox", "--once", "--no-archive")
    for title in ("Codex CLI", "Gemini CLI"):
        assert done.err.count(f"{title} does not appear to be logged in: ") == 1, done.err
    done = ask(root, "run", "--plain", "--trust", "--no-sandbox", "--once", CODEX_API_KEY="x", GEMINI_API_KEY="x")
    assert "does not appear to be logged in" not in done.err


def test_a_misspelt_agent_is_reported_once(root: Path) -> None:
    settle(root, "agent: {name: cdoex}\n")
    assert ask(root, "doctor", "preflight").out.count("unknown agent 'cdoex'") == 1


@pytest.mark.parametrize("key", ["agent.name", "review.agent", "planning.agent"])
def test_config_set_refuses_an_unknown_agent(root: Path, key: str) -> None:
    before = (root / ".ralph/config.yaml").read_bytes()
    done = ask(root, "config", "set", key, "cdoex")
    assert (done.code, "did you mean codex?" in done.err) == (64, True)
    assert (root / ".ralph/config.yaml").read_bytes() == before
    assert ask(root, "config", "set", key, "codex").code == 0
    assert ask(root, "config", "set", "review.agent", "other").code == 0


def test_init_writes_the_agent_it_is_given(root: Path) -> None:
    (root / ".ralph/config.yaml").unlink()
    done = ask(root, "init", "--no-input", "--agent", "cdoex", "second")
    assert (done.code, "did you mean codex?" in done.err) == (64, True)
    done = ask(root, "init", "--no-input", "--agent", "codex", "second")
    assert "agent: codex (--agent)" in done.err
    assert ask(root, "config", "get", "agent.name").out == "codex\n"
    assert "agent: " not in ask(root, "init", "--no-input", "third").err, "the settings name it"


@pytest.mark.parametrize(
    ("env", "words"),
    [
        ({}, "agent: claude (installed; no client appears to be logged in)"),
        ({"GEMINI_API_KEY": "x"}, "agent: gemini (installed and logged in)"),
        ({"ANTHROPIC_API_KEY": "x", "GEMINI_API_KEY": "x"}, "agent: claude (installed and logged in)"),
        ({"PATH": "/usr/bin:/bin"}, "agent: claude (the default; no client is installed)"),
    ],
)
def test_init_prefers_a_client_that_is_installed_and_logged_in(root: Path, env: dict[str, str], words: str) -> None:
    (root / ".ralph/config.yaml").unlink()
    done = ask(root, "init", "--no-input", "second", **env)
    assert words in done.err, done.err
    assert ask(root, "config", "get", "agent.name").out.strip() == words.split()[1]
