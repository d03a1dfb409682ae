"""Qwen Code: its command line and settings, how its stream differs from Claude Code's, and its hook calls."""

import json
from pathlib import Path

import pytest

from ralph.agents import qwen
from ralph.core.agent import Init, Result, Retry, Text, Tokens, ToolUse, Trouble, Usage
from ralph.core.ports import HookFiles, Rights, Session
from ralph.hooks.call import ALLOWED, Call, block
from ralph.hooks.dialects import qwen as dialect

USED = {"input_tokens": 1000, "output_tokens": 50, "cache_read_input_tokens": 200}


def message(*content: dict[str, object], id: str = "1") -> bytes:
    whole = {"id": id, "role": "assistant", "model": "m", "content": list(content), "usage": USED}
    return json.dumps({"type": "assistant", "parent_tool_use_id": None, "message": whole}).encode()


def result(**more: object) -> bytes:
    return json.dumps({"type": "result", "subtype": "success", "is_error": False, "usage": USED, **more}).encode()


def test_ralphs_settings_override_the_users(tmp_path: Path) -> None:
    hooks = HookFiles(settings=tmp_path, env={"X": "1"}, records=tmp_path, state=tmp_path, command="hook", or_deny="!")
    rights = Rights(permissions="guard", disallowed_tools="Bash(git log:*),Edit")
    found = qwen.launch(
        Session(prompt="Do it.", system="Brief.", cwd=tmp_path, folder=tmp_path, hooks=hooks, rights=rights, model="m"),
        "qwen",
    )
    assert found.stdin == b"Do it."
    assert found.argv[1:] == (
        *("--output-format", "stream-json", "--extensions", "none", "--model", "m"),
        *("--append-system-prompt", "Brief.", "--approval-mode", "yolo"),
    )
    assert found.env["QWEN_CODE_SYSTEM_SETTINGS_PATH"] == str(tmp_path / "qwen-settings.json")
    assert found.env["X"] == "1"
    settings = json.loads(found.files["qwen-settings.json"])
    assert settings["hooks"]["PreToolUse"][0]["hooks"][0]["command"] == "hook PreToolUse qwen!"
    assert "UserPromptSubmit" not in settings["hooks"]
    assert settings["general"]["gitCoAuthor"] == {"commit": False, "pr": False}
    assert settings["permissions"]["deny"][-2:] == ["Bash(git log *)", "Edit"]
    assert settings["model"]["generationConfig"] == {"maxRetries": 0}


def test_input_that_was_cached_is_counted_once() -> None:
    read = qwen.reader()
    init = {
        "type": "system",
        "subtype": "init",
        "session_id": "s",
        "model": "m",
        "qwen_code_version": "0.24.4",
        "cwd": "/w",
    }
    assert list(read(json.dumps(init).encode())) == [Init("m", "s", "0.24.4")]
    use: dict[str, object] = {
        "type": "tool_use",
        "id": "c",
        "name": "write_file",
        "input": {"file_path": "/w/a", "content": ""},
    }
    usage, call = read(message(use))
    assert isinstance(usage, Usage)
    assert usage.context == 1000
    assert usage.tokens.input == 800
    assert call == ToolUse("Write", "Write a", "c", "/w/a")
    assert Text("Done.") in list(read(message({"type": "text", "text": "Done."}, id="2")))
    assert list(read(result(result="Done.", num_turns=2))) == [
        Result(ok=True, text="Done.", tokens=Tokens(800, 50, 200), turns=2)
    ]


@pytest.mark.parametrize(
    ("said", "trouble"),
    [
        ("401 Incorrect API key provided: x.", Trouble.AUTHENTICATION),
        ("404 The model `nope` does not exist or you do not have access to it.", Trouble.MODEL),
        ("429 Rate limit reached for requests", Trouble.TRANSPORT),
        ("429 The usage limit has been reached", Trouble.LIMIT),
        ("500 The server had an error while processing your request.", Trouble.TRANSPORT),
    ],
)
def test_an_error_is_no_message(said: str, trouble: Trouble) -> None:
    error = f"[API Error: {said}]"
    now = result(subtype="error_during_execution", is_error=True, error={"message": error})
    for last in (now, result(result=error)):  # version 0.15 calls it a success
        read = qwen.reader()
        assert not list(read(message({"type": "text", "text": error})))
        found = list(read(last))[-1]
        assert isinstance(found, Result)
        assert (found.ok, found.trouble, found.text) == (False, trouble, "")


def test_it_does_not_pause_for_minutes() -> None:
    tell = qwen.reader().error  # type: ignore[attr-defined]
    assert list(tell(b"Retrying in 2s (attempt 1/1): [API Error: 429 Rate limit reached]")) == [
        Retry(1, 429, "429 Rate limit reached")
    ]
    *_, last = tell(b"Retrying in 60s (attempt 1/10): [API Error: 429 Rate limit reached]")
    assert last.gives_up
    assert last.trouble is Trouble.TRANSPORT
    assert not list(tell(b"Retrying provider attempt (0 buffered tool call(s) discarded)."))


def test_hook_calls_are_translated() -> None:
    values: dict[str, object] = {
        "tool_name": "run_shell_command",
        "cwd": "/w",
        "tool_input": {"command": "pytest", "directory": "/w/sub"},
        "tool_response": {"llmContent": [{"text": "1 failed"}]},
        "tool_use_id": "toolu_1",
        "tool_call_id": "call_1",
    }
    found = dialect.read("PostToolUse", values)
    assert (found["tool_name"], found["cwd"], found["tool_response"]) == ("Bash", "/w/sub", "1 failed")
    assert found["tool_use_id"] == "call_1", "as in the stream"
    call = Call("PreToolUse", found, None, dialect)
    allowed = json.loads(dialect.write(call, ALLOWED))["hookSpecificOutput"]
    assert allowed["permissionDecision"] == "allow"
    assert json.loads(dialect.write(call, block("wait", "x"))) == {"decision": "block", "reason": "wait"}
    assert json.loads(dialect.FAILED)["hookSpecificOutput"]["permissionDecision"] == "deny"
