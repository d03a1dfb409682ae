"""Where a script is played: the facts of the session, and the stream that is written, as by the Claude client."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn
from uuid import uuid4

from ralph.core.agent import Tokens
from ralph.core.plan import Mode

_MOST_OUTPUT = 10_000
"""Bytes of a command's output that are repeated in the stream."""


class Leave(Exception):
    """The script is finished: the process exits with this code."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class CannotPlay(Exception):
    """The script requests something that is not possible here. A sentence for its author."""


class Stage:
    def __init__(self, env: Mapping[str, str], prompt: bytes, model: str, plan: str) -> None:
        self.story = env.get("RALPH_STORY", "")
        self.mode = Mode(env.get("RALPH_MODE") or Mode.IMPLEMENT)
        self.attempt = int(env.get("RALPH_ATTEMPT") or 1)
        self.prompt = prompt
        self.cwd = Path.cwd()
        self.linger = 0.0
        self.closing = ""
        """Printed at the very end."""
        self.tokens = Tokens()
        self.cost_usd = 0.0
        self._plan = plan
        self._request = env.get("RALPH_REQUEST_FILE", "")
        self._model = model
        self._session = str(uuid4())
        self._began = time.monotonic()
        self._said = ""
        self._calls = 0
        self._results = 0
        self._reported = Tokens()

    @property
    def plan(self) -> Path:
        if not self._plan:
            raise CannotPlay("the path of the plan is not known")
        return Path(self._plan)

    def request(self, **entries: Any) -> None:
        """Add to the request file."""
        if not self._request:
            raise CannotPlay("cannot write a request: RALPH_REQUEST_FILE is not set")
        path = Path(self._request)
        with contextlib.suppress(FileNotFoundError):
            entries = {**json.loads(path.read_bytes()), **entries}
        path.write_text(json.dumps(entries), encoding="utf-8")
        self.end(self.edit("Write", str(path)))

    def emit(self, event: dict[str, Any]) -> None:
        """One line of the stream."""
        event |= {"session_id": self._session, "uuid": str(uuid4())}
        self.write(json.dumps(event, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace") + b"\n")

    def write(self, data: bytes, to: int = 1) -> None:
        """Continue if nothing reads the output: the client does, too."""
        view = memoryview(data)
        with contextlib.suppress(BrokenPipeError):
            while view:
                view = view[os.write(to, view) :]

    def init(self) -> None:
        self.emit(
            {
                "type": "system",
                "subtype": "init",
                "cwd": str(self.cwd),
                "tools": ["Bash", "Edit", "Write"],
                "mcp_servers": [],
                "model": self._model,
                "permissionMode": "bypassPermissions",
            }
        )

    def say(self, text: str) -> None:
        self._said = text
        self.message({"type": "text", "text": text})

    def message(self, block: dict[str, Any]) -> None:
        message = {
            "id": f"msg_{os.urandom(11).hex()}",
            "type": "message",
            "role": "assistant",
            "model": self._model,
            "content": [block],
            "stop_reason": None,
            "usage": {"input_tokens": 0, "output_tokens": 1},
        }
        self.emit({"type": "assistant", "message": message, "parent_tool_use_id": None})

    def begin(self, tool: str, given: dict[str, Any]) -> str:
        """A tool call. Its id is passed to `end`."""
        self._calls += 1
        call = f"toolu_{os.urandom(11).hex()}"
        self.message({"type": "tool_use", "id": call, "name": tool, "input": given})
        return call

    def end(self, call: str, output: str = "", ok: bool = True, meta: dict[str, Any] | None = None) -> None:
        block = {"tool_use_id": call, "type": "tool_result", "content": output, "is_error": not ok}
        message = {"role": "user", "content": [block]}
        self.emit({"type": "user", "message": message, "parent_tool_use_id": None, **(meta or {})})

    def edit(self, tool: str, path: str, **given: str) -> str:
        """A tool call on a file."""
        return self.begin(tool, {"file_path": str(self.cwd / path), **given})

    def shell(self, command: str) -> bool:
        return self.command(["/bin/sh", "-c", command], command)

    def command(self, argv: Sequence[str], shown: str = "", env: Mapping[str, str] | None = None) -> bool:
        """Run a program as the Bash tool would: wait for the program, not for what it leaves in the background."""
        import tempfile

        call = self.begin("Bash", {"command": shown or " ".join(argv)})
        with tempfile.TemporaryFile() as output:
            streams: list[Any] = [(os.POSIX_SPAWN_DUP2, output.fileno(), stream) for stream in (1, 2)]
            streams.append((os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0))
            env = os.environ if env is None else env
            try:  # SIGPIPE: Python ignores it, and what it starts would, too
                pid = os.posix_spawnp(argv[0], list(argv), env, file_actions=streams, setsigdef=[signal.SIGPIPE])
            except OSError as error:
                self.end(call, f"{argv[0]}: {error.strerror}", ok=False)
                return False
            code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            output.seek(0)
            text = output.read(_MOST_OUTPUT).decode("utf-8", "replace")
        self.end(call, text if code == 0 else f"Exit code {code}\n{text}", ok=code == 0)
        return code == 0

    def synthetic(self, text: str, **fields: Any) -> None:
        """What the client prints when the API fails."""
        message = {"role": "assistant", "model": "<synthetic>", "content": [{"type": "text", "text": text}]}
        event = {"type": "assistant", "message": message, "parent_tool_use_id": None, "is_api_error_message": True}
        self.emit({**event, **fields})

    def result(self, **fields: Any) -> None:
        """A result, successful unless `fields` say otherwise. Cost and tokens by model are totals so far."""
        new, self._reported = _minus(self.tokens, self._reported), self.tokens
        event = {
            "duration_ms": int((time.monotonic() - self._began) * 1000),
            "stop_reason": "end_turn",
            "total_cost_usd": self.cost_usd,
            "usage": {
                "input_tokens": new.input,
                "output_tokens": new.output,
                "cache_read_input_tokens": new.cache_read,
                "cache_creation_input_tokens": new.cache_write,
            },
            "modelUsage": {
                self._model: {
                    "inputTokens": self.tokens.input,
                    "outputTokens": self.tokens.output,
                    "cacheReadInputTokens": self.tokens.cache_read,
                    "cacheCreationInputTokens": self.tokens.cache_write,
                    "costUSD": self.cost_usd,
                }
            },
            "permission_denials": [],
            "terminal_reason": "completed",
            "is_error": False,
            "num_turns": self._calls + 1,
            "subtype": "success",
            "api_error_status": None,
            "result": self._said,
            "type": "result",
            "result_index": self._results,
        }
        self._results += 1
        self._calls = 0
        self.emit({**event, **fields})

    def fail(self, text: str, *, terminal: str = "api_error", **fields: Any) -> NoReturn:
        """End as the client does when it cannot continue."""
        self.result(is_error=True, result=text, terminal_reason=terminal, **fields)
        raise Leave(1)

    def close(self) -> None:
        """The final message and the final result."""
        if self.closing or not self._said:
            self.say(self.closing or "The script is played to its end.")
        self.result()


def _minus(total: Tokens, before: Tokens) -> Tokens:
    return Tokens(
        total.input - before.input,
        total.output - before.output,
        total.cache_read - before.cache_read,
        total.cache_write - before.cache_write,
    )
