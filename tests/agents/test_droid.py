from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ralph.agents import droid
from ralph.agents.droid_events import DroidEvents
from ralph.core.agent import AgentEvent, Init, Limit, Result, Retry, Text, Tokens, ToolResult, ToolUse, Trouble
from ralph.core.errors import SetupError
from ralph.core.ports import ClientEnd, HookFiles, Launch
from ralph.hooks.call import Call, block, context
from ralph.hooks.dialects import droid as dialect
from ralph.hooks.entry import respond
from ralph.hooks.policy import Policy
from support.hook_calls import LiveRun
from support.sessions import session_of

PATCH = "*** Begin Patch\n*** Add File: b.txt\n+x\n*** Update File: .git/config\n@@\n-a\n+b\n*** End Patch"
STAMP = "[2026-11-18T09:20:51.338Z]"


def launched(tmp_path: Path, **fields: Any) -> Launch:
    return droid.launch(session_of(prompt="Do it.", cwd=tmp_path, folder=tmp_path / "s", **fields), "/opt/droid")


def read(*events: dict[str, Any], end: ClientEnd | None = None) -> list[AgentEvent]:
    reader = DroidEvents()
    found = [event for line in events for event in reader(json.dumps(line).encode())]
    return [*found, *reader.finish(end)] if end else found


def logged(reader: DroidEvents, attempt: int, message: str) -> list[AgentEvent]:
    """A failed request in the log, as the client writes it."""
    lines = [
        f'{STAMP} WARN: [useLLMStreaming] LLM error | Context: {{"attempt":{attempt},"modelId":"m","tags":{{}}}}',
        f"{STAMP} INFO: [useLLMStreaming] S3Logging is false | Context: {{}}",
        f"{STAMP} WARN: Retry attempt failed",
        "Caused by:",
        f"Error: {message}",
        "    at generate (../../node_modules/openai/core/error.mjs:62:24)",
        f'    at native (native:7:39) | Context: {{"cause":{{"name":"Error","message":"{message}"}}}}',
    ]
    return [event for line in lines for event in reader.error(line.encode())]


def test_the_settings_of_a_process_hold_the_hooks(tmp_path: Path) -> None:
    hooks = HookFiles(tmp_path / "x", {"RALPH_NONCE": "n"}, tmp_path / "r", tmp_path, "hook", " || exit 2")
    launch = launched(tmp_path, hooks=hooks, model="custom:m", system="Context.", permissions="guard")
    settings = str(tmp_path / "s" / "droid-settings.json")
    assert launch.argv == (
        *("/opt/droid", "--settings", settings, "exec", "--output-format", "stream-json"),
        *("--model", "custom:m", "--auto", "low"),
    )
    assert launch.stdin == b"Context.\n\nDo it."
    assert launch.env["RALPH_NONCE"] == "n"
    assert launch.env["FACTORY_LOG_FILE"] == "/dev/stderr"
    called = json.loads(launch.files["droid-settings.json"])["hooks"]
    assert called["PreToolUse"][0]["hooks"][0]["command"] == "hook PreToolUse droid || exit 2"
    assert called["Stop"][0]["hooks"][0]["command"] == "hook Stop droid"
    assert launched(tmp_path, permissions="skip").argv[-1] == "--skip-permissions-unsafe"
    assert launched(tmp_path, permissions="client").argv[-1] == "stream-json"


def test_a_missing_client_and_its_login(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SetupError, match="not installed") as caught:
        droid.find(session_of(prompt="", cwd=tmp_path), str(tmp_path))
    assert "npm install -g droid" in str(caught.value.hint)
    assert "api.factory.ai" in droid.hosts({})
    assert droid.login({}, tmp_path).by == ""
    (tmp_path / ".factory").mkdir()
    for name, text in droid.rehearse("http://127.0.0.1:9").files.items():
        (tmp_path / name).write_text(text)
    assert droid.login({}, tmp_path).by.endswith("settings.json")
    assert "FACTORY_AIRGAP_ENABLED" not in launched(tmp_path).env
    monkeypatch.setenv("HOME", str(tmp_path))
    assert launched(tmp_path).env["FACTORY_AIRGAP_ENABLED"] == "true"
    assert droid.hosts({"HOME": str(tmp_path), "FACTORY_API_BASE_URL": "https://f"}) == ("f:443", "127.0.0.1:9")
    (tmp_path / ".factory/auth.v2.file").touch()
    assert droid.login({}, tmp_path).by.endswith("auth.v2.file")
    assert droid.login({"FACTORY_API_KEY": "k"}, tmp_path).by == "FACTORY_API_KEY"


def test_a_session() -> None:
    usage = {"input_tokens": 1600, "output_tokens": 100, "cache_read_input_tokens": 400}
    assert read(
        {"type": "system", "subtype": "init", "cwd": "/w", "session_id": "s", "model": "custom:m-0"},
        {"type": "message", "role": "user", "text": "Do it."},
        {"type": "tool_call", "id": "c", "toolName": "Create", "parameters": {"file_path": "/w/a.txt"}},
        {"type": "tool_result", "id": "c", "isError": False, "value": "ok"},
        {"type": "tool_call", "id": "d", "toolName": "ApplyPatch", "parameters": {"input": PATCH}},
        {"type": "tool_result", "id": "d", "isError": True, "error": {"message": "Error: Denied"}},
        {"type": "message", "role": "assistant", "text": "of another session", "session_id": "t"},
        {"type": "message", "role": "assistant", "text": "Done.", "session_id": "s"},
        {"type": "completion", "finalText": "Done.", "numTurns": 2, "usage": usage},
        end=ClientEnd(code=0),
    ) == [
        Init("custom:m-0", "s"),
        ToolUse("Write", "Write a.txt", "c", path="/w/a.txt"),
        ToolResult("c", True, "ok"),
        ToolUse("Edit", "Edit b.txt", "d", path="b.txt"),
        ToolResult("d", False, "Error: Denied"),
        Text("Done."),
        Result(ok=True, text="Done.", tokens=Tokens(1600, 100, 400), turns=2),
    ]


