from __future__ import annotations

import json
import time
import tomllib
from pathlib import Path
from typing import Any

import pytest

from ralph.agents import codex
from ralph.agents.codex_config import toml
from ralph.core.agent import AgentEvent, Limit, Outcome, Result, Retry, Text, ToolResult, ToolUse, Trouble, add
from ralph.core.ports import HookFiles, Launch
from ralph.hooks.call import Call, block, deny
from ralph.hooks.dialects import codex as dialect
from ralph.hooks.entry import respond
from ralph.hooks.policy import Policy
from support.hook_calls import LiveRun
from support.sessions import session_of

PATCH = "*** Begin Patch\n*** Update File: a.txt\n@@\n-x\n+y\n*** Add File: .git/hooks/pre-commit\n+b\n*** End Patch\n"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "own"
    folder.mkdir()
    monkeypatch.setenv("CODEX_HOME", str(folder))
    return folder


def launched(tmp_path: Path, **fields: Any) -> Launch:
    return codex.launch(session_of(prompt="Do it.", cwd=tmp_path, folder=tmp_path / "s", **fields), "/opt/codex")


def config_of(launch: Launch) -> dict[str, Any]:
    return tomllib.loads(launch.files["codex/config.toml"])


def read(*events: dict[str, Any]) -> list[AgentEvent]:
    reader = codex.reader()
    return [event for line in events for event in reader(json.dumps(line, ensure_ascii=False).encode())]


def failed(message: str) -> list[AgentEvent]:
    return read({"type": "error", "message": message}, {"type": "turn.failed", "error": {"message": message}})


def test_the_client_reads_the_prompt_from_stdin_and_asks_nothing(tmp_path: Path, home: Path) -> None:
    launch = launched(tmp_path, model="gpt", permissions="guard")
    assert launch.argv == (
        *("/opt/codex", "exec", "--json", "--skip-git-repo-check", "--ephemeral"),
        *("--dangerously-bypass-approvals-and-sandbox", "--model", "gpt", "-"),
    )
    assert launch.stdin == b"Do it."
    assert launch.env["CODEX_HOME"] == str(tmp_path / "s" / "codex")
    assert launch.links == {"codex/auth.json": str(home / "auth.json")}
    assert "--dangerously-bypass-approvals-and-sandbox" not in launched(tmp_path, permissions="client").argv


def test_the_users_settings_apply_without_what_runs_beside_the_agent(tmp_path: Path, home: Path) -> None:
    own = {"model": "mine", "model_provider": "p", "model_providers": {"p": {"base_url": "http://h:1/v1", "n": 1.5}}}
    more = {"hooks": {"Stop": []}, "mcp_servers": {"x": {"command": "y"}}, "notify": ["say"], "features": {"f": True}}
    (home / "config.toml").write_text("".join(f"{key} = {toml(value)}\n" for key, value in (own | more).items()))
    found = config_of(launched(tmp_path, system='Know "this".\n'))
    assert own.items() <= found.items()
    assert not {"hooks", "mcp_servers", "notify"} & found.keys()
    assert found["features"]["f"]
    assert found["features"]["unbounded_connection_retries"] is False
    assert found["developer_instructions"] == 'Know "this".\n'
    assert codex.hosts({"CODEX_HOME": str(home)}) == ("h:1",)
    (home / "config.toml").write_text("model = ")
    assert launched(tmp_path).files["codex/config.toml"] == "model = "


def test_only_ralphs_hooks_are_there_to_be_trusted(tmp_path: Path, home: Path) -> None:
    hooks = HookFiles(tmp_path, {"RALPH_POLICY": "p"}, tmp_path, tmp_path, command="hook", or_deny=" || deny")
    launch = launched(tmp_path, hooks=hooks)
    assert "--dangerously-bypass-hook-trust" in launch.argv
    assert launch.env["RALPH_POLICY"] == "p"
    found = json.loads(launch.files["codex/hooks.json"])["hooks"]
    assert found["PreToolUse"][0]["hooks"][0]["command"] == "hook PreToolUse codex || deny"
    assert found["Stop"][0]["hooks"][0]["command"] == "hook Stop codex"


def test_a_session_is_read_and_warnings_are_not_errors() -> None:
    command = {"id": "item_1", "type": "command_execution", "command": "/bin/bash -lc 'exit 3'", "exit_code": 3}
    change = {"id": "item_2", "type": "file_change", "changes": [{"path": "/w/a.txt", "kind": "add"}]}
    events = read(
        {"type": "thread.started", "thread_id": "t"},
        {"type": "item.completed", "item": {"id": "item_0", "type": "error", "message": "Model metadata not found."}},
        {"type": "item.started", "item": command | {"status": "in_progress"}},
        {"type": "item.completed", "item": command | {"status": "failed", "aggregated_output": "no"}},
        {"type": "item.completed", "item": change | {"status": "completed"}},
        {"type": "item.completed", "item": {"id": "item_3", "type": "agent_message", "text": "Done."}},
        {
            "type": "turn.completed",
            "usage": {"input_tokens": 2000, "cached_input_tokens": 400, "output_tokens": 100},
        },
    )
    assert events[1:-1] == [
        ToolUse("Bash", "Bash exit 3", "item_1", command="exit 3"),
        ToolResult("item_1", False, "no"),
        ToolUse("Write", "Write /w/a.txt", "item_2.0", path="/w/a.txt"),
        ToolResult("item_2.0", True, ""),
        Text("Done."),
    ]
    result = events[-1]
    assert isinstance(result, Result)
    assert (result.ok, result.text) == (True, "Done.")
    assert (result.tokens.input, result.tokens.cache_read, result.tokens.output) == (1600, 400, 100)


