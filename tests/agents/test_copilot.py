from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ralph.agents import copilot
from ralph.agents.copilot_events import CopilotEvents
from ralph.core.agent import AgentEvent, Init, Limit, Outcome, Result, Retry, Text, ToolResult, ToolUse, Trouble, add
from ralph.core.errors import SetupError
from ralph.core.ports import ClientEnd, HookFiles, Launch
from ralph.hooks.call import Call, block, context, deny
from ralph.hooks.dialects import copilot as dialect
from ralph.hooks.entry import respond
from ralph.hooks.policy import Policy
from support.hook_calls import LiveRun
from support.sessions import session_of

PATCH = "*** Begin Patch\n*** Add File: b.txt\n+x\n*** Update File: .git/config\n@@\n-a\n+b\n*** End Patch"
ANSWER = {"type": "assistant.message", "data": {"content": "Done.", "toolRequests": []}}
ENDED = {"type": "result", "exitCode": 0}


def launched(tmp_path: Path, **fields: Any) -> Launch:
    return copilot.launch(session_of(prompt="Do it.", cwd=tmp_path, folder=tmp_path / "s", **fields), "/opt/copilot")


def read(*events: dict[str, Any], end: ClientEnd | None = None) -> list[AgentEvent]:
    reader = CopilotEvents()
    found = [event for line in events for event in reader(json.dumps(line).encode())]
    return [*found, *reader.finish(end)] if end else found


def failure(status: int, message: str, code: str = "", at: int = 0, attempt: int = 0) -> dict[str, Any]:
    data = {"statusCode": status, "errorMessage": json.dumps({"message": message}), "errorCode": code}
    stamp = f"2026-11-18T09:00:{at:02}.000Z"
    return {"type": "model.call_failure", "timestamp": stamp, "data": data | {"retryAttempt": attempt}}


def test_a_process_has_a_configuration_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COPILOT_HOME", "/own")
    hooks = HookFiles(tmp_path / "x", {"RALPH_NONCE": "n"}, tmp_path / "r", tmp_path, "hook", " || exit 2")
    launch = launched(tmp_path, hooks=hooks, model="gpt", system="Context.", permissions="guard")
    assert launch.stdin == b"Context.\n\nDo it."
    assert launch.env["COPILOT_HOME"] == str(tmp_path / "s" / "copilot")
    assert launch.env["RALPH_NONCE"] == "n"
    assert launch.links == {"copilot/config.json": "/own/config.json"}
    called = json.loads(launch.files["copilot/hooks/ralph.json"])["hooks"]
    assert called["preToolUse"][0]["bash"] == "hook PreToolUse copilot || exit 2"
    assert called["agentStop"][0]["bash"] == "hook Stop copilot"
    assert "userPromptSubmitted" not in called  # it would forget what the session has read
    words = " ".join(launch.argv)
    assert f"--usage-output-file {tmp_path / 's' / 'usage.json'} --model gpt" in words
    assert "--allow-tool=write" in words
    assert "--allow-all " not in f"{words} "


def test_permissions_are_the_clients_own_or_none(tmp_path: Path) -> None:
    assert launched(tmp_path, permissions="skip").argv[-1] == "--allow-all"
    own = launched(tmp_path, permissions="client", folders=(str(tmp_path), "/nonexistent"))
    assert own.argv[-1] == f"--add-dir={tmp_path}"
    assert not [word for word in own.argv if word.startswith("--allow")]


def test_a_missing_client_and_its_login(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="not installed") as caught:
        copilot.find(session_of(prompt="", cwd=tmp_path), str(tmp_path))
    assert "npm install -g @github/copilot" in str(caught.value.hint)
    assert copilot.hosts({"COPILOT_PROVIDER_BASE_URL": "http://h:1/v1"}) == ("h:1",)
    assert "*.acme.ghe.com:443" in copilot.hosts({"GH_HOST": "acme.ghe.com"})
    assert copilot.login({}, tmp_path).by == ""
    (tmp_path / ".copilot").mkdir()
    (tmp_path / ".copilot/config.json").write_text('// managed\n{"lastLoggedInUser": {"login": "x"}}')
    assert copilot.login({}, tmp_path).by.endswith("config.json")
    assert copilot.login({"COPILOT_GITHUB_TOKEN": "t"}, tmp_path).by == "COPILOT_GITHUB_TOKEN"


def test_a_session_and_its_tokens(tmp_path: Path) -> None:
    usage = {"inputTokens": 2000, "outputTokens": 100, "cacheReadTokens": 400, "cacheWriteTokens": 0}
    (tmp_path / "usage.json").write_text(json.dumps({"modelMetrics": {"m1": {"usage": usage}}}))
    events = read(
        {"type": "session.tools_updated", "data": {"model": "m1"}},
        {
            "type": "tool.execution_start",
            "data": {"toolCallId": "c", "toolName": "bash", "arguments": {"command": "ls"}},
        },
        {"type": "tool.execution_complete", "data": {"toolCallId": "c", "success": True, "result": {"content": "a"}}},
        {"type": "tool.execution_start", "data": {"toolCallId": "d", "toolName": "apply_patch", "arguments": PATCH}},
        {"type": "assistant.message", "data": {"content": "of a sub-agent", "parentToolCallId": "c"}},
        ANSWER,
        ENDED,
        end=ClientEnd(code=0, folder=tmp_path),
    )
    assert events[:5] == [
        Init("m1"),
        ToolUse("Bash", "Bash ls", "c", command="ls"),
        ToolResult("c", True, "a"),
        ToolUse("Edit", "Edit b.txt", "d", path="b.txt"),
        Text("Done."),
    ]
    outcome = Outcome()
    for event in events:
        outcome = add(outcome, event, "")
    assert (outcome.ok, outcome.text, outcome.model) == (True, "Done.", "m1")
    assert (outcome.tokens.input, outcome.tokens.cache_read, outcome.tokens.output) == (1600, 400, 100)


