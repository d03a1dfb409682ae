from __future__ import annotations

from ralph.core.environment import NEVER_ASK, child_environment, secret_names

PARENT = {
    "PATH": "/bin",
    "HOME": "/home/me",
    "LC_ALL": "C",
    "CLAUDECODE": "1",
    "GIT_DIR": "/elsewhere",
    "GIT_INDEX_FILE": "x",
    "AWS_SECRET_ACCESS_KEY": "hush",
    "ANTHROPIC_API_KEY": "key",
    "ANTHROPIC_BASE_URL": "url",
    "RALPH_TRUST": "1",
    "RALPH_MODEL": "opus",
    "_RALPH_STATE": "/state",
    "MY_TOKEN": "t",
}


def test_only_what_is_allowed_reaches_a_child() -> None:
    assert child_environment(PARENT) == {"PATH": "/bin", "HOME": "/home/me", "LC_ALL": "C", **NEVER_ASK}


def test_what_is_asked_for_is_added_by_name_or_by_beginning() -> None:
    env = child_environment(PARENT, ["ANTHROPIC_*", "MY_TOKEN"])
    assert env["ANTHROPIC_API_KEY"] == "key"
    assert env["ANTHROPIC_BASE_URL"] == "url"
    assert env["MY_TOKEN"] == "t"
    assert "AWS_SECRET_ACCESS_KEY" not in env


def test_what_would_mislead_git_or_the_client_never_passes_even_when_asked_for() -> None:
    env = child_environment(PARENT, ["GIT_*", "GIT_DIR", "CLAUDECODE", "RALPH_TRUST"], {"RALPH_LOOP": "1"})
    assert not [name for name in env if name.startswith("GIT_") and name not in NEVER_ASK]
    assert "CLAUDECODE" not in env
    assert "RALPH_TRUST" not in env
    assert env["RALPH_LOOP"] == "1"


def test_everything_of_the_caller_but_what_would_mislead() -> None:
    env = child_environment(PARENT | {"RALPH_STATE_HOME": "/s", "GEMINI_CLI": "1"}, everything=True)
    assert set(env) - set(NEVER_ASK) == {
        *("PATH", "HOME", "LC_ALL", "AWS_SECRET_ACCESS_KEY", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "MY_TOKEN"),
        "RALPH_STATE_HOME",
    }


def test_programs_that_ask_a_person_are_told_not_to_unless_the_variable_is_named() -> None:
    caller = {"EDITOR": "vim", "GIT_EDITOR": "vim", "PAGER": "less"}
    env = child_environment(caller, ["PAGER"], everything=True)
    assert (env["EDITOR"], env["GIT_EDITOR"], env["GIT_TERMINAL_PROMPT"]) == ("true", "true", "0")
    assert env["PAGER"] == "less"


def test_secrets_are_known_by_name_or_by_a_password_in_an_address() -> None:
    env = {
        "OPENAI_API_KEY": "sk-1",
        "GH_TOKEN": "t",
        "DATABASE_URL": "postgres://app:hunter2@db/x",
        "PGPASSWORD": "",
        "PWD": "/home/me",
        "KEYBOARD": "us",
        "MAX_THINKING_TOKENS": "1",
        "HOMEPAGE": "https://example.test/a:b",
    }
    assert secret_names(env) == ["DATABASE_URL", "GH_TOKEN", "OPENAI_API_KEY"]