def test_a_turn_without_anything_is_empty() -> None:
    [result] = read({"type": "turn.started"}, {"type": "turn.completed", "usage": {}})
    assert isinstance(result, Result)
    assert result.trouble is Trouble.EMPTY


@pytest.mark.parametrize(
    ("message", "trouble"),
    [
        ("unexpected status 401 Unauthorized: Incorrect API key provided: x., url: http://h/", Trouble.AUTHENTICATION),
        ("Missing environment variable: `KEY`.", Trouble.AUTHENTICATION),
        ("exceeded retry limit, last status: 429 Too Many Requests", Trouble.TRANSPORT),
        ("We\u2019re currently experiencing high demand, which may cause temporary errors.", Trouble.TRANSPORT),
        ("Connection failed: error sending request", Trouble.TRANSPORT),
        ("stream disconnected before completion: stream closed before response.completed", Trouble.TRANSPORT),
        ("The model `nope` does not exist or you do not have access to it.", Trouble.MODEL),
        ("Quota exceeded. Check your plan and billing details.", Trouble.LIMIT),
    ],
)
def test_a_failed_turn_says_what_kind_of_trouble_it_is(message: str, trouble: Trouble) -> None:
    result = failed(message)[-1]
    assert isinstance(result, Result)
    assert result.trouble is trouble


def test_a_usage_limit_has_its_reset() -> None:
    day = time.strftime("%b %dth, %Y", time.localtime(time.time() + 3 * 86400))
    limit, result = failed(f"You\u2019ve hit your usage limit. Upgrade to Pro or try again at {day} 5:46 PM.")
    assert isinstance(limit, Limit)
    assert limit.resets_at is not None
    outcome = add(add(Outcome(), limit, ""), result, "")
    assert outcome.trouble is Trouble.LIMIT
    assert abs(limit.resets_at - time.time() - 3 * 86400) < 86400


def test_retries_are_seen() -> None:
    [retry] = read({"type": "error", "message": "Reconnecting... 2/5 (unexpected status 500 Oops: x)"})
    assert isinstance(retry, Retry)
    assert (retry.attempt, retry.status) == (2, 500)


def test_every_file_of_a_patch_is_judged_also_in_a_command(tmp_path: Path) -> None:
    run = LiveRun(tmp_path)
    run.file("a.txt")

    def answer(tool: str, command: str) -> str:
        call = {"session_id": "s", "cwd": str(run.workspace), "tool_name": tool, "tool_input": {"command": command}}
        return respond("PreToolUse", json.dumps(call).encode(), Policy(run.policy), dialect)

    for tool, text in (("apply_patch", PATCH), ("Bash", f"apply_patch <<'E'\n{PATCH}E")):
        assert ".git/hooks/pre-commit belongs to git" in answer(tool, text)
        assert (
            answer(tool, text.replace(".git/hooks/pre-commit", "b.txt")) == ""
        )  # there is no tool to read a.txt first
    assert "no file path" in answer("apply_patch", "nonsense")
    assert dialect.read("Stop", {"cwd": "/w"}) == {"cwd": "/w"}


def test_answers_have_the_clients_form() -> None:
    call = Call("PreToolUse", {"tool_name": "Bash"}, None, dialect)
    decision = json.loads(dialect.write(call, deny("no", "x")))["hookSpecificOutput"]
    assert (decision["permissionDecision"], decision["permissionDecisionReason"]) == ("deny", "no")
    stop = Call("Stop", {}, None, dialect)
    assert json.loads(dialect.write(stop, block("not yet", "x"))) == {"decision": "block", "reason": "not yet"}


def test_the_key_of_a_provider_of_the_users_own_is_passed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = 'model_provider = "mine"\n[model_providers.mine]\nname = "m"\nbase_url = "http://x/v1"\nenv_key = "MY_KEY"\n'
    (tmp_path / "config.toml").write_text(own)
    monkeypatch.setenv("CODEX_HOME", str(tmp_path))
    assert "MY_KEY" not in codex.launch(session_of(prompt="p", cwd=tmp_path), "codex").env
    monkeypatch.setenv("MY_KEY", "secret")
    assert codex.launch(session_of(prompt="p", cwd=tmp_path), "codex").env["MY_KEY"] == "secret"
