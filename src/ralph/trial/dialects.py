"""The answers of a scripted model in the forms of the vendors: Anthropic's Messages, OpenAI's Responses and chat
completions, Gemini's generateContent.

What one turn becomes is decided in `tool_calls`; a request without tools is answered in text, edits included.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterator

from ralph.trial.tool_calls import Turn, Values, call_of, tools_of

INPUT, OUTPUT = 100, 20
"""Tokens of every answer."""
Call = tuple[str, Values] | None
EDITS = frozenset(("write", "edit", "run", "read"))
"""Turns that call a tool, or would."""
_END = "data: [DONE]\n\n"


def dialect(path: str) -> str:
    """By the path of a request; empty: that of Anthropic."""
    if path.endswith("/responses"):
        return "responses"
    if "enerateContent" in path:
        return "gemini"
    return "chat" if path.endswith("/chat/completions") else ""


def reply(kind: str, turn: Turn, request: Values, *, streamed: bool) -> tuple[str, str]:
    """The type of the content, and the content."""
    tools = tools_of(request)
    call = call_of(turn, tools) if tools else None
    said = _said(turn, tools=bool(tools))
    form = {"chat": _as_chat, "responses": _as_responses, "gemini": _as_gemini, "": _as_messages}[kind]
    return form(said, call, request, streamed)


def _said(turn: Turn, *, tools: bool) -> str:
    """The text of a turn. A client whose requests list no tools edits files by what the model writes."""
    if "parts" in turn:
        return "\n".join(_said(part, tools=tools) for part in turn["parts"])
    if tools or not (EDITS & turn.keys()):
        return str(turn.get("say", ""))
    if "write" in turn:
        path, text = turn["write"]
        return f"{_name(path)}\n```\n<<<<<<< SEARCH\n=======\n{text}>>>>>>> REPLACE\n```\n"
    if "edit" in turn:
        path, old, new = turn["edit"]
        return f"{_name(path)}\n```\n<<<<<<< SEARCH\n{old}\n=======\n{new}\n>>>>>>> REPLACE\n```\n"
    return f"```bash\n{turn['run']}\n```\n" if "run" in turn else f"I need to see {turn['read']}."


def _name(path: str) -> str:
    """Relative to the project, whose folder has this name in every trial."""
    return path.rpartition("/project/")[2]


def _identity(prefix: str) -> str:
    return f"{prefix}_{uuid.uuid4().hex[:22]}"


# Anthropic's Messages


def _as_messages(said: str, call: Call, request: Values, streamed: bool) -> tuple[str, str]:
    block: Values = {"type": "text", "text": said}
    if call:
        block = {"type": "tool_use", "id": _identity("toolu"), "name": call[0], "input": call[1]}
    whole = message([block] if call or said else [], str(request.get("model", "scripted")))
    if not streamed:
        return "application/json", json.dumps(whole)
    events = "".join(f"event: {name}\ndata: {json.dumps(data)}\n\n" for name, data in message_events(whole))
    return "text/event-stream", events


def message(blocks: list[Values], model: str, usage: Values | None = None) -> Values:
    uses = any(block["type"] == "tool_use" for block in blocks)
    counted = {"input_tokens": INPUT, "output_tokens": OUTPUT}
    counted |= {"cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}
    return {
        "id": _identity("msg"),
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": blocks,
        "stop_reason": "tool_use" if uses else "end_turn",
        "stop_sequence": None,
        "usage": counted | (usage or {}),
    }


def message_events(whole: Values) -> Iterator[tuple[str, Values]]:
    """The same message as server-sent events."""
    start = whole | {"content": [], "stop_reason": None, "usage": whole["usage"] | {"output_tokens": 1}}
    yield "message_start", {"type": "message_start", "message": start}
    for index, block in enumerate(whole["content"]):
        if block["type"] == "text":
            empty, delta = block | {"text": ""}, {"type": "text_delta", "text": block["text"]}
        else:
            empty = block | {"input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        yield "content_block_start", {"type": "content_block_start", "index": index, "content_block": empty}
        yield "content_block_delta", {"type": "content_block_delta", "index": index, "delta": delta}
        yield "content_block_stop", {"type": "content_block_stop", "index": index}
    end = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    yield "message_delta", {"type": "message_delta", "delta": end, "usage": whole["usage"]}
    yield "message_stop", {"type": "message_stop"}


# OpenAI's Responses


def _as_responses(said: str, call: Call, request: Values, streamed: bool) -> tuple[str, str]:
    events = [*_responses(said, call, request)]
    if not streamed:
        return "application/json", json.dumps(events[-1]["response"])
    return "text/event-stream", "".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in events)


def _responses(said: str, call: Call, request: Values) -> Iterator[Values]:
    item: Values
    if call:
        item = {"type": "function_call", "id": _identity("fc"), "call_id": _identity("call"), "name": call[0]}
        item |= {"arguments": json.dumps(call[1]), "status": "completed"}
    else:
        text = {"type": "output_text", "text": said, "annotations": []}
        item = {"type": "message", "id": _identity("msg"), "role": "assistant", "status": "completed"}
        item["content"] = [text] if said else []
    usage = {"input_tokens": INPUT, "output_tokens": OUTPUT, "total_tokens": INPUT + OUTPUT}
    whole = {"id": _identity("resp"), "object": "response", "created_at": int(time.time()), "status": "completed"}
    whole |= {"model": request.get("model"), "output": [item], "usage": usage}
    events: list[Values] = [{"type": "response.created", "response": whole | {"status": "in_progress", "output": []}}]
    place = {"output_index": 0, "item_id": item["id"]}
    if call:
        begun = item | {"arguments": "", "status": "in_progress"}
        events += [
            {"type": "response.output_item.added", "output_index": 0, "item": begun},
            {"type": "response.function_call_arguments.delta", **place, "delta": item["arguments"]},
            {"type": "response.function_call_arguments.done", **place, "arguments": item["arguments"]},
        ]
    else:
        place |= {"content_index": 0}
        part = {"type": "output_text", "text": "", "annotations": []}
        begun = item | {"content": [], "status": "in_progress"}
        events += [{"type": "response.output_item.added", "output_index": 0, "item": begun}]
        if said:
            events += [
                {"type": "response.content_part.added", **place, "part": part},
                {"type": "response.output_text.delta", **place, "delta": said},
                {"type": "response.output_text.done", **place, "text": said},
                {"type": "response.content_part.done", **place, "part": part | {"text": said}},
            ]
    events += [
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": whole},
    ]
    yield from ({**event, "sequence_number": number} for number, event in enumerate(events))


# OpenAI's chat completions


def _as_chat(said: str, call: Call, request: Values, streamed: bool) -> tuple[str, str]:
    whole = _chat(said, call, request)
    if not streamed:
        return "application/json", json.dumps(whole)
    [choice] = whole["choices"]
    chunk = {key: whole[key] for key in ("id", "created", "model")} | {"object": "chat.completion.chunk"}
    chunks = [
        {**chunk, "choices": [{"index": 0, "delta": choice["message"], "finish_reason": None}]},
        {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]},
        {**chunk, "choices": [], "usage": whole["usage"]},
    ]
    return "text/event-stream", "".join(f"data: {json.dumps(value)}\n\n" for value in chunks) + _END


def _chat(said: str, call: Call, request: Values) -> Values:
    usage = {"prompt_tokens": INPUT, "completion_tokens": OUTPUT, "total_tokens": INPUT + OUTPUT}
    answer: Values = {"role": "assistant", "content": said}
    if call is not None:
        function = {"name": call[0], "arguments": json.dumps(call[1])}
        one = {"index": 0, "id": _identity("call"), "type": "function", "function": function}
        answer = {"role": "assistant", "content": None, "tool_calls": [one]}
    choice = {"index": 0, "message": answer, "finish_reason": "tool_calls" if call else "stop"}
    head = {"id": _identity("chatcmpl"), "object": "chat.completion", "created": int(time.time())}
    return head | {"model": request.get("model"), "choices": [choice], "usage": usage}


# Gemini's generateContent


def _as_gemini(said: str, call: Call, request: Values, streamed: bool) -> tuple[str, str]:
    part: Values = {"functionCall": {"name": call[0], "args": call[1]}} if call else {"text": said}
    asked = request.get("generationConfig") or {}
    if asked.get("responseMimeType") == "application/json" or asked.get("responseJsonSchema"):
        about = {"reasoning": "scripted", "next_speaker": "user", "model_choice": "flash"}
        part = {"text": json.dumps(about | {"complexity_reasoning": "scripted", "complexity_score": 10})}
    content = {"role": "model", "parts": [part] if call or part.get("text") else []}
    usage = {"promptTokenCount": INPUT, "candidatesTokenCount": OUTPUT, "totalTokenCount": INPUT + OUTPUT}
    whole = {"candidates": [{"index": 0, "content": content, "finishReason": "STOP"}], "usageMetadata": usage}
    whole["modelVersion"] = "scripted"
    if streamed:
        return "text/event-stream", f"data: {json.dumps(whole)}\n\n"
    return "application/json", json.dumps(whole)
