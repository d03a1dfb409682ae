"""opencode: its command line, its events, its errors, and the calls of the plugin."""

import json
from pathlib import Path

import pytest

from ralph.agents import opencode
from ralph.core.agent import Limit, Result, Retry, Text, Tokens, ToolResult, ToolUse, Trouble, Usage
from ralph.core.errors import SetupError
from ralph.core.ports import ClientEnd, HookFiles, Rights, Session
from ralph.hooks.call import Call, block, context, deny
from ralph.hooks.dialects import opencode as dialect

CONTENT = "OPENCODE_CONFIG_CONTENT"
TOKENS = {"total": 1050, "input": 800, "output": 40, "reasoning": 10, "cache": {"write": 0, "read": 200}}


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (CONTENT, "OPENCODE_PERMISSION"):
        monkeypatch.delenv(name, raising=False)


def session(tmp_path: Path, **more: object) -> Session:
    hooks = HookFiles(settings=tmp_path, env={"X": "1"}, records=tmp_path, state=tmp_path, command="hook")
    given = {"prompt": "Do it.", "cwd": tmp_path, "hooks": hooks, "folder": tmp_path / "own", **more}
    return Session(**given)  # type: ignore[arg-type]


def line(kind: str, **more: object) -> bytes:
    return json.dumps({"type": kind, "sessionID": "ses_1", **more}).encode()


def report(**values: object) -> bytes:
    return b"ralph: " + json.dumps(values).encode()


def test_the_prompt_is_on_stdin_and_the_plugin_beside(tmp_path: Path) -> None:
    found = opencode.launch(
        session(tmp_path, system="Be brief.", model="a/b", rights=Rights(permissions="guard")), "oc"
    )
    assert found.stdin == b"Be brief.\n\nDo it."
    assert "--auto" in found.argv
    assert found.argv[found.argv.index("--model") + 1] == "a/b"
    assert not any("Do it" in word for word in found.argv)
    assert json.loads(found.env[CONTENT])["plugin"] == [(tmp_path / "own/opencode_plugin.js").as_uri()]
    assert '"PreToolUse": "hook PreToolUse opencode"' in found.files["ralph.js"]
    assert found.env["X"] == "1"


def test_with_the_rules_of_the_client_nothing_is_approved(tmp_path: Path) -> None:
    assert "--auto" not in opencode.launch(session(tmp_path, rights=Rights(permissions="client")), "oc").argv


def test_a_session_that_only_looks_may_run_what_is_allowed(tmp_path: Path) -> None:
    rights = Rights(tools="Read,Bash", allowed_tools="Read,Bash(git log *)", disallowed_tools="Write,WebFetch")
    found = json.loads(opencode.launch(session(tmp_path, rights=rights), "oc").env["OPENCODE_PERMISSION"])
    assert found["bash"] == {"*": "deny", "git log *": "allow"}
    assert found["edit"] == found["webfetch"] == {"*": "deny"}


def test_the_users_own_settings_in_the_variable_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(CONTENT, '{"model": "a/b", "plugin": ["mine"]}')
    found = json.loads(opencode.launch(session(tmp_path, hooks=None), "oc").env[CONTENT])
    assert found["model"] == "a/b"
    assert found["plugin"][0] == "mine"
    assert len(found["plugin"]) == 2
    monkeypatch.setenv(CONTENT, "[]")
    with pytest.raises(SetupError, match=CONTENT):
        opencode.launch(session(tmp_path), "oc")


def test_a_session_adds_up() -> None:
    read = opencode.reader()
    state = {"status": "completed", "input": {"filePath": "a.py"}, "output": "ok", "time": {"start": 1000, "end": 3000}}
    begun = list(read.error(report(call="c1", tool="write", args={"filePath": "a.py"}, paths=["a.py"])))  # type: ignore[attr-defined]
    assert begun == [ToolUse("Write", "Write a.py", "c1", "a.py")]
    events = list(read(line("tool_use", part={"tool": "write", "callID": "c1", "state": state})))
    assert events[1:] == [ToolResult("c1", True, "ok", 2.0)], "the call is known already"
    assert list(read(line("step_finish", part={"tokens": TOKENS, "cost": 0.5}))) == [Usage(1000, Tokens(800, 50, 200))]
    assert list(read(line("text", part={"text": "Done."}))) == [Text("Done.")]
    read.error(report(tokens=TOKENS, cost=0.25))  # type: ignore[attr-defined]
    (result,) = read.finish(ClientEnd(code=0))  # type: ignore[attr-defined]
    assert result == Result(ok=True, text="Done.", cost_usd=0.75, tokens=Tokens(1600, 100, 400), turns=1)


