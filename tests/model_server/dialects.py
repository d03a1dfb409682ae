"""The answers of a scripted model in the forms of other clients: OpenAI's Responses and chat completions.

A turn `{"run": "ls"}` becomes a call of whichever tool the client offers for shell commands.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator
from typing import Any

Turn = dict[str, Any]
Values = dict[str, Any]

SHELLS = {"exec_command": "cmd", "shell_command": "command", "shell": "command"}
"""Tools for commands, and the name of their argument: of Codex and goose."""
_TOKENS = (100, 20)


def dialect(path: str) -> str:
    """By the path of a request; empty: that of Anthropic."""
    if path.endswith("/responses"):
        return "responses"
    return "chat" if path.endswith("/chat/completions") else ""


def reply(kind: str, turn: Turn, request: Values) -> tuple[str, str]:
    """The type of the content, and the content."""
    streamed = bool(request.get("stream"))
    call = _call(turn, tools_of(request))
    if kind == "chat":
        if streamed:
            return "text/event-stream", _events(_chat_chunks(turn, call, request)) + "data: [DONE]\n\n"
        return "application/json", json.dumps(_chat(turn, call, request))
    events = [*_responses(turn, call, request)]
    if not streamed:
        return "application/json", json.dumps(events[-1]["response"])
    return "text/event-stream", "".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in events)


def tools_of(request: Values) -> list[str]:
    names = []
    for tool in request.get("tools") or []:
        listed = tool.get("tools") or [tool.get("function") or tool]
        names += [each["name"] for each in listed if "name" in each]
    return names


def _call(turn: Turn, tools: list[str]) -> tuple[str, Values] | None:
    if "use" in turn:
        return turn["use"][0], turn["use"][1]
    if "run" not in turn:
        return None
    name = next(name for name in SHELLS if name in tools)
    return name, {SHELLS[name]: turn["run"]}


def _events(values: list[Values]) -> str:
    return "".join(f"data: {json.dumps(value)}\n\n" for value in values)


def _responses(turn: Turn, call: tuple[str, Values] | None, request: Values) -> Iterator[Values]:
    item: Values
    identity = uuid.uuid4().hex[:22]
    if call:
        item = {"type": "function_call", "id": f"fc_{identity}", "call_id": f"call_{identity}", "name": call[0]}
        item |= {"arguments": json.dumps(call[1]), "status": "completed"}
    else:
        text = {"type": "output_text", "text": turn.get("say", ""), "annotations": []}
        item = {"type": "message", "id": f"msg_{identity}", "role": "assistant", "status": "completed"}
        item["content"] = [text]
    usage = {"input_tokens": _TOKENS[0], "output_tokens": _TOKENS[1], "total_tokens": sum(_TOKENS)}
    whole = {"id": f"resp_{identity}", "object": "response", "created_at": int(time.time()), "status": "completed"}
    whole |= {"model": request.get("model"), "output": [item], "usage": usage}
    events: list[Values] = [
        {"type": "response.created", "response": whole | {"status": "in_progress", "output": []}},
        {"type": "response.output_item.added", "output_index": 0, "item": item | {"status": "in_progress"}},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": whole},
    ]
    yield from ({**event, "sequence_number": number} for number, event in enumerate(events))


def _message(turn: Turn, call: tuple[str, Values] | None) -> Values:
    if call is None:
        return {"role": "assistant", "content": turn.get("say", "")}
    function = {"name": call[0], "arguments": json.dumps(call[1])}
    one = {"index": 0, "id": f"call_{uuid.uuid4().hex[:22]}", "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [one]}


def _chat(turn: Turn, call: tuple[str, Values] | None, request: Values) -> Values:
    usage = {"prompt_tokens": _TOKENS[0], "completion_tokens": _TOKENS[1], "total_tokens": sum(_TOKENS)}
    choice = {"index": 0, "message": _message(turn, call), "finish_reason": "tool_calls" if call else "stop"}
    head = {"id": f"chatcmpl-{uuid.uuid4().hex[:22]}", "object": "chat.completion", "created": int(time.time())}
    return head | {"model": request.get("model"), "choices": [choice], "usage": usage}


def _chat_chunks(turn: Turn, call: tuple[str, Values] | None, request: Values) -> list[Values]:
    whole = _chat(turn, call, request)
    [choice] = whole["choices"]
    chunk = {key: whole[key] for key in ("id", "created", "model")} | {"object": "chat.completion.chunk"}
    return [
        {**chunk, "choices": [{"index": 0, "delta": choice["message"], "finish_reason": None}]},
        {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]},
        {**chunk, "choices": [], "usage": whole["usage"]},
    ]
