"""Gemini CLI: its command line and private settings, its events, its errors, and its hook calls."""

import json
import time
from pathlib import Path

import pytest

from ralph.agents import gemini
from ralph.core.agent import Init, Limit, ModelUse, Result, Retry, Text, Tokens, ToolResult, ToolUse, Trouble
from ralph.core.ports import ClientEnd, HookFiles, Launch, Rights, Session
from ralph.hooks.call import Call, block, context, deny
from ralph.hooks.dialects import gemini as dialect

USED = {"total_tokens": 2120, "input_tokens": 2000, "output_tokens": 100, "cached": 400, "input": 1600}
RETRY = '{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}'


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("GEMINI_API_KEY", "GEMINI_CLI_HOME"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / ".gemini").mkdir()
    return tmp_path


def launched(home: Path, **more: object) -> Launch:
    hooks = HookFiles(settings=home, env={"X": "1"}, records=home, state=home, command="hook", or_deny=" || no")
    given = {"prompt": "Do it.", "cwd": home, "folder": home / "own", "hooks": hooks, **more}
    return gemini.launch(Session(**given), "gemini")  # type: ignore[arg-type]


def line(kind: str, **more: object) -> bytes:
    return json.dumps({"type": kind, "timestamp": "2026-01-01T00:00:00Z", **more}).encode()


def ended(message: str) -> list[object]:
    return list(
        gemini.reader()(line("result", status="error", error={"type": "unknown", "message": message}, stats={}))
    )


def test_the_settings_are_in_a_private_folder(home: Path) -> None:
    own = {
        "security": {"auth": {"selectedType": "oauth-personal"}},
        "hooks": {"BeforeTool": []},
        "mcpServers": {"x": {}},
    }
    (home / ".gemini/settings.json").write_text(json.dumps(own))
    found = launched(home, system="Be brief.", model="m", checkout=home / "project")
    assert found.stdin == b"Be brief.\n\nDo it."
    assert found.argv[1:] == (
        *("--output-format", "stream-json", "--extensions", "none", "--model", "m"),
        *("--include-directories", str(home / "project")),
    )
    assert found.env["GEMINI_CLI_HOME"] == str(home / "own")
    assert found.env["X"] == "1"
    assert found.links[".gemini/oauth_creds.json"] == str(home / ".gemini/oauth_creds.json")
    settings = json.loads(found.files[".gemini/settings.json"])
    assert settings["security"] == own["security"]
    assert "mcpServers" not in settings
    assert settings["general"]["maxAttempts"] == 4
    [entry] = settings["hooks"]["BeforeTool"]
    assert entry["hooks"][0]["command"] == "hook PreToolUse gemini || no"


