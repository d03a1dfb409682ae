from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ralph.agents import cline
from ralph.core.agent import AgentEvent, Limit, Result, Text, ToolResult, ToolUse, Trouble, Usage
from ralph.core.ports import ClientEnd, HookFiles, Launch
from ralph.hooks.dialects import cline as dialect
from ralph.hooks.entry import respond
from ralph.hooks.policy import Policy
from support.hook_calls import LiveRun
from support.sessions import session_of

MODEL = {"id": "scripted", "provider": "openai-compatible"}
USAGE = {"inputTokens": 2000, "outputTokens": 100, "cacheReadTokens": 400, "cacheWriteTokens": 0, "totalCost": 0.5}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def launched(tmp_path: Path, **fields: Any) -> Launch:
    return cline.launch(session_of(prompt="Do it.", cwd=tmp_path, folder=tmp_path / "s", **fields), "/opt/cline")


def read(*events: dict[str, Any]) -> list[AgentEvent]:
    reader = cline.reader()
    return [event for line in events for event in reader(json.dumps(line).encode())]


def agent(kind: str, **values: Any) -> dict[str, Any]:
    return {"type": "agent_event", "event": {"type": kind, **values}}


def test_the_prompt_travels_by_stdin_and_no_daemon_is_started(tmp_path: Path, home: Path) -> None:
    launch = launched(tmp_path, system="Know this.", model="m", permissions="skip")
    assert launch.argv[:6] == ("/opt/cline", "--json", "--auto-approve", "true", "--model", "m")
    assert launch.stdin == b"Know this.\n\nDo it."
    assert launch.env["CLINE_SESSION_BACKEND_MODE"] == "local"
    assert launch.env["CLINE_DIR"] == str(tmp_path / "s" / "cline")
    assert launch.env["CLINE_PROVIDER_SETTINGS_PATH"] == str(home / ".cline/data/settings/providers.json")
    assert "false" in launched(tmp_path, permissions="client").argv


def test_the_client_stays_awake_while_it_lists_files(tmp_path: Path) -> None:
    launch = launched(tmp_path)
    assert launch.env["BUN_OPTIONS"] == f'"--preload={tmp_path / "s" / "cline" / "awake.js"}"'
    assert "setInterval" in launch.files["cline/awake.js"]


def test_a_hook_that_does_not_start_ends_the_session(tmp_path: Path) -> None:
    hooks = HookFiles(tmp_path, {"RALPH_POLICY": "p"}, tmp_path, tmp_path, command="hook", or_deny=" || exit 2")
    files = launched(tmp_path, hooks=hooks).files
    assert files["cline/hooks/PreToolUse.sh"].startswith("( hook PreToolUse cline || exit 2 ) || printf ")
    assert files["cline/hooks/TaskStart.sh"] == "hook SessionStart cline\n"


def test_the_hosts_are_those_of_the_users_provider(home: Path) -> None:
    for name, text in cline.rehearse("http://127.0.0.1:99").files.items():
        (home / name).parent.mkdir(parents=True)
        (home / name).write_text(text)
    assert cline.hosts({"HOME": str(home)}) == ("127.0.0.1:99",)
    assert cline.login({}, home).by.endswith("providers.json")
    assert cline.hosts({"HOME": "/nonexistent"}) == ("api.cline.bot",)