def test_every_file_of_a_patch_is_the_agents_work() -> None:
    read = opencode.reader()
    events = list(read.error(report(call="c1", tool="apply_patch", args={}, paths=["a.py", "b.py"])))  # type: ignore[attr-defined]
    assert [event.path for event in events] == ["a.py", "b.py"]


@pytest.mark.parametrize(
    ("error", "stderr", "trouble"),
    [
        ({"name": "APIError", "data": {"message": "Incorrect API key", "statusCode": 401}}, "", Trouble.AUTHENTICATION),
        ({"name": "APIError", "data": {"message": "No such model", "statusCode": 404}}, "", Trouble.MODEL),
        ({"name": "APIError", "data": {"message": "broken", "statusCode": 500}}, "", Trouble.TRANSPORT),
        (
            {"name": "UnknownError", "data": {"message": "Unexpected server error. Check server logs for details."}},
            'level=ERROR error="ProviderModelNotFoundError: Model not found: a/b."',
            Trouble.MODEL,
        ),
    ],
)
def test_an_error_says_what_to_do(error: dict[str, object], stderr: str, trouble: Trouble) -> None:
    read = opencode.reader()
    list(read(line("error", error=error)))
    (result,) = read.finish(ClientEnd(code=1, stderr=stderr))  # type: ignore[attr-defined]
    assert not result.ok
    assert result.trouble is trouble


def test_a_limit_ends_the_client_at_once() -> None:
    read = opencode.reader()
    body = json.dumps({"error": {"type": "usage_limit_reached", "message": "The limit", "resets_at": 1900000000}})
    retry, limit, result = read.error(report(status=429, after="", body=body))  # type: ignore[attr-defined]
    assert retry == Retry(1, 429, "The limit")
    assert limit == Limit(True, 1900000000.0, "The limit")
    assert result.gives_up
    assert result.trouble is Trouble.LIMIT
    assert read.finish(ClientEnd(code=None)) == []  # type: ignore[attr-defined]


def test_a_busy_service_is_given_a_while_but_no_long_pause() -> None:
    read = opencode.reader()
    assert read.error(report(status=500, after="", body="oops")) == [Retry(1, 500, "oops")]  # type: ignore[attr-defined]
    *_, result = read.error(report(status=503, after="900", body="oops"))  # type: ignore[attr-defined]
    assert result.gives_up
    assert result.trouble is Trouble.TRANSPORT


def test_a_session_without_an_answer_is_empty() -> None:
    (result,) = opencode.reader().finish(ClientEnd(code=0))  # type: ignore[attr-defined]
    assert result.trouble is Trouble.EMPTY


def test_calls_of_the_plugin_have_the_names_of_the_rules() -> None:
    given: dict[str, object] = {"session": "s", "cwd": "/w", "call": "c", "tool": "edit", "args": {"filePath": "a.py"}}
    values = dialect.read("PreToolUse", given)
    assert (values["tool_name"], values["tool_input"], values["cwd"]) == ("Edit", {"file_path": "a.py"}, "/w")
    assert dialect.read("Stop", {"session": "s", "again": True})["stop_hook_active"] is True
    failed = dialect.read("PostToolUseFailure", {**given, "tool": "bash", "output": "1 failed"})
    assert failed["tool_name"] == "Bash"
    assert failed["error"] == "1 failed"


def test_answers_are_what_the_plugin_reads() -> None:
    call = Call("PreToolUse", {}, None, dialect)
    assert json.loads(dialect.write(call, deny("no", "x"))) == {"deny": "no"}
    assert json.loads(dialect.write(call, block("no", "x"))) == {"block": "no"}
    assert json.loads(dialect.write(call, context("hm", "x"))) == {"context": "hm"}
    assert "deny" in json.loads(dialect.FAILED)