def test_a_key_without_settings_is_chosen(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", "k")
    found = launched(home, rights=Rights(permissions="guard"), hooks=None)
    settings = json.loads(found.files[".gemini/settings.json"])
    assert settings["security"]["auth"]["selectedType"] == "gemini-api-key"
    assert "hooks" not in settings
    assert found.argv[-2:] == ("--approval-mode", "yolo")


def test_rules_for_tools_become_a_policy(home: Path) -> None:
    rights = Rights(allowed_tools="Read,Bash(git log *)", disallowed_tools="Bash(git push:*),Edit")
    policy = launched(home, rights=rights).files[".gemini/policies/ralph.toml"]
    assert 'commandPrefix = "git log"\ndecision = "allow"' in policy
    assert 'commandPrefix = "git push"\ndecision = "deny"' in policy
    assert 'toolName = ["replace"]\ndecision = "deny"' in policy


def test_a_session_adds_up() -> None:
    read = gemini.reader()
    assert list(read(line("init", session_id="s", model="m"))) == [Init("m", "s")]
    assert not list(read(line("message", role="user", content="Do it.")))
    assert not list(read(line("message", role="assistant", content="I ", delta=True)))
    assert not list(read(line("message", role="assistant", content="write.", delta=True)))
    use = line("tool_use", tool_name="write_file", tool_id="t", parameters={"file_path": "/w/a", "content": "x"})
    assert list(read(use)) == [Text("I write."), ToolUse("Write", "Write /w/a", "t", "/w/a")]
    failed = line("tool_result", tool_id="t", status="error", error={"type": "x", "message": "no"})
    assert list(read(failed)) == [ToolResult("t", False, "no")]
    read(line("message", role="assistant", content="Done.", delta=True))
    tokens = Tokens(1600, 120, 400)
    result = Result(ok=True, text="Done.", tokens=tokens, turns=2, models=("m",), uses=(ModelUse("m", tokens),))
    assert list(read(line("result", status="success", stats={**USED, "models": {"m": USED}}))) == [
        Text("Done."),
        result,
    ]


@pytest.mark.parametrize(
    ("message", "trouble"),
    [
        ('[API Error: {"error":{"code":400,"message":"API key not valid."}}]', Trouble.AUTHENTICATION),
        ("[API Error: models/nope is not found for API version v1beta]", Trouble.MODEL),
        ("[API Error: You have exhausted your daily quota on this model.]", Trouble.LIMIT),
    ],
)
def test_an_error_is_understood(message: str, trouble: Trouble) -> None:
    found = ended(message)[-1]
    assert isinstance(found, Result)
    assert not found.ok
    assert found.trouble is trouble


def test_the_time_of_a_reset_is_understood() -> None:
    limit, result = ended("[API Error: You exceeded your current quota.\nSuggested retry after 1800s.]")
    assert isinstance(limit, Limit)
    assert limit.resets_at is not None
    assert abs(limit.resets_at - time.time() - 1800) < 60
    assert isinstance(result, Result)
    assert result.trouble is Trouble.LIMIT


def test_it_does_not_retry_for_minutes() -> None:
    read = gemini.reader()
    tell = read.error  # type: ignore[attr-defined]
    for number in range(1, 4):
        told = f"Attempt {number} failed with status 503. Retrying with backoff... _ApiError: {RETRY}"
        assert list(tell(told.encode())) == [Retry(number, 503, "The model is overloaded.")]
    assert not list(tell(b"    at throwErrorIfNotOK (file:///x.js:1:1)"))
    [_] = tell(b"Attempt 4 failed: x. Max attempts reached")
    [_, last] = tell(b"Attempt 1 failed with status 503. Retrying with backoff... _ApiError: x")
    assert last.gives_up
    assert last.trouble is Trouble.TRANSPORT
    [_, limit, last] = gemini.reader().error(b"Attempt 1 failed: No quota. Retrying after 1800000ms...")  # type: ignore[attr-defined]
    assert limit.rejected
    assert last.gives_up
    assert last.trouble is Trouble.LIMIT


def test_a_client_without_a_login_and_one_without_an_answer() -> None:
    [result] = gemini.reader().finish(ClientEnd(code=41, stderr="Please set an Auth method"))  # type: ignore[attr-defined]
    assert result.trouble is Trouble.AUTHENTICATION
    [empty] = gemini.reader()(line("result", status="success", stats={}))
    assert isinstance(empty, Result)
    assert empty.trouble is Trouble.EMPTY


def test_hook_calls_are_translated() -> None:
    given = {"command": "pytest", "dir_path": "sub"}
    values: dict[str, object] = {
        "tool_name": "run_shell_command",
        "cwd": "/w",
        "tool_input": given,
        "tool_response": {"llmContent": "1 failed"},
    }
    found = dialect.read("PostToolUse", values)
    assert (found["tool_name"], found["cwd"], found["tool_response"]) == ("Bash", "/w/sub", "1 failed")
    call = Call("PreToolUse", found, None, dialect)
    assert json.loads(dialect.write(call, deny("no", "x"))) == {"decision": "deny", "reason": "no"}
    assert json.loads(dialect.write(call, block("wait", "x"))) == {"decision": "deny", "reason": "wait"}
    assert "additionalContext" in dialect.write(call, context("full", "x"))
    assert json.loads(dialect.FAILED)["decision"] == "deny"
