from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ralph.agents import goose
from ralph.agents.goose_events import GooseEvents
from ralph.core.agent import AgentEvent, Limit, Outcome, Text, Tokens, ToolResult, ToolUse, Trouble, add
from ralph.core.errors import SetupError
from ralph.core.ports import ClientEnd, HookFiles, Launch
from ralph.hooks.call import Answer, Call
from ralph.hooks.dialects import goose as dialect
from support.sessions import session_of

DONE = {"type": "complete", "total_tokens": 2100, "input_tokens": 2000, "output_tokens": 100}
CACHED = {"cache_read_input_tokens": 400, "cache_write_input_tokens": 0}
LOGGED = (
    'Provider request failed with status: 429 Too Many Requests. Payload: Some(Object {"error": Object {"type": '
    'String("usage_limit_reached"), "message": String("The usage limit has been reached"), "resets_at": '
    "Number(1900000000)}}). Returning error: RateLimitExceeded"
)


def launch(folder: Path, **fields: Any) -> Launch:
    session = session_of(prompt="Do the work.", cwd=folder, **fields)
    return goose.launch(msgspec.structs.replace(session, folder=folder / "own"), "/opt/goose")


def message(*content: dict[str, Any], role: str = "assistant", id: str = "a") -> dict[str, Any]:
    inference = {"inference": {"provider": "openai", "requestedModel": "m1"}}
    return {"type": "message", "message": {"id": id, "role": role, "content": content, "metadata": inference}}


