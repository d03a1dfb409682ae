"""The answers of the scripted model, in the form of each vendor, whole and as a stream."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ralph.trial.dialects import INPUT, OUTPUT, dialect, reply

SCHEMA = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}
TOOLS: dict[str, list[dict[str, Any]]] = {
    "": [{"name": "bash", "input_schema": SCHEMA}],
    "responses": [{"type": "function", "name": "bash", "parameters": SCHEMA}],
    "chat": [{"type": "function", "function": {"name": "bash", "parameters": SCHEMA}}],
    "gemini": [{"functionDeclarations": [{"name": "bash", "parametersJsonSchema": SCHEMA}]}],
}
KINDS = pytest.mark.parametrize("kind", TOOLS)
STREAMED = pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])


def events(body: str) -> list[dict[str, Any]]:
    """Of a stream; each must be framed as server-sent events are."""
    assert body.endswith("\n\n")
    found = []
    for block in body[:-2].split("\n\n"):
        *names, data = block.split("\n")
        assert data.startswith("data: ")
        if data == "data: [DONE]":
            continue
        value = json.loads(data[6:])
        assert names in ([], [f"event: {value.get('type')}"])
        found.append(value)
    return found


def understood(kind: str, form: str, body: str) -> tuple[str, tuple[str, Any] | None, tuple[int, int]]:
    """Text, call, and tokens, as a client of this vendor would take them from the answer."""
    is_stream = form == "text/event-stream"
    whole = events(body) if is_stream else [json.loads(body)]
    if kind == "gemini":
        parts = whole[0]["candidates"][0]["content"]["parts"]
        text = "".join(part.get("text", "") for part in parts)
        calls = [
            (part["functionCall"]["name"], part["functionCall"]["args"]) for part in parts if "functionCall" in part
        ]
        usage = whole[0]["usageMetadata"]
        return text, next(iter(calls), None), (usage["promptTokenCount"], usage["candidatesTokenCount"])
    if kind == "chat":
        message = whole[0]["choices"][0]["delta" if is_stream else "message"]
        functions = [call["function"] for call in message.get("tool_calls") or []]
        calls = [(function["name"], json.loads(function["arguments"])) for function in functions]
        usage = whole[-1]["usage"]
        return message["content"] or "", next(iter(calls), None), (usage["prompt_tokens"], usage["completion_tokens"])
    if kind == "responses":
        answer = whole[-1]["response"] if is_stream else whole[0]
        [item] = answer["output"]
        usage = answer["usage"]["input_tokens"], answer["usage"]["output_tokens"]
        if item["type"] == "function_call":
            return "", (item["name"], json.loads(item["arguments"])), usage
        deltas = [event["delta"] for event in whole if event.get("type") == "response.output_text.delta"]
        text = "".join(part["text"] for part in item["content"])
        assert not is_stream or text == "".join(deltas)
        return text, None, usage
    if not is_stream:
        blocks, counts = whole[0]["content"], whole[0]["usage"]
        text = "".join(block.get("text", "") for block in blocks)
        calls = [(block["name"], block["input"]) for block in blocks if block["type"] == "tool_use"]
        return text, next(iter(calls), None), (counts["input_tokens"], counts["output_tokens"])
    text = "".join(event["delta"].get("text", "") for event in whole if event["type"] == "content_block_delta")
    partial = "".join(e["delta"].get("partial_json", "") for e in whole if e["type"] == "content_block_delta")
    names = [e["content_block"]["name"] for e in whole if e["type"] == "content_block_start" and partial]
    counts = next(event["usage"] for event in whole if event["type"] == "message_delta")
    call = (names[0], json.loads(partial)) if partial else None
    return text, call, (counts["input_tokens"], counts["output_tokens"])


@KINDS
@STREAMED
def test_a_message_a_call_and_silence_arrive(kind: str, streamed: bool) -> None:
    request = {"model": "scripted", "tools": TOOLS[kind]}
    for turn, expected in (
        ({"say": "naïve 🙂\n\ntwo"}, ("naïve 🙂\n\ntwo", None)),
        ({"run": "printf 'a b'"}, ("", ("bash", {"command": "printf 'a b'"}))),
        ({"nothing": True}, ("", None)),
    ):
        form, body = reply(kind, turn, request, streamed=streamed)
        assert form == ("text/event-stream" if streamed else "application/json")
        assert understood(kind, form, body) == (*expected, (INPUT, OUTPUT))


@KINDS
def test_a_client_without_tools_gets_edits_as_text(kind: str) -> None:
    def said(turn: dict[str, Any]) -> str:
        return understood(kind, *reply(kind, turn, {"model": "scripted"}, streamed=False))[0]

    assert said({"write": ["/t/project/src/a.py", "x = 1\n"]}).startswith(
        "src/a.py\n```\n<<<<<<< SEARCH\n=======\nx = 1\n>"
    )
    assert "\nold\n=======\nnew\n" in said({"edit": ["/t/project/a.py", "old", "new"]})
    assert said({"run": "ls"}) == "```bash\nls\n```\n"
    assert "/t/project/a.py" in said({"read": "/t/project/a.py"})


def test_the_form_is_known_by_the_path() -> None:
    paths = {
        "/v1/messages": "",
        "/v1/responses": "responses",
        "/openai/v1/chat/completions": "chat",
        "/v1beta/models/scripted:generateContent": "gemini",
        "/v1beta/models/scripted:streamGenerateContent": "gemini",
    }
    assert {path: dialect(path) for path in paths} == paths