def test_a_busy_server_is_tried_again_and_a_used_up_quota_is_not() -> None:
    busy = [failure(429, "Rate limit reached", "rate_limit_exceeded", at, n) for n, at in enumerate((0, 20, 50))]
    first, second, last = read(*busy)
    assert isinstance(first, Retry)
    assert isinstance(second, Retry)
    assert (first.attempt, first.status, second.attempt) == (1, 429, 2)
    assert isinstance(last, Result)
    assert (last.trouble, last.gives_up) == (Trouble.TRANSPORT, True)
    [quota] = read(failure(429, "You exceeded your current quota.", "insufficient_quota"))
    assert isinstance(quota, Result)
    assert (quota.trouble, quota.gives_up) == (Trouble.BILLING, True)
    message = json.dumps({"type": "usage_limit_reached", "message": "Reached", "resets_at": 1900000000})
    limit, _ = read({"type": "model.call_failure", "data": {"statusCode": 429, "errorMessage": message}})
    assert limit == Limit(True, 1900000000, "Reached")


@pytest.mark.parametrize(
    ("stderr", "trouble"),
    [
        ("Error: No authentication information found.\n\nCopilot can be ...", Trouble.AUTHENTICATION),
        ("Error: Authentication token found but could not be validated.\n\n network fetch failed", Trouble.TRANSPORT),
    ],
)
def test_a_client_that_does_not_start_says_why(stderr: str, trouble: Trouble) -> None:
    [result] = read(end=ClientEnd(code=1, stderr=stderr))
    assert isinstance(result, Result)
    assert result.trouble is trouble


def test_a_masked_output_is_noticed() -> None:
    """With the key `x` the client writes every x as six asterisks, also in its own names."""
    event = {"type": "tool.e******ecution_start", "data": {}}
    [result] = read(event, end=ClientEnd(code=0))
    assert isinstance(result, Result)
    assert "use a longer key" in result.detail
    _, ended = read(ANSWER, {"type": "result", "e******itCode": 0})
    assert isinstance(ended, Result)
    assert ended.ok
    assert "use a longer key" in ended.note
    assert read(ANSWER | {"data": {"content": "The key is ******."}}, ENDED)[-1] == Result(
        ok=True, text="The key is ******.", turns=1
    )


def test_nothing_said_and_nothing_permitted() -> None:
    assert [event.trouble for event in read(ENDED) if isinstance(event, Result)] == [Trouble.EMPTY]
    denied = {"toolCallId": "c", "success": False, "error": {"code": "denied", "message": "Permission denied"}}
    start = {
        "type": "tool.execution_start",
        "data": {"toolCallId": "c", "toolName": "edit", "arguments": {"path": "a"}},
    }
    result = read(start, {"type": "tool.execution_complete", "data": denied}, ANSWER, ENDED)[-1]
    assert isinstance(result, Result)
    assert (result.trouble, result.denials[0].subject) == (Trouble.PERMISSION, "a")


def test_calls_are_judged_in_the_clients_form(tmp_path: Path) -> None:
    run = LiveRun(tmp_path, permissions="guard")

    def answer(tool: str, given: object) -> dict[str, Any]:
        call = {"sessionId": "s", "cwd": str(run.workspace), "toolName": tool, "toolArgs": given}
        return dict(json.loads(respond("PreToolUse", json.dumps(call).encode(), Policy(run.policy), dialect) or "{}"))

    assert "belongs to git" in answer("apply_patch", PATCH)["permissionDecisionReason"]
    assert answer("apply_patch", "nonsense")["permissionDecision"] == "deny"
    assert answer("bash", {"command": "git push"})["permissionDecision"] == "deny"
    assert answer("bash", '{"command": "ls"}')["permissionDecision"] == "allow"
    path = str(run.file("a.txt"))
    assert answer("edit", {"path": path})["permissionDecision"] == "deny"
    assert answer("view", {"path": path})["permissionDecision"] == "allow"
    assert answer("edit", {"path": path})["permissionDecision"] == "allow"
    assert answer("grep", {"pattern": "x", "paths": ["~/.ssh/id_rsa"]})["permissionDecision"] == "deny"
    assert answer("github-create_issue", {}) == {}
    assert {record["session"] for record in run.recorded()} == {"s"}


def test_answers_have_the_clients_form() -> None:
    call = Call("PreToolUse", {}, None, dialect)
    assert json.loads(dialect.write(call, deny("no", "x")))["permissionDecision"] == "deny"
    assert json.loads(dialect.write(call, context("more", "x"))) == {"additionalContext": "more"}
    assert json.loads(dialect.write(call, block("not yet", "x"))) == {"decision": "block", "reason": "not yet"}
    assert json.loads(dialect.FAILED)["permissionDecision"] == "deny"
    assert dialect.read("PostToolUse", {"toolResult": {"textResultForLlm": "1 failed"}})["tool_response"] == "1 failed"
