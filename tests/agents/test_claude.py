from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from ralph.agents import claude
from ralph.core.environment import child_environment
from ralph.core.errors import SetupError
from ralph.core.ports import Session
from support.sessions import session_of

UNUSABLE = (
    "AskUserQuestion,EnterPlanMode,ExitPlanMode,"
    "CronCreate,CronDelete,CronList,ScheduleWakeup,EnterWorktree,ExitWorktree"
)


def session(cwd: Path, **fields: Any) -> Session:
    return session_of(prompt="Do the work.", cwd=cwd, **fields)


def program(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def argv(cwd: Path, **fields: Any) -> list[str]:
    return list(claude.launch(session(cwd, **fields), "/opt/claude").argv)


def test_the_client_streams_a_fresh_session_without_the_users_own_settings(tmp_path: Path) -> None:
    assert argv(tmp_path) == [
        *("/opt/claude", "-p", "--output-format", "stream-json", "--verbose"),
        *("--setting-sources", "project", "--strict-mcp-config", "--no-session-persistence"),
        f"--disallowedTools={UNUSABLE}",
    ]


def test_the_prompt_travels_by_stdin_only(tmp_path: Path) -> None:
    launch = claude.launch(Session(prompt="Grüße \ud800\n" * 100_000, cwd=tmp_path), "claude")
    assert launch.stdin == "Grüße ?\n".encode() * 100_000
    assert not [word for word in launch.argv if "Grüße" in word]


def test_options_appear_when_they_are_set(tmp_path: Path) -> None:
    words = argv(tmp_path, model="opus", system="Know this.\n- really", allowed_tools="Bash(git *),Edit")
    assert words[words.index("--model") + 1] == "opus"
    assert words[words.index("--append-system-prompt") + 1] == "Know this.\n- really"
    assert "--allowedTools=Bash(git *),Edit" in words
    assert "--no-session-persistence" not in argv(tmp_path, keep=True)
    assert f"--disallowedTools={UNUSABLE},WebFetch" in argv(tmp_path, disallowed_tools="WebFetch")
    more = argv(tmp_path, fallback_model="sonnet", budget_usd=1.5)
    assert more[more.index("--fallback-model") + 1] == "sonnet"
    assert more[more.index("--max-budget-usd") + 1] == "1.5"
    assert "--dangerously-skip-permissions" not in words
    assert "--dangerously-skip-permissions" in argv(tmp_path, permissions="skip")
    assert "--dangerously-skip-permissions" not in argv(tmp_path, permissions="guard")


def test_a_nul_from_a_file_does_not_break_the_command_line(tmp_path: Path) -> None:
    assert not [word for word in argv(tmp_path, system="learned\0this", model="a\0") if "\0" in word]


def test_further_words_of_the_command_come_first(tmp_path: Path) -> None:
    assert argv(tmp_path, command=("npx", "claude"))[:3] == ["/opt/claude", "claude", "-p"]


def test_retries_are_bounded_and_nothing_runs_out_of_sight(tmp_path: Path) -> None:
    env = claude.launch(session(tmp_path), "claude").env
    assert 0 < int(env["CLAUDE_CODE_MAX_RETRIES"]) < 10
    assert env["CLAUDE_CODE_DISABLE_BACKGROUND_TASKS"] == "1"
    assert env["CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"] == "1"
    assert env.get("SHELL") == ("/bin/bash" if Path("/bin/bash").exists() else None)


@pytest.mark.parametrize(
    ("is_root", "permissions", "says_so"),
    [(True, "skip", True), (True, "guard", False), (True, "client", False), (False, "skip", False)],
)
def test_only_root_without_permissions_says_it_is_a_sandbox(
    tmp_path: Path, is_root: bool, permissions: str, says_so: bool
) -> None:
    env = claude.launch(session(tmp_path, is_root=is_root, permissions=permissions), "claude").env
    assert ("IS_SANDBOX" in env) is says_so


def test_credentials_pass_and_the_mark_of_an_outer_session_does_not() -> None:
    passed = ["ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "CLAUDE_CODE_OAUTH_TOKEN", "HTTPS_PROXY"]
    kept = ["CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "GIT_DIR"]
    env = child_environment(dict.fromkeys([*passed, *kept], "x"), claude.ENV)
    assert [name for name, value in env.items() if value == "x"] == passed


def test_the_client_is_found_on_the_path_that_is_given(tmp_path: Path) -> None:
    found = program(tmp_path / "bin" / "claude")
    work = tmp_path / "work"
    assert claude.find(session(work), str(tmp_path / "bin")) == str(found)
    inside = program(work / "bin" / "claude")
    assert claude.find(session(work), f"{inside.parent}:{found.parent}") == str(found), "a clone could bring its own"


def test_another_program_can_be_named(tmp_path: Path) -> None:
    own = program(tmp_path / "tools" / "my-claude")
    assert claude.find(session(tmp_path / "work", command=("my-claude",)), str(own.parent)) == str(own)
    assert claude.find(session(tmp_path, command=("tools/my-claude",)), "") == str(own), "seen from the workspace"
    assert claude.find(session(Path("/"), command=(str(own),)), "") == str(own)


def test_a_named_program_that_is_missing_is_not_replaced_by_another(tmp_path: Path) -> None:
    program(tmp_path / "claude")
    with pytest.raises(SetupError, match="my-claude not found"):
        claude.find(session(tmp_path, command=("my-claude",)), str(tmp_path))


def test_the_client_inside_the_sdk_is_found_without_importing_the_sdk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "claude_agent_sdk"
    found = program(package / "_bundled" / "claude")
    (package / "__init__.py").write_text("raise RuntimeError('imported')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "claude_agent_sdk", raising=False)
    assert claude.find(session(tmp_path), "") == str(found)
    os.chmod(found, 0o644)  # noqa: PTH101 - plain
    with pytest.raises(SetupError):
        claude.find(session(tmp_path), "")


def test_a_missing_client_is_told_with_the_fix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "claude_agent_sdk", None)
    with pytest.raises(SetupError, match="not installed") as caught:
        claude.find(session(tmp_path), str(tmp_path))
    assert "npm install" in caught.value.hint
    assert caught.value.exit_code == 78
