"""What an agent says and does, read from its raw log while it grows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ralph.host.process.raw_log import RawLog
from ralph.workspace.agent_stream import AgentStream, Call

NAMES = "input_tokens", "cache_read_input_tokens"


def message(*content: dict[str, Any], read: int = 0, at: str = "2026-01-01T10:00:00.000Z") -> bytes:
    said = {"model": "claude-sonnet-4-5", "usage": {"input_tokens": read}, "content": list(content)}
    return line({"type": "assistant", "message": said, "parent_tool_use_id": None, "timestamp": at})


def result(call: str, text: str, at: str, *, is_error: bool = False) -> bytes:
    content = [{"type": "tool_result", "tool_use_id": call, "content": text, "is_error": is_error}]
    return line({"type": "user", "message": {"content": content}, "timestamp": at})


def line(event: dict[str, Any]) -> bytes:
    return json.dumps(event).encode() + b"\n"


def tool(call: str, command: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": call, "name": "Bash", "input": {"command": command}}


INIT = line({"type": "system", "subtype": "init", "model": "claude-sonnet-4-5", "cwd": "/w"})


def test_text_and_calls_come_in_order_with_result_and_duration(tmp_path: Path) -> None:
    with RawLog(tmp_path / "raw.log") as raw:
        stream = AgentStream(raw.path, "claude", clock=lambda: 50.0)
        raw.write(INIT + message({"type": "text", "text": "First I look.\n\nThen I write."}, read=1000))
        raw.write(message(tool("a", "pytest -q"), read=1000) + message(tool("b", "false"))[:20])
        stream.poll()
        assert [entry if isinstance(entry, str) else entry.summary for entry in stream.recent] == [
            "First I look.",
            "Then I write.",
            "Bash pytest -q",
        ]
        call = stream.recent[-1]
        assert isinstance(call, Call)
        assert call.ok is None, "a line that is half written says nothing yet"
        raw.write(message(tool("b", "false"))[20:])
        raw.write(result("a", "3 passed", "2026-01-01T10:00:04.500Z"))
        raw.write(result("b", "Exit code 1\x1b[2J", "2026-01-01T10:00:05Z", is_error=True))
        stream.poll()
        done = stream.recent[-2]
        assert isinstance(done, Call)
        assert (done.ok, done.seconds) == (True, 4.5)
        failed = stream.recent[-1]
        assert isinstance(failed, Call)
        assert (failed.ok, failed.seconds, failed.text) == (False, 5.0, "Exit code 1")
        stream.close()


def test_tokens_and_cost_are_estimated_until_the_result_counts_them(tmp_path: Path) -> None:
    with RawLog(tmp_path / "raw.log") as raw:
        stream = AgentStream(raw.path, "claude")
        raw.write(INIT + message({"type": "text", "text": "x" * 400}, read=10_000))
        stream.poll()
        assert (stream.tokens.input, stream.tokens.output) == (10_000, 100)
        assert stream.cost_usd is not None
        assert 0.02 < stream.cost_usd < 0.2
        usage = {"claude-sonnet-4-5": {"inputTokens": 10_000, "outputTokens": 700, "costUSD": 0.25}}
        end = {"type": "result", "subtype": "success", "is_error": False, "result": "ok", "total_cost_usd": 0.25}
        raw.write(line(end | {"modelUsage": usage}))
        stream.poll()
        assert (stream.tokens.total, stream.cost_usd) == (10_700, 0.25)
        stream.close()


def test_the_output_of_any_command_line_is_its_text(tmp_path: Path) -> None:
    with RawLog(tmp_path / "raw.log") as raw:
        stream = AgentStream(raw.path, "command")
        raw.write(b"reading\r\nwriting \x1b]0;title\x07file \xff\nnot yet")
        stream.poll()
        assert list(stream.recent) == ["reading", "writing file \N{REPLACEMENT CHARACTER}"]
        stream.close()


def test_a_log_is_followed_through_its_rotation(tmp_path: Path) -> None:
    seen = []
    with RawLog(tmp_path / "raw.log", cap=400) as raw:
        stream = AgentStream(raw.path, "command")
        for number in range(100):
            raw.write(b"line %d\n" % number)
            stream.poll()
            seen += list(stream.recent)
            stream.recent.clear()
        stream.close()
    assert seen == [f"line {number}" for number in range(100)]


def test_a_log_that_was_rotated_before_is_read_as_far_as_it_is_there(tmp_path: Path) -> None:
    with RawLog(tmp_path / "raw.log", cap=400) as raw:
        for number in range(100):
            raw.write(b"line %d\n" % number)
    stream = AgentStream(raw.path, "command")
    stream.poll()
    assert stream.recent[0] == "line 0"
    assert stream.recent[-1] == "line 99"
    stream.close()


def test_neither_a_missing_log_nor_an_unknown_agent_is_an_error(tmp_path: Path) -> None:
    for agent in ("claude", "of-a-plugin-that-is-gone"):
        stream = AgentStream(tmp_path / "none.log", agent)
        stream.poll()
        assert not stream.recent
        assert stream.cost_usd is None
        stream.close()