def test_a_session_is_read() -> None:
    events = read(
        {"type": "hook_event", "hookEventName": "agent_start", "taskId": "t", "parentAgentId": None},
        agent("usage", inputTokens=1000, outputTokens=50, cacheReadTokens=200),
        agent("content_start", contentType="tool", toolName="run_commands", toolCallId="c", input={"commands": ["ls"]}),
        agent("content_end", contentType="tool", toolCallId="c", output=[{"result": "no", "success": False}]),
        agent("content_end", contentType="text", text="Done."),
        {"type": "run_result", "finishReason": "completed", "usage": USAGE, "text": "Done.", "model": MODEL},
    )
    usage, *middle, result = events[1:]
    assert isinstance(usage, Usage)
    assert usage.context == 1000
    assert middle == [ToolUse("Bash", "Bash ls", "c", command="ls"), ToolResult("c", False, "no"), Text("Done.")]
    assert isinstance(result, Result)
    assert (result.ok, result.text, result.cost_usd, result.models) == (True, "Done.", 0.5, ("scripted",))
    assert (result.tokens.input, result.tokens.cache_read, result.tokens.output) == (1600, 400, 100)


@pytest.mark.parametrize(
    ("message", "kind", "trouble"),
    [
        ("Incorrect API key provided: x.", "auth", Trouble.AUTHENTICATION),
        ("The model `nope` does not exist or you do not have access to it.", "unknown", Trouble.MODEL),
        ("You exceeded your current quota, please check your plan and billing details.", "unknown", Trouble.LIMIT),
        ("The server had an error while processing your request.", "unknown", Trouble.TRANSPORT),
    ],
)
def test_errors_are_classified(message: str, kind: str, trouble: Trouble) -> None:
    error = agent("error", error={"message": message}, errorClass=kind)
    result = read(error, {"type": "run_result", "finishReason": "error", "usage": {}, "text": message})[-1]
    assert isinstance(result, Result)
    assert result.trouble is trouble


def test_what_is_only_said_on_stderr_is_heard() -> None:
    reader = cline.reader()
    getattr(reader, "error")(b'{"type":"error","message":"Not logged in"}')  # noqa: B009
    [result] = getattr(reader, "finish")(ClientEnd(code=1))  # noqa: B009
    assert result.trouble is Trouble.AUTHENTICATION
    [result] = getattr(cline.reader(), "finish")(ClientEnd(code=0))  # noqa: B009
    assert result.trouble is Trouble.TRANSPORT


def test_when_a_limit_ends_is_read_from_the_log(tmp_path: Path) -> None:
    answer = {"error": {"type": "usage_limit_reached", "resets_at": 1900000000}}
    log = tmp_path / "cline/data/logs/cline.log"
    log.parent.mkdir(parents=True)
    log.write_text("x" * 99_000 + json.dumps({"responseBody": json.dumps(answer)}, separators=(",", ":")) + "\n")
    reader = cline.reader()
    failed = {"type": "run_result", "finishReason": "error", "text": "The usage limit has been reached"}
    assert [type(event) for event in reader(json.dumps(failed).encode())] == [Limit, Result]
    [limit] = getattr(reader, "finish")(ClientEnd(code=1, folder=tmp_path))  # noqa: B009
    assert limit.resets_at == 1900000000
    assert getattr(reader, "finish")(ClientEnd(code=1)) == []  # noqa: B009


def test_a_denied_call_is_replaced_by_one_that_fails(tmp_path: Path) -> None:
    run = LiveRun(tmp_path)
    old = run.file("a.txt")

    def answer(tool: str, given: dict[str, Any]) -> dict[str, Any]:
        call = {"workspaceRoots": [str(run.workspace)], "sessionContext": {"rootSessionId": "s"}}
        call |= {"tool_call": {"id": "c", "name": tool, "input": given}}
        return dict(json.loads(respond("PreToolUse", json.dumps(call).encode(), Policy(run.policy), dialect)))

    pushed = answer("run_commands", {"commands": ["ls", "git push"]})
    assert "exit 1" in pushed["overrideInput"]["commands"][0]
    assert "denied" in pushed["context"]
    assert answer("run_commands", {"commands": [{"command": "git"}]})["overrideInput"]
    assert answer("editor", {"path": str(old)})["overrideInput"]["path"] == "/dev/null/denied"
    assert answer("read_files", {"files": [{"path": str(old)}]}) == {}
    assert answer("editor", {"path": str(old)}) == {}
