"""The Claude client's stream, read from what the real client wrote (tests/agents/samples) and from nonsense."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ralph.agents.stream_json import StreamJson
from ralph.core.agent import (
    AgentEvent,
    Init,
    Limit,
    Outcome,
    Result,
    Retry,
    Text,
    Tokens,
    ToolResult,
    ToolUse,
    Trouble,
    Usage,
    add,
)

SAMPLES = {path.stem: path.read_bytes().splitlines() for path in (Path(__file__).parent / "samples").glob("*.jsonl")}
PROMISE = "<promise>COMPLETE</promise>"


def read(lines: Iterable[bytes]) -> list[AgentEvent]:
    reader = StreamJson()
    return [event for line in lines for event in reader(line)]


def outcome_of(lines: Iterable[bytes]) -> Outcome:
    outcome = Outcome()
    for event in read(lines):
        outcome = add(outcome, event, PROMISE)
    return outcome


def line(**event: Any) -> bytes:
    return json.dumps(event).encode()


def said(text: str, **fields: Any) -> bytes:
    return line(type="assistant", message={"content": [{"type": "text", "text": text}]}, **fields)


def result(**fields: Any) -> bytes:
    return line(**{"subtype": "success", "is_error": False, "result": "ok", "type": "result", **fields})


def failure(status: int | None = None, **fields: Any) -> bytes:
    return result(**{"is_error": True, "terminal_reason": "api_error", "api_error_status": status, **fields})


def test_a_session_with_tools_reads_as_what_happened() -> None:
    events = read(SAMPLES["ok_tools"])
    used = [event for event in events if isinstance(event, Usage)]
    assert (used[0].context, sum(use.tokens.input for use in used)) == (100, 500), "five messages of 100 tokens"
    assert [_short(event) for event in events if not isinstance(event, Usage)] == [
        "Init claude-opus-5-5",
        "Text I will run a command.",
        "ToolUse Bash echo hi > a.txt; cat a.txt",
        "ToolResult True",
        "ToolUse Write b.txt",
        "ToolResult True",
        "ToolUse Read b.txt",
        "ToolResult True",
        "ToolUse Edit b.txt",
        "ToolResult True",
        "Text All done.",
        "Result All done.",
    ]
    outcome = outcome_of(SAMPLES["ok_tools"])
    assert (outcome.ok, outcome.trouble, outcome.tools, outcome.turns) == (True, None, 4, 5)
    assert (outcome.tokens, outcome.cost_usd) == (Tokens(500, 100), 0.004)


def _short(event: AgentEvent) -> str:
    match event:
        case Init(model):
            what: object = model
        case Text(text) | Result(text=text):
            what = text
        case ToolUse(summary=summary):
            what = summary
        case ToolResult(ok=ok):
            what = ok
        case Usage(context):
            what = context
        case _:
            what = event
    return f"{type(event).__name__} {what}"


TROUBLE = {
    "background_task_wait": None,
    "compact_auto": None,
    "empty_text": None,
    "fail_400_prompt_too_long": Trouble.CONTEXT,
    "fail_403": Trouble.AUTHENTICATION,
    "fail_404_model": Trouble.MODEL,
    "fail_429_retries1": Trouble.TRANSPORT,
    "fail_500_retries1": Trouble.TRANSPORT,
    "fail_529_retries1": Trouble.TRANSPORT,
    "fail_connrefused_retries1": Trouble.TRANSPORT,
    "fail_nokey": Trouble.AUTHENTICATION,
    "fallback_529": None,
    "hook_deny_new": None,
    "hook_stop_cap": None,
    "max_budget": Trouble.BUDGET,
    "max_turns": Trouble.OTHER,
    "ok_tools": None,
    "permission_denied": Trouble.PERMISSION,
    "ratelimit_200_warning_oauth": None,
    "ratelimit_429_plain_oauth": Trouble.TRANSPORT,
    "ratelimit_429_unified_oauth": Trouble.LIMIT,
    "ratelimit_midrun_oauth": Trouble.LIMIT,
    "ratelimit_retry_watchdog": None,
    "signal_INT_pid": Trouble.OTHER,
}
CUT_OFF = {"fail_401", "signal_TERM_pid"}


def test_every_sample_has_an_expectation() -> None:
    assert set(SAMPLES) == set(TROUBLE) | CUT_OFF


@pytest.mark.parametrize("name", TROUBLE)
def test_how_a_session_ended_is_known_by_its_trouble(name: str) -> None:
    outcome = outcome_of(SAMPLES[name])
    assert (outcome.finished, outcome.trouble) == (True, TROUBLE[name])
    assert outcome.ok is (TROUBLE[name] is None)
    assert bool(outcome.detail) is (TROUBLE[name] is not None), "a failure says why, in words for people"


@pytest.mark.parametrize("name", sorted(CUT_OFF))
def test_a_session_that_was_cut_off_has_no_result(name: str) -> None:
    assert not outcome_of(SAMPLES[name]).finished


def test_the_usage_limit_comes_with_its_time_of_reset() -> None:
    outcome = outcome_of(SAMPLES["ratelimit_429_unified_oauth"])
    assert outcome.resets_at == 1794737722
    limits = [event for event in read(SAMPLES["ratelimit_midrun_oauth"]) if isinstance(event, Limit)]
    assert limits == [
        Limit(False, 1794737722, "five_hour", 0.2),
        Limit(False, 1794820522, "seven_day", 0.4),
        Limit(True, 1794737722, "five_hour", 1),
    ]


def test_an_older_client_without_the_name_of_the_limit_is_understood() -> None:
    info = {"status": "rejected", "resetsAt": 1794737722, "rateLimitType": "five_hour"}
    event = line(type="rate_limit_event", rate_limit_info=info)
    *_, last = read([event, failure(429)])
    assert isinstance(last, Result)
    assert last.trouble is Trouble.LIMIT
    assert outcome_of([event, said("back again"), result()]).trouble is None, "it waited, and went on"


def test_a_limit_that_only_the_failed_answer_tells_is_found() -> None:
    info = {"status": "rejected", "resetsAt": 1794737722, "rateLimitType": "seven_day"}
    answer = said("no", is_api_error_message=True, error="rate_limit", api_error_params={"rate_limit_info": info})
    assert read([answer]) == [Limit(True, 1794737722, "seven_day")]


def test_working_on_overage_is_not_being_rejected() -> None:
    info = {"status": "rejected", "resetsAt": 1794737722, "rateLimitType": "five_hour", "isUsingOverage": True}
    assert read([line(type="rate_limit_event", rate_limit_info=info)]) == [Limit(False, 1794737722, "five_hour")]


@pytest.mark.parametrize("resets_at", [0, -5, 1e300, "soon", True, None, 1794737722000])
def test_a_time_of_reset_that_is_none_is_not_waited_for(resets_at: object) -> None:
    info = {"status": "rejected", "resetsAt": resets_at, "rateLimitType": "five_hour"}
    assert read([line(type="rate_limit_event", rate_limit_info=info)]) == [Limit(True, None, "five_hour")]


def test_retries_are_told() -> None:
    assert [e for e in read(SAMPLES["fail_401"]) if isinstance(e, Retry)][:2] == [
        Retry(1, 401, "authentication_failed"),
        Retry(2, 401, "authentication_failed"),
    ]
    assert [e for e in read(SAMPLES["fail_connrefused_retries1"]) if isinstance(e, Retry)] == [
        Retry(1, None, "unknown")
    ]


def test_the_costs_of_several_results_are_not_counted_twice() -> None:
    costs = [event.cost_usd for event in read(SAMPLES["background_task_wait"]) if isinstance(event, Result)]
    assert costs == [0.0016, 0.0008], "the client reports totals"
    outcome = outcome_of(SAMPLES["background_task_wait"])
    assert outcome.cost_usd == pytest.approx(0.0024)
    assert outcome.tokens == Tokens(300, 60)
    assert outcome.turns == 3


def test_a_total_that_starts_anew_is_taken_as_it_is() -> None:
    results = [e for e in read([result(total_cost_usd=2), result(total_cost_usd=1)]) if isinstance(e, Result)]
    assert [event.cost_usd for event in results] == [2, 1]


def test_tokens_of_compaction_and_sub_agents_count() -> None:
    assert outcome_of(SAMPLES["compact_auto"]).tokens == Tokens(991200, 70), "by model; `usage` has 991100 and 50"


def test_without_figures_by_model_the_usage_counts() -> None:
    usage = {"input_tokens": 1, "output_tokens": 2, "cache_read_input_tokens": 3, "cache_creation_input_tokens": 4}
    assert outcome_of([result(usage=usage)]).tokens == Tokens(1, 2, 3, 4)


def test_provisional_usage_of_single_answers_is_ignored() -> None:
    cut = SAMPLES["ok_tools"][:-1]
    assert (outcome_of(cut).tokens, outcome_of(cut).cost_usd) == (Tokens(), None)


def test_the_model_that_did_the_work_is_named() -> None:
    assert outcome_of(SAMPLES["fallback_529"]).model == "claude-haiku-5-5"
    used = {"small": {"costUSD": 0.1}, "large": {"costUSD": 3}}
    assert outcome_of([result(modelUsage=used)]).model == "large"


@pytest.mark.parametrize(
    ("status", "fields", "trouble"),
    [
        (401, {}, Trouble.AUTHENTICATION),
        (402, {}, Trouble.BILLING),
        (403, {}, Trouble.AUTHENTICATION),
        (404, {}, Trouble.MODEL),
        (408, {}, Trouble.TRANSPORT),
        (413, {}, Trouble.CONTEXT),
        (429, {}, Trouble.TRANSPORT),
        (429, {"api_error": "usage_limit_reached"}, Trouble.LIMIT),
        (500, {}, Trouble.TRANSPORT),
        (503, {}, Trouble.TRANSPORT),
        (529, {}, Trouble.TRANSPORT),
        (400, {}, Trouble.OTHER),
        (400, {"terminal_reason": "prompt_too_long"}, Trouble.CONTEXT),
        (None, {"terminal_reason": "blocking_limit"}, Trouble.CONTEXT),
        (None, {"api_error": "connection_failed"}, Trouble.TRANSPORT),
        (None, {"api_error_type": "billing_error"}, Trouble.BILLING),
        (None, {}, Trouble.TRANSPORT),
        (200, {}, Trouble.TRANSPORT),
        (None, {"api_error": "max_output_tokens"}, Trouble.OTHER),
        (None, {"terminal_reason": "max_turns"}, Trouble.OTHER),
        (None, {"terminal_reason": None, "subtype": "error_max_budget_usd"}, Trouble.BUDGET),
        (None, {"terminal_reason": "stop_hook_prevented"}, Trouble.OTHER),
    ],
)
def test_trouble_is_told_by_typed_fields(status: int | None, fields: dict[str, Any], trouble: Trouble) -> None:
    assert outcome_of([failure(status, **fields)]).trouble is trouble


@pytest.mark.parametrize(
    ("status", "error", "trouble"),
    [
        (None, "unknown", Trouble.TRANSPORT),  # a web page instead of an answer
        (None, "invalid_request", Trouble.OTHER),  # a refusal
        (None, "authentication_failed", Trouble.AUTHENTICATION),
        (400, "invalid_request", Trouble.OTHER),
        (400, "billing_error", Trouble.BILLING),
    ],
)
def test_the_name_of_an_error_comes_with_the_answer_before(status: int | None, error: str, trouble: Trouble) -> None:
    answer = said("API Error", error=error, is_api_error_message=True)
    assert outcome_of([answer, failure(status)]).trouble is trouble


def test_words_about_a_limit_are_no_limit() -> None:
    words = "You've hit your 5-hour limit. API Error: 401 authentication_failed. Prompt is too long."
    content = [{"type": "tool_result", "tool_use_id": "x", "content": words, "is_error": True}]
    tool = line(type="user", message={"content": content}, tool_use_result=f"Error: {words}")
    outcome = outcome_of([said(words), tool, result(result=words)])
    assert (outcome.ok, outcome.trouble, outcome.resets_at) == (True, None, None)


def test_the_failure_of_a_sub_agent_is_not_the_failure_of_the_agent() -> None:
    inner = said("Not logged in", error="authentication_failed", is_api_error_message=True, parent_tool_use_id="t")
    assert outcome_of([inner, result(is_error=True, subtype="error_during_execution")]).trouble is Trouble.OTHER


def test_an_error_that_was_overcome_explains_nothing_later() -> None:
    failed = said("Overloaded", error="server_error", is_api_error_message=True)
    lost = result(is_error=True, subtype="error_during_execution", terminal_reason="aborted_tools")
    assert outcome_of([failed, lost]).trouble is Trouble.TRANSPORT
    assert outcome_of([failed, said("I am back"), lost]).trouble is Trouble.OTHER
    assert outcome_of([failed, failure(500), lost]).trouble is Trouble.OTHER


def test_a_success_without_a_word_or_a_deed_is_empty() -> None:
    assert outcome_of([result(result="")]).trouble is Trouble.EMPTY
    assert outcome_of([result(result=" \n")]).trouble is Trouble.EMPTY
    assert outcome_of([said("I did it."), result(result="")]).ok
    use = {"type": "tool_use", "id": "t", "name": "Bash", "input": {}}
    assert outcome_of([line(type="assistant", message={"content": [use]}), result(result="")]).ok


def test_a_tool_that_was_not_permitted_is_trouble_only_when_nothing_could_be_changed() -> None:
    assert outcome_of(SAMPLES["permission_denied"]).detail == "the agent was not permitted to use Bash"
    use = {"type": "tool_use", "id": "t", "name": "Write", "input": {"file_path": "a"}}
    wrote = [
        line(type="assistant", message={"content": [use]}),
        line(type="user", message={"content": [{"type": "tool_result", "tool_use_id": "t"}]}),
    ]
    assert outcome_of([*wrote, *SAMPLES["permission_denied"]]).ok
    denied = line(type="system", subtype="permission_denied", tool_name="WebFetch", tool_use_id="t")
    assert outcome_of([denied, result()]).ok, "it could still write"


def test_what_was_refused_is_known_with_what_refused_it() -> None:
    [asked] = outcome_of(SAMPLES["permission_denied"]).denials
    assert (asked.tool, asked.subject, asked.why) == ("Bash", "echo hi > a.txt", "")
    entry = {"tool_name": "Write", "tool_use_id": "t", "tool_input": {"file_path": "/p/.npmrc"}}
    event = {"type": "system", "subtype": "permission_denied", "tool_name": "Write", "tool_use_id": "t"}
    whys = {
        kind: outcome_of([line(**event, decision_reason_type=kind), result(permission_denials=[entry])]).denials[0].why
        for kind in ("safetyCheck", "rule", "workingDir")
    }
    assert whys == {"safetyCheck": "protected", "rule": "rule", "workingDir": ""}
    assert outcome_of([result(permission_denials=[entry])]).denials[0].why == "rule", "nobody was asked"
    hostile: tuple[object, ...] = (None, "x", [1, None], [{}])
    for broken in hostile:
        assert outcome_of([result(permission_denials=broken)]).ok


def test_a_file_that_the_client_protects_is_no_lack_of_permission() -> None:
    event = {"type": "system", "subtype": "permission_denied", "tool_name": "Write", "tool_use_id": "t"}
    assert outcome_of([line(**event, decision_reason_type="safetyCheck"), result()]).trouble is None


def test_what_the_client_says_itself_is_no_word_of_the_agent() -> None:
    assert not [e for e in read(SAMPLES["fail_nokey"]) if isinstance(e, Text)]
    fake = [
        said(PROMISE, is_api_error_message=True),
        line(type="assistant", message={"model": "<synthetic>", "content": [{"type": "text", "text": PROMISE}]}),
        line(type="user", isSynthetic=True, message={"content": [{"type": "text", "text": PROMISE}]}),
        said(PROMISE, parent_tool_use_id="a sub-agent"),
    ]
    assert not outcome_of(fake).promised
    assert outcome_of([said(f"All is done.\n{PROMISE}")]).promised


@pytest.mark.parametrize(
    "text",
    [
        f"I will not write {PROMISE} yet.",
        f"> {PROMISE}",
        f"```\n{PROMISE}\n```",
        f"~~~text\n```\n{PROMISE}\n~~~",
        f"The prompt says:\n\n    {PROMISE}\n",
        f"`{PROMISE}`",
    ],
)
def test_a_tag_that_is_quoted_or_in_a_sentence_is_no_claim(text: str) -> None:
    assert not outcome_of([said(text), result(result=text)]).promised
    assert outcome_of([said(f"{text}\n\n  {PROMISE}  \n")]).promised


def test_only_the_last_message_can_claim() -> None:
    assert not outcome_of([said(PROMISE), said("No, wait: a test fails."), result(result="A test fails.")]).promised
    assert outcome_of([said("Nearly."), result(result=f"Done.\n{PROMISE}")]).promised


def test_results_of_synthetic_messages_are_ignored() -> None:
    content = [{"type": "tool_result", "tool_use_id": "t"}]
    assert read([line(type="user", isSynthetic=True, message={"content": content})]) == []
    assert read([line(type="user", message={"content": content})]) == [ToolResult("t", True)]


@pytest.mark.parametrize(
    ("name", "given", "summary"),
    [
        ("Edit", {"file_path": "/home/dev/project/src/app.py", "old_string": "a"}, "Edit src/app.py"),
        ("Read", {"file_path": "/etc/hosts"}, "Read /etc/hosts"),
        ("Bash", {"command": "pytest -q", "description": "Run the tests"}, "Bash pytest -q"),
        ("Bash", {"command": "cat <<X\n\x1b[31mone\ntwo\nX"}, "Bash cat <<X one two X"),
        ("Grep", {"pattern": "def main", "path": "src"}, "Grep def main"),
        ("Task", {"description": "Find it", "prompt": "Look everywhere"}, "Task Find it"),
        ("TodoWrite", {"todos": [1, 2]}, "TodoWrite"),
        ("Odd", {"command": 5, "query": None}, "Odd"),
    ],
)
def test_a_tool_call_is_told_in_a_few_words(name: str, given: dict[str, Any], summary: str) -> None:
    init = line(type="system", subtype="init", cwd="/home/dev/project")
    use = line(type="assistant", message={"content": [{"type": "tool_use", "id": "t", "name": name, "input": given}]})
    (event,) = read([init, use])[1:]
    assert isinstance(event, ToolUse)
    assert (event.name, event.summary, event.id) == (name, summary, "t")
    path, command = given.get("file_path", ""), given.get("command", "")
    assert (event.path, event.command) == (path, command if isinstance(command, str) else "")


def test_a_huge_command_is_cut() -> None:
    use = {"type": "tool_use", "name": "Bash", "input": {"command": "x" * 3_000_000}}
    (event,) = read([line(type="assistant", message={"content": [use]})])
    assert isinstance(event, ToolUse)
    assert len(event.summary) == 100
    assert event.summary.endswith("…")


@pytest.mark.parametrize(
    "noise",
    [b"", b"   ", b"hello", b"[1]", b'"x"', b"null", b"{", b'{"type": "result"', b"\xff\xfe", b"\0", b'{"type": []}'],
)
def test_what_is_no_event_gives_none(noise: bytes) -> None:
    assert read([noise]) == []


@pytest.mark.parametrize("noise", [b'{"a":' * 100_000, b"{" * 100_000, b"[" * 100_000, b'{"type":"tool_progress"}'])
def test_depth_and_signs_of_life_give_no_event(noise: bytes) -> None:
    assert read([noise]) == []


def test_half_an_emoji_does_not_cost_the_result() -> None:
    raw = b'{"subtype":"success","is_error":false,"result":"cut \\ud83d","type":"result"}'
    (event,) = read([raw])
    assert isinstance(event, Result)
    assert event.ok
    assert event.text == "cut ?"
    (event,) = read([b'{"type":"result","is_error":false,"result":"bad \xff byte"}'])
    assert isinstance(event, Result)
    assert event.text == "bad � byte"


@pytest.mark.parametrize("number", ["1e999", "-1", "NaN", "Infinity", "true", '"7"', "9" * 400, "[]"])
def test_figures_out_of_this_world_can_still_be_written_down(number: str) -> None:
    fields = f'"total_cost_usd":{number},"num_turns":{number},"usage":{{"input_tokens":{number}}}'
    (event,) = read([b'{"type":"result","is_error":false,"result":"x",' + fields.encode() + b"}"])
    assert isinstance(event, Result)
    assert event.ok
    assert event.tokens.input == 0
    msgspec.json.encode(event)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
WORDS = sorted(
    {
        *("assistant", "user", "system", "init", "api_retry", "permission_denied", "rate_limit_event", "result"),
        *("text", "tool_use", "tool_result", "rejected", "allowed", "success", "error_max_turns", "api_error"),
        *("usage_limit_reached", "<synthetic>", "Bash", "five_hour"),
    }
)
KEYS = sorted(
    {
        *(
            "type",
            "subtype",
            "message",
            "content",
            "text",
            "id",
            "name",
            "input",
            "command",
            "cwd",
            "model",
            "is_error",
        ),
        *("result", "errors", "usage", "modelUsage", "input_tokens", "costUSD", "total_cost_usd", "num_turns", "error"),
        *("api_error", "api_error_status", "api_error_params", "rate_limit_info", "status", "resetsAt", "attempt"),
        *("rateLimitType", "unifiedWindows", "five_hour", "utilization", "tool_use_id", "tool_name", "isSynthetic"),
        *("tool_use_result", "terminal_reason", "is_api_error_message", "parent_tool_use_id"),
    }
)
EVENT = st.recursive(
    JSON | st.sampled_from(WORDS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5),
    max_leaves=15,
)


@settings(max_examples=150)
@given(
    st.lists(st.dictionaries(st.sampled_from(KEYS), EVENT, max_size=6), max_size=4), st.lists(st.binary(), max_size=3)
)
def test_no_line_makes_the_reader_fail(events: list[dict[str, Any]], noise: list[bytes]) -> None:
    _readable([json.dumps(event).encode() for event in events] + noise)


@settings(max_examples=100)
@given(st.sampled_from(sorted(SAMPLES)), st.randoms(use_true_random=False), EVENT)
def test_a_sample_with_a_wrong_value_anywhere_is_read(name: str, random: Any, value: Any) -> None:
    events = [json.loads(text) for text in SAMPLES[name]]
    holders = [holder for event in events for holder in _holders(event)]
    holder, key = random.choice(holders)
    holder[key] = value
    _readable(json.dumps(event).encode() for event in events)


def _holders(value: Any) -> list[tuple[Any, Any]]:
    keys = list(value) if isinstance(value, dict) else list(range(len(value))) if isinstance(value, list) else []
    return [pair for key in keys for pair in ((value, key), *_holders(value[key]))]


def _readable(lines: Iterable[bytes]) -> None:
    """Read without an error into events that the journal can hold and that add up."""
    outcome = Outcome()
    for event in read(lines):
        assert msgspec.json.decode(msgspec.json.encode(event), type=AgentEvent) == event
        outcome = add(outcome, event, PROMISE)
    msgspec.json.encode(outcome)
