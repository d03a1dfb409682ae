from __future__ import annotations

from ralph.core.environment import child_environment

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
    "MY_TOKEN": "t",
}


def test_only_what_is_allowed_reaches_a_child() -> None:
    assert child_environment(PARENT) == {"PATH": "/bin", "HOME": "/home/me", "LC_ALL": "C"}


def test_what_is_asked_for_is_added_by_name_or_by_beginning() -> None:
    env = child_environment(PARENT, ["ANTHROPIC_*", "MY_TOKEN"])
    assert env["ANTHROPIC_API_KEY"] == "key"
    assert env["ANTHROPIC_BASE_URL"] == "url"
    assert env["MY_TOKEN"] == "t"
    assert "AWS_SECRET_ACCESS_KEY" not in env


def test_what_would_mislead_git_or_the_client_never_passes_even_when_asked_for() -> None:
    env = child_environment(PARENT, ["GIT_*", "GIT_DIR", "CLAUDECODE", "RALPH_TRUST"], {"RALPH_LOOP": "1"})
    assert not [name for name in env if name.startswith("GIT_")]
    assert "CLAUDECODE" not in env
    assert "RALPH_TRUST" not in env
    assert env["RALPH_LOOP"] == "1"
