"""A scripted model on loopback: speaks as much of the Messages API as the Claude client asks for.

Other clients are answered in the form that they speak, see `dialects`.

A script is a list of turns, given one after the other to requests of the main loop (those that carry tools). A turn is
an object with one of

    {"say": "text"}                       one block of text
    {"use": ["Bash", {"command": "ls"}]}  one tool call
    {"blocks": [{"say": …}, {"use": …}]}  several blocks in one message
    {"nothing": true}                     no content at all
    {"error": 529}                        an error, with "kind" and "headers" if wanted

and with "usage" (token counts), "wait" (seconds before the answer) or "times" (how often it is given; 0: for ever).
When the script is over, the model says so. Requests without tools are small talk of the client and get "ok".
"""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from model_server.dialects import dialect, reply

Turn = dict[str, Any]

KINDS = {401: "authentication_error", 404: "not_found_error", 429: "rate_limit_error", 529: "overloaded_error"}


class Script:
    """Hands out the turns, and keeps the requests."""

    def __init__(self, turns: list[Turn], log: Path) -> None:
        self._turns = turns
        self._log = log
        self._at = 0
        self._given = 0
        self._lock = threading.Lock()

    def answer(self, request: dict[str, Any]) -> Turn:
        with self._lock:
            with self._log.open("a") as stream:
                stream.write(json.dumps({"t": time.time(), "request": request}) + "\n")
            if not request.get("tools"):
                return {"say": "ok"}
            if self._at >= len(self._turns):
                return {"say": "The script is over."}
            turn = self._turns[self._at]
            self._given += 1
            times = turn.get("times", 1)
            if times and self._given >= times:
                self._at, self._given = self._at + 1, 0
            return turn


def content(turn: Turn) -> list[dict[str, Any]]:
    blocks = turn.get("blocks") or ([] if turn.get("nothing") else [turn])
    return [_block(block) for block in blocks]


def _block(block: Turn) -> dict[str, Any]:
    if "use" in block:
        name, given = block["use"]
        return {"type": "tool_use", "id": f"toolu_{uuid.uuid4().hex[:22]}", "name": name, "input": given}
    return {"type": "text", "text": block.get("say", "")}


def message(turn: Turn, model: str) -> dict[str, Any]:
    blocks = content(turn)
    uses = any(block["type"] == "tool_use" for block in blocks)
    usage = {"input_tokens": 100, "output_tokens": 20, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}
    return {
        "id": f"msg_{uuid.uuid4().hex[:22]}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": blocks,
        "stop_reason": "tool_use" if uses else "end_turn",
        "stop_sequence": None,
        "usage": usage | turn.get("usage", {}),
    }


def stream(whole: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
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


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    script: Script

    def do_POST(self) -> None:
        request = json.loads(self._body() or b"{}")
        turn = self.script.answer(request)
        time.sleep(turn.get("wait", 0))
        if status := turn.get("error"):
            kind = turn.get("kind", KINDS.get(status, "api_error"))
            said = {"type": kind, "message": turn.get("say", f"scripted {status}")}
            self._send(
                status, "application/json", json.dumps({"type": "error", "error": said}), turn.get("headers", {})
            )
            return
        headers = turn.get("headers", {})
        if kind := dialect(self.path.partition("?")[0]):
            self._send(200, *reply(kind, turn, request), headers)
            return
        whole = message(turn, request.get("model", "scripted"))
        if request.get("stream"):
            events = "".join(f"event: {name}\ndata: {json.dumps(data)}\n\n" for name, data in stream(whole))
            self._send(200, "text/event-stream", events, headers)
        else:
            self._send(200, "application/json", json.dumps(whole), headers)

    def _body(self) -> bytes:
        if self.headers.get("transfer-encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("content-length", 0)))
        data = b""
        while size := int(self.rfile.readline().strip() or b"0", 16):
            data += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return data

    def _send(self, status: int, kind: str, body: str, headers: dict[str, str]) -> None:
        data = body.encode()
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        for name, value in headers.items():
            self.send_header(name, str(value))
        self.end_headers()
        try:
            self.wfile.write(data)
        except ConnectionError:
            self.close_connection = True

    def do_GET(self) -> None:
        self._send(404, "application/json", "{}", {})

    do_HEAD = do_GET

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are kept by the script."""


def serve(turns: list[Turn], log: Path, port: int = 0) -> tuple[ThreadingHTTPServer, str]:
    """A server on a port of loopback, or a free one, at work in a thread, and its address."""
    handler = type("Scripted", (Handler,), {"script": Script(turns, log)})
    server = ThreadingHTTPServer(("127.0.0.1", port), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, f"http://127.0.0.1:{server.server_port}"
