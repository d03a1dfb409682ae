"""A scripted model on loopback, in the form that the client speaks: see `dialects`.

A script is a list of turns, given one after the other to requests of the main loop (those that carry tools, or name the
model of the trial). A turn is an object with one of

    {"say": "text"}                       a message
    {"run": "ls"}                         a call of whichever tool the client has for commands
    {"write": [PATH, TEXT]}               the same for files; {"edit": [PATH, OLD, NEW]}, {"read": PATH}
    {"use": ["Bash", {"command": "ls"}]}  a call of this tool
    {"answer": [PATH, OBJECT]}            ends the session with an answer: by the client's schema, else in the file
    {"blocks": [{"say": …}, {"use": …}]}  several blocks in one message, for the Claude client
    {"nothing": true}                     no content at all
    {"error": 529}                        an error, with "kind" and "headers" if wanted
    {"fail": "quota"}                     an error as this vendor's service sends it, see `failures`
    {"cut": true}                         the first half of an answer, then the connection is closed

and with "usage" (token counts), "wait" (seconds before the answer) or "times" (how often it is given; 0: for ever).
When the script is over, the model says so. Other requests are small talk of the client and get "ok".
"""

from __future__ import annotations

import gzip
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from ralph.trial.dialects import EDITS, dialect, message, message_events, reply
from ralph.trial.failures import failure
from ralph.trial.tool_calls import tools_of

Turn = dict[str, Any]
Values = dict[str, Any]

MODEL = "scripted"
_KINDS = {401: "authentication_error", 404: "not_found_error", 429: "rate_limit_error", 529: "overloaded_error"}


class Script:
    """Hands out the turns, and keeps the requests."""

    def __init__(self, turns: list[Turn], log: Path) -> None:
        self._turns = turns
        self._log = log
        self._at = 0
        self._given = 0
        self._lock = threading.Lock()

    def answer(self, request: Values) -> Turn:
        with self._lock:
            is_text = request.get("model") == f"{MODEL}-text"
            is_main = bool(request.get("tools")) or is_text
            if is_main:
                self._spell_out("StructuredOutput" in tools_of(request))
            turn = self._whole() if is_text else self._next() if is_main else {"say": "ok"}
            with self._log.open("a") as stream:
                stream.write(
                    json.dumps({"t": time.time(), "is_main": is_main, "turn": turn, "request": request}) + "\n"
                )
            return turn

    def _spell_out(self, has_schema: bool) -> None:
        """The next turn, if it is an answer, as this client gives one."""
        if "answer" in (turn := (self._turns[self._at :] or [{}])[0]):
            path, given = turn["answer"]
            answer: list[Turn] = [{"write": [path, json.dumps(given)]}, {"say": "Done."}]
            if has_schema:
                answer = [{"use": ["StructuredOutput", given]}]
            self._turns[self._at : self._at + 1] = answer

    def _whole(self) -> Turn:
        """For a client without tools, whose session is one answer: all edits up to the next message, and that."""
        turns = [self._next()]
        while turns[-1].keys() & EDITS:
            turns.append(self._next())
        return turns[0] if len(turns) == 1 else turns[-1] | {"parts": turns}

    def _next(self) -> Turn:
        if self._at >= len(self._turns):
            return {"say": "The script is over."}
        turn = self._turns[self._at]
        self._given += 1
        times = turn.get("times", 1)
        if times and self._given >= times:
            self._at, self._given = self._at + 1, 0
        return turn


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    script: Script

    def do_POST(self) -> None:
        path = self.path.partition("?")[0]
        request = self._request()
        if path.endswith(("count_tokens", ":countTokens")):
            self._send(200, "application/json", json.dumps({"input_tokens": 100, "totalTokens": 100}), {})
            return
        turn = self.script.answer(request)
        time.sleep(turn.get("wait", 0))
        kind = dialect(path)
        if status := turn.get("error"):
            name = turn.get("kind", _KINDS.get(status, "api_error"))
            said = {"type": name, "message": turn.get("say", f"scripted {status}")}
            body = json.dumps({"type": "error", "error": said})
            self._send(status, "application/json", body, turn.get("headers", {}))
            return
        if "fail" in turn:
            status, headers, answer = failure(kind, turn["fail"])
            self._send(status, "application/json", json.dumps(answer), headers)
            return
        streamed = "stream" in path if kind == "gemini" else bool(request.get("stream"))
        try:
            form, body = self._reply(kind, turn, request, streamed=streamed)
        except LookupError as error:
            self._send(400, "application/json", json.dumps({"error": {"message": f"the trial: {error}"}}), {})
            return
        self._send(200, form, body, turn.get("headers", {}), cut=bool(turn.get("cut")))

    def _reply(self, kind: str, turn: Turn, request: Values, *, streamed: bool) -> tuple[str, str]:
        if kind or not ({"blocks", "usage"} & turn.keys()):
            return reply(kind, turn, request, streamed=streamed)
        blocks = [_block(block) for block in turn.get("blocks") or ([] if turn.get("nothing") else [turn])]
        whole = message(blocks, request.get("model", MODEL), turn.get("usage"))
        if not streamed:
            return "application/json", json.dumps(whole)
        events = "".join(f"event: {name}\ndata: {json.dumps(data)}\n\n" for name, data in message_events(whole))
        return "text/event-stream", events

    def _request(self) -> Values:
        data = self._body()
        if self.headers.get("content-encoding") == "gzip":
            data = gzip.decompress(data)
        try:
            found = json.loads(data or b"{}")
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}

    def _body(self) -> bytes:
        if self.headers.get("transfer-encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("content-length", 0)))
        data = b""
        while size := int(self.rfile.readline().strip() or b"0", 16):
            data += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return data

    def _send(self, status: int, kind: str, body: str, headers: dict[str, str], *, cut: bool = False) -> None:
        data = body.encode()
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        for name, value in headers.items():
            self.send_header(name, str(value))
        self.end_headers()
        try:
            self.wfile.write(data[: len(data) // 2] if cut else data)
        except ConnectionError:
            self.close_connection = True
        if cut:
            self.close_connection = True

    def do_GET(self) -> None:
        if self.path.partition("?")[0].endswith("/models"):
            listed = [{"id": name, "object": "model", "created": 1, "owned_by": "trial"} for name in (MODEL,)]
            self._send(200, "application/json", json.dumps({"object": "list", "data": listed}), {})
            return
        self._send(404, "application/json", "{}", {})

    do_HEAD = do_GET

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are kept by the script."""


def _block(block: Turn) -> Values:
    if "use" in block:
        name, given = block["use"]
        return {"type": "tool_use", "id": f"toolu_{time.monotonic_ns():022}", "name": name, "input": given}
    return {"type": "text", "text": block.get("say", "")}


def serve(turns: list[Turn], log: Path, port: int = 0) -> tuple[ThreadingHTTPServer, str]:
    """A server on a port of loopback, or a free one, at work in a thread, and its address."""
    handler = type("Scripted", (Handler,), {"script": Script(turns, log)})
    server = ThreadingHTTPServer(("127.0.0.1", port), handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    return server, f"http://127.0.0.1:{server.server_port}"