def said(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def failed(text: str) -> dict[str, Any]:
    end = "Please retry if you think this is a transient or recoverable error."
    return message(said(f"Ran into this error: {text}.\n\n{end}"))


def heard(
    *events: dict[str, Any], code: int = 0, stderr: str = "", folder: Path = Path("/nonexistent")
) -> list[AgentEvent]:
    read = GooseEvents()
    found = [event for line in events for event in read(json.dumps(line).encode())]
    return found + read.finish(ClientEnd(code=code, stderr=stderr, folder=folder))


def outcome(*events: dict[str, Any], **end: Any) -> Outcome:
    found = Outcome()
    for event in heard(*events, **end):
        found = add(found, event, "<promise>COMPLETE</promise>")
    return found


def test_it_has_a_root_of_its_own_and_the_prompt_on_stdin(tmp_path: Path) -> None:
    found = launch(tmp_path, system="Know this.", model="m1", permissions="guard")
    assert found.stdin == b"Know this.\n\nDo the work."
    assert found.argv[-4:] == ("--instructions", "-", "--model", "m1")
    assert found.env["GOOSE_PATH_ROOT"] == str(tmp_path / "own")
    assert found.env["GOOSE_MODE"] == "auto"
    assert "GOOSE_MODE" not in launch(tmp_path, permissions="client").env
    assert not found.files


def test_a_hook_denies_also_when_it_fails_and_not_in_a_version_that_would_ignore_it(tmp_path: Path) -> None:
    hooks = HookFiles(tmp_path, {"RALPH_NONCE": "n"}, tmp_path, tmp_path, "hook", " || exit 2")
    found = launch(tmp_path, hooks=hooks)
    assert found.env["RALPH_NONCE"] == "n"
    plugin = json.loads(found.files[".agents/plugins/ralph/hooks/hooks.json"])["hooks"]
    [before] = plugin["PreToolUse"][0]["hooks"]
    assert before["on_failure"] == "block"
    assert before["command"].endswith("hook PreToolUse goose || exit 2")
    assert "*1.3[0-4].*) exit 0" in plugin["SessionStart"][0]["hooks"][0]["command"]


def test_a_missing_program_is_told_with_the_fix(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="goose is not installed"):
        goose.find(session_of(prompt="", cwd=tmp_path), str(tmp_path))


def test_the_users_own_address_replaces_the_hosts(tmp_path: Path) -> None:
    assert goose.hosts({"OPENAI_HOST": "http://localhost:1234"}) == ("localhost:1234",)
    assert goose.hosts({"GOOSE_PROVIDER": "anthropic"}) == ("api.anthropic.com",)
    settings = tmp_path / ".config/goose/config.yaml"
    settings.parent.mkdir(parents=True)
    settings.write_text("extensions:\n  memory: x\nGOOSE_PROVIDER: openai\nOPENAI_HOST: 'https://gateway.example'\n")
    assert goose.hosts({"HOME": str(tmp_path)}) == ("gateway.example:443",)


def test_the_pieces_of_a_text_are_one_message() -> None:
    request = {"type": "toolRequest", "id": "1"}
    request["toolCall"] = {"status": "success", "value": {"name": "write", "arguments": {"path": "a.py"}}}  # type: ignore[assignment]
    response = {"type": "toolResponse", "id": "1", "toolResult": {"status": "success", "value": {"isError": True}}}
    events = heard(
        message(request),
        message(response, role="user", id="b"),
        message(said("All ")),
        message(said("done.")),
        DONE | CACHED,
    )
    assert [event for event in events if isinstance(event, Text)] == [Text("All done.")]
    assert ToolUse("write", "write a.py", "1", "a.py") in events
    assert ToolResult("1", False) in events
    found = outcome(message(said("All done.")), DONE | CACHED)
    assert (found.ok, found.model, found.tokens) == (True, "m1", Tokens(1600, 100, 400))


@pytest.mark.parametrize(
    ("text", "trouble"),
    [
        ("Authentication error: Authentication failed. Status: 401 Unauthorized", Trouble.AUTHENTICATION),
        ("Request failed: Resource not found (404): The model `nope` does not exist", Trouble.MODEL),
        ("Rate limit exceeded: Rate limit reached for requests", Trouble.TRANSPORT),
        ("Rate limit exceeded: You exceeded your current quota, please check your plan", Trouble.LIMIT),
        ("Server error: Server error (500 Internal Server Error): The server had an error", Trouble.TRANSPORT),
    ],
)
def test_an_error_comes_as_text_with_exit_code_0(text: str, trouble: Trouble) -> None:
    found = outcome(failed(text), DONE)
    assert (found.ok, found.trouble, found.text) == (False, trouble, "")


def test_the_end_of_a_limit_is_in_the_log(tmp_path: Path) -> None:
    log = tmp_path / "state/logs/cli/2026-01-01/1.log"
    log.parent.mkdir(parents=True)
    log.write_text(json.dumps({"fields": {"message": LOGGED}}) + "\n")
    events = heard(failed("Rate limit exceeded: The usage limit has been reached"), DONE, folder=tmp_path)
    assert [event.resets_at for event in events if isinstance(event, Limit)] == [1_900_000_000]


def test_an_empty_answer_and_a_missing_provider_are_told_apart() -> None:
    empty = message(said("The model returned an empty response. Please resend your message to continue."))
    assert outcome(empty, DONE).trouble is Trouble.EMPTY
    assert outcome(code=1, stderr="error: No provider configured. Run 'goose configure'").trouble is (
        Trouble.AUTHENTICATION
    )


def test_its_hook_calls_are_read_and_answered() -> None:
    values = {"event": "PreToolUse", "session_id": "s", "tool_name": "developer__edit", "working_dir": "/w"}
    found = dialect.read("PreToolUse", values | {"tool_input": {"path": "a", "before": "x", "after": "y"}})
    assert (found["tool_name"], found["cwd"]) == ("Edit", "/w")
    assert found["tool_input"] == {"file_path": "a", "old_string": "x", "new_string": "y"}
    image = dialect.read(
        "PreToolUse", values | {"tool_name": "read_image", "tool_input": {"source": "https://x/y.png"}}
    )
    assert image["tool_name"] == "WebFetch"
    call = Call("PreToolUse", found, None, dialect)
    assert json.loads(dialect.write(call, Answer("deny", "no"))) == {"decision": "block", "reason": "no"}
    assert dialect.write(call, Answer("allow")) == ""
    assert json.loads(dialect.FAILED)["decision"] == "block"
