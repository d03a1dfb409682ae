"""Pi: its command line, its events, its errors, and the calls of the extension."""

import json
from pathlib import Path

import pytest

from ralph.agents import pi
from ralph.core.agent import Init, Result, Text, Tokens, ToolResult, ToolUse, Trouble, Usage
from ralph.core.ports import ClientEnd, HookFiles, Rights, Session
from ralph.hooks.dialects import pi as dialect

USED = {"input": 800, "output": 50, "cacheRead": 200, "cacheWrite": 0, "cost": {"total": 0.5}}


def message(said: str = "", stop: str = "stop", **more: object) -> bytes:
    content = [{"type": "text", "text": said}] if said else []
    whole = {"role": "assistant", "content": content, "model": "m", "usage": USED, "stopReason": stop, **more}
    return json.dumps({"type": "message_end", "message": whole}).encode()


def test_the_prompt_is_on_stdin_and_the_extension_checks_the_end(tmp_path: Path) -> None:
    hooks = HookFiles(settings=tmp_path, env={"X": "1"}, records=tmp_path, state=tmp_path, command="hook")
    given = Session(prompt="Do it.", system="Be brief.", cwd=tmp_path, hooks=hooks, folder=tmp_path, model="a/b")
    found = pi.launch(given, "pi")
    assert found.stdin == b"Do it."
    assert found.argv[-2:] == ("", "/ralph-stop")
    assert found.argv[found.argv.index("--extension") + 1] == str(tmp_path / "pi_extension.js")
    assert found.files["system.md"] == "Be brief."
    assert "--no-session" in found.argv
    assert '"Stop": "hook Stop pi"' in found.files["ralph.js"]
    assert found.env["X"] == "1"


def test_without_hooks_the_extension_only_reports(tmp_path: Path) -> None:
    found = pi.launch(Session(prompt="Do it.", cwd=tmp_path, folder=tmp_path, keep=True), "pi")
    assert found.files["ralph.js"].startswith("const HOOKS = {};\n")
    assert "/ralph-stop" not in found.argv
    assert "--no-session" not in found.argv


@pytest.mark.parametrize(
    ("rights", "tools"),
    [
        (Rights(tools="Read,Bash", disallowed_tools="Edit"), "read,grep,find,ls"),
        (Rights(disallowed_tools="WebFetch,Edit"), "read,bash,write"),
    ],
)
def test_denied_tools_are_not_there(rights: Rights, tools: str, tmp_path: Path) -> None:
    argv = pi.launch(Session(prompt="Look.", cwd=tmp_path, folder=tmp_path, rights=rights), "pi").argv
    assert argv[argv.index("--tools") + 1] == tools


def test_a_session_adds_up() -> None:
    read = pi.reader()
    assert list(read(b'{"type":"session","id":"s1","cwd":"/w"}')) == [Init(session="s1")]
    start = {"type": "tool_execution_start", "toolCallId": "c1", "toolName": "bash", "args": {"command": "ls"}}
    assert list(read(json.dumps(start).encode())) == [ToolUse("Bash", "Bash ls", "c1", "", "ls")]
    end = {"type": "tool_execution_end", "toolCallId": "c1", "result": {"content": [{"text": "a"}]}, "isError": False}
    assert list(read(json.dumps(end).encode())) == [ToolResult("c1", True, "a")]
    assert list(read(message("Done."))) == [Usage(1000, Tokens(800, 50, 200)), Text("Done.")]
    (result,) = read.finish(ClientEnd(code=0))  # type: ignore[attr-defined]
    tokens = Tokens(800, 50, 200)
    assert result == Result(ok=True, text="Done.", cost_usd=0.5, tokens=tokens, turns=1, models=("m",))


def test_repetitions_are_passed_over() -> None:
    lines = b'{"type":"message_update","message":{}}\n{"type":"session","id":"s"}\n{"type":"agent_end","messages":[]}'
    assert pi.reader().skim(lines) == [b'{"type":"session","id":"s"}']  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("error", "trouble"),
    [
        ("401 Incorrect API key provided: x.", Trouble.AUTHENTICATION),
        ("404 The model `nope` does not exist or you do not have access to it.", Trouble.MODEL),
        ("429 Rate limit reached for requests", Trouble.TRANSPORT),
        ("500 The server had an error while processing your request.", Trouble.TRANSPORT),
        ("terminated", Trouble.TRANSPORT),
    ],
)
def test_an_error_is_one_although_the_client_ends_well(error: str, trouble: Trouble) -> None:
    read = pi.reader()
    list(read(message(stop="error", errorMessage=error)))
    *_, result = read.finish(ClientEnd(code=0))  # type: ignore[attr-defined]
    assert not result.ok
    assert result.trouble is trouble


def test_a_retry_that_works_is_no_error() -> None:
    read = pi.reader()
    list(read(message(stop="error", errorMessage="500 oops")))
    list(read(message("Done.")))
    (result,) = read.finish(ClientEnd(code=0))  # type: ignore[attr-defined]
    assert result.ok


def test_a_quota_ends_the_client_at_once() -> None:
    body = json.dumps({"error": {"type": "insufficient_quota", "message": "You exceeded your current quota"}})
    line = b"ralph: " + json.dumps({"status": 429, "after": "", "body": body}).encode()
    *_, result = pi.reader().error(line)  # type: ignore[attr-defined]
    assert result.gives_up
    assert result.trouble is Trouble.BILLING


def test_a_missing_key_is_told_by_stderr() -> None:
    (result,) = pi.reader().finish(ClientEnd(code=1, stderr="No API key found for anthropic."))  # type: ignore[attr-defined]
    assert result.trouble is Trouble.AUTHENTICATION


def test_a_path_is_judged_as_the_client_reads_it() -> None:
    values = dialect.read("PreToolUse", {"session": "s", "tool": "write", "args": {"path": "@a\u00a0b.py"}})
    assert values["tool_name"] == "Write"
    assert values["tool_input"] == {"file_path": "a b.py"}


def test_a_sandbox_reaches_what_the_user_has_set(tmp_path: Path) -> None:
    folder = tmp_path / ".pi/agent"
    folder.mkdir(parents=True)
    (folder / "models.json").write_text('{"providers": {"own": {"baseUrl": "http://127.0.0.1:8000/v1"}}}')
    assert pi.hosts({"HOME": str(tmp_path)}) == ("127.0.0.1:8000",)
    assert pi.hosts({"HOME": str(tmp_path), "XAI_API_KEY": "x"}) == ("127.0.0.1:8000", "api.x.ai")
    (folder / "auth.json").write_text("{}")
    assert "api.anthropic.com" in pi.hosts({"HOME": str(tmp_path)})
    assert pi.login({}, tmp_path).by == str(folder / "auth.json")