def test_retries_are_found_in_the_log_and_ended_soon() -> None:
    reader = DroidEvents()
    message = "500 The server had an error while processing your request."
    assert logged(reader, 1, message) == [Retry(1, 500, message)]
    assert [reader.error(line) for line in (b"Error: of something else", b"Invalid x")] == [[], []]
    assert logged(reader, 2, message) == [Retry(2, 500, message)]
    [result] = logged(reader, 3, message)
    assert isinstance(result, Result)
    assert (result.trouble, result.gives_up) == (Trouble.TRANSPORT, True)
    assert list(reader.finish(ClientEnd(code=None))) == []


def test_a_failure_of_which_the_log_tells_late_is_over() -> None:
    reader = DroidEvents()
    reader(b'{"type":"message","role":"assistant","text":"Done.","timestamp":1800000000000}')
    assert logged(reader, 3, "500 The server had an error.") == []


def test_a_used_up_quota_is_not_tried_again() -> None:
    message = "429 You exceeded your current quota, please check your plan and billing details."
    events = logged(DroidEvents(), 1, message)
    assert isinstance(events[-1], Result)
    assert events[-1].trouble in (Trouble.LIMIT, Trouble.BILLING)
    assert events[-1].gives_up
    limit, _ = logged(DroidEvents(), 1, "429 The usage limit has been reached")
    assert isinstance(limit, Limit)


@pytest.mark.parametrize(
    ("message", "trouble"),
    [
        ("401 Incorrect API key provided: x.", Trouble.AUTHENTICATION),
        ("404 The model `nope` does not exist or you do not have access to it.", Trouble.MODEL),
        ("429 Rate limit reached for requests", Trouble.TRANSPORT),
    ],
)
def test_an_error_says_what_kind_of_trouble_it_is(message: str, trouble: Trouble) -> None:
    events = ({"type": "error", "message": message}, {"type": "error", "message": "Exec failed"})
    [result] = read(*events, end=ClientEnd(code=1))
    assert isinstance(result, Result)
    assert (result.trouble, result.detail) == (trouble, message)


def test_a_client_that_does_not_start_says_why() -> None:
    reader = DroidEvents()
    for line in (f"{STAMP} INFO: [x] | Context: {{}}", "Invalid model: custom:nope", "", "Available built-in models:"):
        reader.error(line.encode())
    [result] = reader.finish(ClientEnd(code=1))
    assert isinstance(result, Result)
    assert (result.trouble, result.detail) == (Trouble.MODEL, "Invalid model: custom:nope")


def test_a_call_that_nobody_permits_ends_the_session() -> None:
    words = "Exec ended early: insufficient permission to proceed."
    *_, result = read(
        {"type": "tool_call", "id": "c", "toolName": "Execute", "parameters": {"command": "make"}},
        {"type": "tool_result", "id": "c", "isError": True, "error": {"message": f"Error: {words}"}},
        {"type": "message", "role": "assistant", "text": words},
        {"type": "error", "source": "cli", "message": words},
        end=ClientEnd(code=1),
    )
    assert isinstance(result, Result)
    assert (result.trouble, result.denials[0].subject) == (Trouble.PERMISSION, "make")


def test_calls_are_judged_and_a_tool_that_ralph_does_not_know_is_denied_by_the_guard(tmp_path: Path) -> None:
    run = LiveRun(tmp_path, permissions="guard")

    def answer(tool: str, **given: object) -> str:
        call = {"session_id": "s", "cwd": str(run.workspace), "tool_name": tool, "tool_input": given}
        text = respond("PreToolUse", json.dumps(call).encode(), Policy(run.policy), dialect)
        return str(json.loads(text)["hookSpecificOutput"]["permissionDecision"]) if text else ""

    assert answer("ApplyPatch", input=PATCH) == "deny"
    assert answer("ApplyPatch", input=PATCH.replace(".git/config", "c.txt")) == "allow"
    assert answer("Execute", command="git push") == "deny"
    assert answer("Execute", command="ls") == "allow"
    assert answer("Create", file_path=str(run.workspace / "new.txt"), content="x") == "allow"
    assert answer("Glob", folder="~/.ssh", patterns="*") == "deny"
    assert answer("LS", directory_path=".") == "allow"
    assert answer("linear___create_issue") == "deny"
    run.policy["permissions"] = "skip"
    assert answer("linear___create_issue") == ""


def test_answers_have_the_clients_form() -> None:
    call = Call("PostToolUse", {}, None, dialect)
    assert json.loads(dialect.write(call, context("more", "x")))["hookSpecificOutput"]["additionalContext"] == "more"
    assert json.loads(dialect.write(call, block("not yet", "x"))) == {"decision": "block", "reason": "not yet"}
    assert dialect.write(call, block("", "")) != ""
    assert json.loads(dialect.FAILED)["hookSpecificOutput"]["permissionDecision"] == "deny"
