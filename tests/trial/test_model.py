"""The scripted model as a server: which turn a request gets, and what reaches the client."""

from __future__ import annotations

import gzip
import http.client
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from ralph.trial.model import serve

TOOL = {"type": "function", "function": {"name": "bash", "parameters": {"properties": {"command": {}}}}}
Ask = Callable[..., tuple[int, str]]
Start = Callable[[list[dict[str, Any]]], Ask]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    servers = []

    def begin(turns: list[dict[str, Any]]) -> Ask:
        server, address = serve(turns, tmp_path / "requests.jsonl")
        servers.append(server)
        host = address.removeprefix("http://")

        def ask(
            path: str = "/v1/chat/completions", *, tools: Sequence[Any] = (TOOL,), squeeze: bool = False, **more: Any
        ) -> Any:
            door = http.client.HTTPConnection(host, timeout=10)
            given = json.dumps({"model": "m", "tools": tools, **more}).encode()
            head = {"content-encoding": "gzip"} if squeeze else {}
            try:
                door.request("POST", path, gzip.compress(given) if squeeze else given, head)
                answer = door.getresponse()
                return answer.status, answer.read().decode()
            finally:
                door.close()

        return ask

    yield begin
    for server in servers:
        server.shutdown()
        server.server_close()


def said(answer: tuple[int, str]) -> str:
    return str(json.loads(answer[1])["choices"][0]["message"]["content"])


def test_turns_are_given_in_order_and_then_the_script_is_over(start: Start) -> None:
    ask = start([{"say": "one"}, {"say": "two", "times": 2}, {"say": "three"}])
    assert [said(ask()) for _ in range(6)] == ["one", "two", "two", "three", *["The script is over."] * 2]


def test_a_turn_may_be_given_for_ever(start: Start) -> None:
    ask = start([{"fail": "500", "times": 0}, {"say": "never"}])
    assert [ask()[0] for _ in range(4)] == [500] * 4


def test_small_talk_uses_up_no_turn_unless_the_client_has_no_tools_at_all(start: Start) -> None:
    ask = start([{"say": "one"}, {"say": "two"}])
    assert said(ask(tools=())) == "ok"
    assert said(ask()) == "one"
    assert said(ask(tools=(), model="scripted-text")) == "two"


@pytest.mark.parametrize("stream", [False, True])
def test_a_cut_answer_breaks_off_in_the_middle(start: Start, stream: bool) -> None:
    ask = start([{"say": "x" * 200, "cut": True}, {"say": "whole"}])
    with pytest.raises(http.client.IncompleteRead) as caught:
        ask(stream=stream)
    assert caught.value.partial
    assert '"stop"' not in caught.value.partial.decode()
    assert said(ask()) == "whole"


def test_errors_have_a_status_a_kind_and_headers(start: Start) -> None:
    ask = start([{"error": 529}, {"error": 400, "kind": "odd", "say": "Why?"}, {"fail": "quota"}, {"fail": "429"}])
    answers = [ask() for _ in range(4)]
    assert [status for status, _ in answers] == [529, 400, 429, 429]
    errors = [json.loads(body)["error"] for _, body in answers]
    assert [error["type"] for error in errors] == ["overloaded_error", "odd", "insufficient_quota", "requests"]
    assert errors[1]["message"] == "Why?"


def test_a_turn_that_no_tool_can_do_is_refused(start: Start) -> None:
    other = {"type": "function", "function": {"name": "look", "parameters": {}}}
    status, body = start([{"run": "ls"}])(tools=[other])
    assert status == 400
    assert "no tool for commands among look" in body


def test_requests_are_kept_with_their_turns(start: Start, tmp_path: Path) -> None:
    ask = start([{"say": "one"}])
    ask(squeeze=True, messages=[{"role": "user", "content": "naïve 🙂"}])
    ask(tools=())
    kept = [json.loads(line) for line in (tmp_path / "requests.jsonl").read_text().splitlines()]
    assert [(one["is_main"], one["turn"]) for one in kept] == [(True, {"say": "one"}), (False, {"say": "ok"})]
    assert kept[0]["request"]["messages"][0]["content"] == "naïve 🙂"


def test_counting_tokens_is_no_turn(start: Start) -> None:
    ask = start([{"say": "one"}])
    assert json.loads(ask("/v1/messages/count_tokens")[1])["input_tokens"] == 100
    assert said(ask()) == "one"
