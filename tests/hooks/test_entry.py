"""Hooks as processes: what goes in, what comes out, and that nothing a caller does breaks one."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from ralph import hooks
from ralph.hooks.entry import MODULES, respond
from ralph.hooks.policy import Policy
from ralph.session.hook_policy import EVENTS, client_settings, hook_command
from support.hook_calls import BY_NAME, Answered, LiveRun, call

SAMPLES = sorted((Path(__file__).parent / "samples").glob("*.json"))
FORMS = {"by name": BY_NAME, "as installed": tuple(shlex.split(hook_command()))}


@pytest.fixture
def run(tmp_path: Path) -> LiveRun:
    return LiveRun(tmp_path)


# What the seeds call "Testing Hook Installation": the older form, by hand, without a run.


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("event", "given", "expected"),
    [
        (
            "PreToolUse",
            '{"tool_name":"Edit","tool_input":{"file_path":"/tmp/test.txt"}}',
            {"decision": "block", "message": "Must Read file before Edit: /tmp/test.txt"},
        ),
        ("PreToolUse", '{"tool_name":"Read","tool_input":{"file_path":"/tmp/test"}}', {"decision": "allow"}),
        ("pre-tool", '{"tool_name":"Read","tool_input":{"file_path":"/tmp/test"}}', {"decision": "allow"}),
        ("PostToolUse", '{"tool_name":"Bash","tool_output":"Tests: 1 failed"}', None),
        ("Stop", '{"stop_reason":"max_tokens"}', None),
        ("UserPromptSubmit", '{"prompt":"test prompt"}', None),
    ],
)
def test_the_older_form_is_answered_in_the_older_form(event: str, given: str, expected: object, form: str) -> None:
    done = call(event, given + "\n", command=FORMS[form])
    assert (done.code, done.err) == (0, "")
    assert (json.loads(done.out) if done.out else None) == expected


def test_a_push_is_blocked_by_hand_too() -> None:
    done = call("PreToolUse", {"tool_name": "Bash", "tool_input": {"command": "git push origin main"}})
    assert done.values["decision"] == "block"
    assert done.values["message"]


# The current form.


def test_a_denial_is_written_as_the_client_reads_it(run: LiveRun) -> None:
    done = run.use("Edit", run.file("a.txt"))
    assert done.values == {
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": "deny",
            "permissionDecisionReason": done.reason,
        }
    }
    assert "Read it first" in done.reason


def test_both_ways_of_calling_give_the_same_answer(run: LiveRun) -> None:
    path = run.file("a.txt")
    given = {"tool_name": "Edit", "tool_input": {"file_path": str(path)}}
    one, other = (run.call("PreToolUse", command=form, **given) for form in FORMS.values())
    assert one == other
    assert one.kind == "deny"


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
def test_what_the_client_really_sends_is_taken_and_recorded(run: LiveRun, sample: Path) -> None:
    values = json.loads(sample.read_text().replace("/home/dev/project", str(run.workspace)))
    event = values["hook_event_name"]
    done = call(event, values, run.env)
    assert (done.code, done.err) == (0, "")
    if event not in MODULES:
        assert (done.out, run.recorded()) == ("", [])
        return
    last = run.recorded()[-1]
    assert (last["event"], last["session"]) == (event, values["session_id"])
    assert last["tool"] == values.get("tool_name", "")
    if sample.stem != "PreToolUse_Bash":  # what the command guard says is tested where it lives
        assert done.out == ""


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
def test_hooks_are_silent_without_a_run(run: LiveRun, sample: Path) -> None:
    event = json.loads(sample.read_text())["hook_event_name"]
    done = call(event, sample.read_bytes())
    assert done == (0, "", "")
    assert run.recorded() == []


def alone(event: str, values: Mapping[str, object], env: dict[str, str]) -> Answered:
    """As the client of a run calls a hook: without a terminal."""
    command = ("setsid", "--wait", *shlex.split(hook_command()))
    return call(event, {"hook_event_name": event, **values}, env, command=command)


def trouble_with(run: LiveRun, trouble: str) -> dict[str, str]:
    env = dict(run.env)
    match trouble:
        case "wrong nonce":
            env["RALPH_NONCE"] = "another"
        case "no nonce":
            env["RALPH_NONCE"] = ""
        case "moved policy":
            env["RALPH_POLICY"] = str(run.state / "none.json")
        case "broken policy":
            Path(env["RALPH_POLICY"]).write_text('{"nonce": "n0nce", ')
        case "dead run":
            with subprocess.Popen([sys.executable, "-c", ""]) as over:
                over.wait()
            run.policy["pid"] = over.pid
            run.write()
        case "another process with its number":
            run.policy["pid_start"] = "17@00000000"
            run.write()
        case "odd pid":
            run.policy["pid"] = float("nan")
            run.write()
    return env


LOST = ["wrong nonce", "moved policy", "broken policy", "dead run", "another process with its number", "odd pid"]


@pytest.mark.skipif(sys.platform != "linux", reason="needs setsid and /proc")
@pytest.mark.parametrize("trouble", LOST)
def test_a_client_without_its_run_or_policy_may_read_and_change_nothing(run: LiveRun, trouble: str) -> None:
    path = run.file("a.txt")
    env = trouble_with(run, trouble)
    for tool, values in [
        ("Bash", {"command": "echo harmless"}),
        ("Write", {"file_path": str(path)}),
        ("Agent", {}),
        ("mcp__x__y", {}),
    ]:
        done = alone("PreToolUse", {"tool_name": tool, "tool_input": values}, env)
        assert (done.code, done.err, done.kind) == (0, "", "deny"), tool
        assert "end your turn" in done.reason
    for event, tool in [("PreToolUse", "Read"), ("PostToolUse", "Bash"), ("SessionStart", ""), ("Stop", "")]:
        assert alone(event, {"tool_name": tool, "tool_input": {"file_path": str(path)}}, env) == (0, "", "")
    assert run.recorded() == []


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_a_hook_ends_the_client_of_a_dead_run(run: LiveRun, tmp_path: Path) -> None:
    env = trouble_with(run, "dead run")
    client = tmp_path / "claude"
    given = json.dumps({"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": "git push"}})
    client.write_text(f"#!/bin/sh\necho '{given}' | {hook_command()} PreToolUse\nsleep 60\necho still here\n")
    client.chmod(0o755)
    begun = time.monotonic()
    done = subprocess.run(
        [str(client)], env={**os.environ, **env}, start_new_session=True, capture_output=True, text=True, check=False
    )
    assert done.returncode == -signal.SIGTERM
    assert time.monotonic() - begun < 20
    assert '"deny"' in done.stdout
    assert "still here" not in done.stdout


def test_hooks_are_silent_in_an_environment_without_a_nonce(run: LiveRun) -> None:
    env = trouble_with(run, "no nonce")
    path = run.file("a.txt")
    assert alone("PreToolUse", {"tool_name": "Edit", "tool_input": {"file_path": str(path)}}, env) == (0, "", "")


def test_hooks_are_silent_for_a_person_whose_environment_names_a_run_that_is_over(run: LiveRun) -> None:
    """A client of a run has no terminal; this one has."""
    env = trouble_with(run, "dead run")
    given = {"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": "git push"}}
    (run.state / "call.json").write_text(json.dumps(given))
    line = f"{hook_command()} PreToolUse < {shlex.quote(str(run.state / 'call.json'))} > {run.state}/said"
    command = ["script", "-qec", line, "/dev/null"]
    done = subprocess.run(
        command, env={**os.environ, **env}, capture_output=True, timeout=30, check=False, start_new_session=True
    )
    assert done.returncode == 0, done
    assert (run.state / "said").read_text() == ""


# What fails before a tool call denies it.


def strict_command() -> str:
    return str(client_settings(strict=True)["hooks"]["PreToolUse"][0]["hooks"][0]["command"])


def as_the_client(
    command: str, env: dict[str, str], values: Mapping[str, object]
) -> subprocess.CompletedProcess[bytes]:
    """A client gives the command to a shell; exit code 2 denies the call."""
    given = json.dumps({"hook_event_name": "PreToolUse", **values}).encode()
    env = {**os.environ, **env}
    return subprocess.run(["sh", "-c", command], input=given, env=env, capture_output=True, timeout=60, check=False)


@pytest.mark.skipif(sys.platform != "linux", reason="needs a limit on addresses")
@pytest.mark.parametrize("kilobytes", [5_000, 12_000, 16_000, 20_000, 24_000, 32_000, 40_000, 60_000])
def test_too_little_memory_denies_a_risky_call(run: LiveRun, kilobytes: int) -> None:
    risky = {"tool_name": "Bash", "tool_input": {"command": "git push origin main"}, "cwd": str(run.workspace)}
    done = as_the_client(f"ulimit -v {kilobytes}; {strict_command()}", run.env, risky)
    assert done.returncode == 2 or b'"deny"' in done.stdout, done


def test_a_failing_import_denies_a_risky_call(run: LiveRun, tmp_path: Path) -> None:
    broken = tmp_path / "lib" / "ralph"
    for name in ("hooks", "guard", "results"):
        copied = Path(hooks.__file__).parents[1] / name
        shutil.copytree(copied, broken / name, ignore=shutil.ignore_patterns("__pycache__"))
    (broken / "__init__.py").touch()
    inside = str(Path(hooks.__file__).parents[2]).replace("'", "'\"'\"'")  # as the shell's quotes have it
    command = strict_command().replace(inside, str(tmp_path / "lib"))
    risky = {"tool_name": "Bash", "tool_input": {"command": "git push origin main"}, "cwd": str(run.workspace)}
    assert b'"deny"' in as_the_client(command, run.env, risky).stdout
    for name, text in [
        ("guard/decision.py", "import nothing_of_this_name\n"),
        ("hooks/pre_tool.py", "x ="),
        ("hooks/entry.py", "x ="),
    ]:
        (broken / name).write_text(text)
        done = as_the_client(command, run.env, risky)
        assert done.returncode == 2 or b'"deny"' in done.stdout, name
    shutil.rmtree(broken / "hooks")
    done = as_the_client(command, run.env, risky)
    assert (done.returncode, b"was not checked" in done.stderr) == (2, True)


@pytest.mark.parametrize(
    ("words", "kind"),
    [(["git", "push", "origin"], "deny"), (["bash", "-lc", "git push"], "deny"), (["ls", "it's"], "")],
)
def test_a_command_that_is_a_list_is_judged(run: LiveRun, words: list[str], kind: str) -> None:
    assert run.call("PreToolUse", tool_name="Bash", tool_input={"command": words}).kind == kind


def test_the_settings_call_exactly_the_events_that_are_answered() -> None:
    assert set(EVENTS) == set(MODULES)


# Whatever comes in: exit code 0, no traceback.

GARBAGE = {
    "nothing": b"",
    "white space": b" \n\t ",
    "no JSON": b"not json",
    "half of it": b'{"tool_name": "Edit", "tool_input": {"file_pa',
    "two documents": b"{} {}",
    "bytes": bytes(range(256)),
    "deeply nested": b'{"tool_input":' + b"[" * 200_000,
    "deeply nested and whole": b'{"tool_name":"Bash","x":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "a list": b"[1, 2]",
    "a number": b"17",
    "null": b"null",
    "a huge number": b'{"tool_name": ' + b"9" * 10_000 + b"}",
}


@pytest.mark.parametrize("event", ["PreToolUse", "PostToolUse", "Stop", "SessionStart"])
@pytest.mark.parametrize("name", GARBAGE)
def test_garbage_breaks_nothing(run: LiveRun, event: str, name: str) -> None:
    assert call(event, GARBAGE[name]) == (0, "", "")
    done = call(event, GARBAGE[name], run.env)
    assert (done.code, done.err) == (0, "")
    # Nobody could look at the call. In a live run the tool is not used then; everything else goes on.
    assert done.kind == ("deny" if event == "PreToolUse" else "")
    assert run.recorded()[-1]["error"]


ODD: list[dict[str, object]] = [
    {},
    {"tool_name": None, "tool_input": None, "session_id": None, "cwd": None, "transcript_path": None},
    {"tool_name": 1, "tool_input": [1], "session_id": {}, "cwd": 2, "transcript_path": [], "tool_response": 3},
    {"tool_name": "Edit", "tool_input": {"file_path": 5}},
    {"tool_name": "Edit", "tool_input": {"file_path": "a\0b"}},
    {"tool_name": "Edit", "tool_input": {"file_path": "\ud800"}},
    {"tool_name": "Write", "tool_input": {"file_path": "/" + "x" * 100_000}},
    {"tool_name": "Bash", "tool_input": {"command": 7}, "tool_response": {"stdout": 1, "stderr": None}},
    {"tool_name": "\x1b[31m" * 99, "session_id": "../../../../etc/passwd\n"},
    {"stop_hook_active": "yes", "source": 4, "prompt": 5},
]


@pytest.mark.parametrize("event", MODULES)
def test_missing_and_odd_fields_break_nothing(run: LiveRun, event: str) -> None:
    run.policy["stop_command"] = []  # the rules for stopping are tested elsewhere, and take their time
    run.write()
    for odd in ODD:
        for values in (odd, {"hook_event_name": event, **odd}):
            for policy in (Policy(run.policy), None):
                said = respond(event, json.dumps(values).encode(), policy)
                assert not said or json.loads(said)
        done = call(event, {"hook_event_name": event, **odd}, run.env)
        assert (done.code, done.err) == (0, ""), odd
    assert len(run.recorded()) >= 3 * len(ODD)
    assert {path.parent for path in run.state.rglob("*")} <= {run.state}, "an odd session leaves no file elsewhere"


def test_ten_megabytes_are_no_trouble(run: LiveRun) -> None:
    path = run.file("a.txt")
    large = {"file_path": str(path), "content": "x" * 10_000_000}
    assert run.call("PreToolUse", tool_name="Write", tool_input=large).kind == "deny"
    run.use("Read", path)
    assert run.call("PreToolUse", tool_name="Write", tool_input=large).kind == ""
    assert run.records.stat().st_size < 10_000


def test_an_unknown_event_is_nothing(run: LiveRun) -> None:
    assert call("Other", "{}", run.env) == (0, "", "")
    assert call("../x", "{}", run.env) == (0, "", "")


@pytest.mark.parametrize("form", FORMS)
def test_without_an_event_it_says_how_it_is_used(form: str) -> None:
    for words in (("-h",), ("--help",), ()):
        done = subprocess.run(
            [*FORMS[form], *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True
        )
        assert done.stdout.startswith("usage: ")
        assert all(event in done.stdout for event in EVENTS)


@pytest.mark.parametrize("closing", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-", ">/dev/full"])
def test_closed_and_full_streams_break_nothing(run: LiveRun, closing: str) -> None:
    given = {"hook_event_name": "PreToolUse", "tool_name": "Edit", "tool_input": {"file_path": str(run.file("a.txt"))}}
    script = f"{hook_command()} PreToolUse {closing}; echo $?"
    done = call("", given, run.env, command=("sh", "-c", script))
    # Where the denial cannot be written, the exit code is one.
    assert done.out.splitlines()[-1] == ("0" if closing in ("<&-", "2>&-") else "2")
    assert done.err == ""


# Records.


def test_every_answer_is_recorded_and_every_line_is_whole(run: LiveRun) -> None:
    path = run.file("a.txt", "text\n")
    run.call("SessionStart", source="startup")
    run.call("UserPromptSubmit", prompt="a secret prompt")
    run.use("Edit", path)
    run.use("Read", path)
    run.use("Edit", path)
    run.use("Write", run.workspace / ".git" / "config")
    run.use("Write", str(run.workspace / "x\n\x1b[31m\u2028y"), tool_use_id="t")
    run.call("SessionEnd", reason="other")
    told = [(r["event"], r["answer"], r["category"]) for r in run.recorded() if "answer" in r]
    assert told == [
        ("SessionStart", "", ""),
        ("UserPromptSubmit", "", ""),
        ("PreToolUse", "deny", "read-before-edit"),
        ("PreToolUse", "", ""),
        ("PreToolUse", "", ""),
        ("PreToolUse", "deny", "protected-path"),
        ("PreToolUse", "", ""),
        ("SessionEnd", "", ""),
    ]
    assert "a secret prompt" not in run.records.read_text()
    assert [r["length"] for r in run.recorded() if r["event"] == "prompt"] == [len("a secret prompt")]
    assert all(r["t"] > 1_700_000_000 for r in run.recorded() if "answer" in r)
    assert run.records.stat().st_mode & 0o777 == 0o600


def test_hooks_at_the_same_time_do_not_mix_their_lines(run: LiveRun) -> None:
    path = run.file("a.txt")
    given = {
        "hook_event_name": "PreToolUse",
        "tool_name": "Edit",
        "tool_input": {"file_path": str(path)},
        "session_id": "s",
    }
    command = [*FORMS["as installed"], "PreToolUse"]
    env = {**os.environ, **run.env}
    started = [
        subprocess.Popen(command, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(8)
    ]
    for process in started:
        out, err = process.communicate(json.dumps(given).encode())
        assert b"deny" in out
        assert err == b""
    assert len(run.recorded()) == 8


def test_records_that_cannot_be_written_do_not_matter(run: LiveRun) -> None:
    path = run.file("a.txt")
    for records in (run.state / "none" / "records.jsonl", run.state, Path("/dev/full")):
        run.policy["records"] = str(records)
        run.write()
        assert run.use("Edit", path).kind == "deny"


def test_an_error_inside_a_hook_is_recorded_and_the_call_is_denied(run: LiveRun) -> None:
    run.policy["workspace"] = "\0"
    run.write()
    done = run.use("Edit", run.file("a.txt"))
    assert (done.kind, run.recorded()[-1]["category"]) == ("deny", "hook-failed")
    assert "ValueError" in run.recorded()[-1]["error"]


# What a hook may import.

ALLOWED_IMPORTS = """
import sys
before = set(sys.modules)
sys.argv = ["ralph.hooks", "PreToolUse"]
import os
os._exit = lambda code: None
from ralph.hooks.entry import main
main()
sys.stderr.write("\\n".join(sorted(set(sys.modules) - before)))
"""


def test_a_call_without_a_shell_imports_next_to_nothing(run: LiveRun) -> None:
    """`re`, `json`, `pathlib`, `typing` and the like take longer than a whole hook."""
    path = run.file("a.txt")
    for tool in ("Read", "Edit", "Write"):
        given = {"hook_event_name": "PreToolUse", "tool_name": tool, "tool_input": {"file_path": str(path)}}
        run.policy["protected"] = [".ralph/config.yaml", ".ralph/configs"]
        run.write()
        code = f"import sys; sys.path += {[p for p in sys.path if p]!r}\n" + ALLOWED_IMPORTS
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", code],
            input=json.dumps(given).encode(),
            env={**os.environ, **run.env},
            capture_output=True,
            check=True,
        )
        imported = {name for name in done.stderr.decode().split() if not name.startswith("ralph")}
        system = {"os", "os.path", "posixpath", "genericpath", "stat", "_stat", "_collections_abc", "abc", "_abc", "io"}
        assert imported <= system | {"_json", "time", "posix", "errno"}
