"""`ralph detect`: detect test results and usage limits in text."""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ralph.cli.output import emit_json, emit_line, say
from ralph.core.errors import SetupError, UsageError


def run(args: Namespace) -> int:
    judge: Callable[[dict[str, Any]], dict[str, Any]] = _tests if args.what == "tests" else _limit
    if args.jsonl:
        if args.file not in (None, "-"):
            raise UsageError("--jsonl reads stdin", hint=f"ralph detect {args.what} --jsonl <{args.file}")
        for given in _objects():
            emit_line(judge(given))
        return 0
    if args.file is None:
        raise UsageError(f"ralph detect {args.what}: a FILE is missing", hint="- reads the text from stdin")
    text = _read(args.file)
    if args.what == "tests":
        answer = judge({"command": args.command, "output": text, "exit_code": args.exit_code})
    else:
        now = _moment(args.now)
        if args.now is not None and now is None:
            raise UsageError(f"--now {args.now}: not a time", hint="such as 1794737722 or 2026-11-15T09:49:00Z")
        answer = judge({"text": text, "agent": args.agent, "now": now, "tz": args.tz})
    if args.json:
        emit_json(answer)
    else:
        say(_sentence(answer))
    return 0


def _tests(given: dict[str, Any]) -> dict[str, Any]:
    from ralph.results.detection import detect

    found = detect(_text(given.get("command")), _text(given.get("output")), _code(given.get("exit_code")))
    return {"ran": found.ran, "failed": found.failed, "framework": found.framework or None}


def _limit(given: dict[str, Any]) -> dict[str, Any]:
    from ralph.results.usage_limit import detect_limit

    now = _moment(given.get("now"))
    found = detect_limit(
        _text(given.get("text")),
        agent=_text(given.get("agent")),
        now=time.time() if now is None else now,
        tz=_text(given.get("tz")),
    )
    return {"limit": found.limit, "kind": found.kind, "resets_at": _iso(found.resets_at)}


def _objects() -> Iterator[dict[str, Any]]:
    """One object per non-blank line; a line that is not a JSON object counts as an empty object."""
    import json

    for line in sys.stdin.buffer:
        if not line.strip():
            continue
        try:
            value = json.loads(line.decode("utf-8", "replace"))
        except (ValueError, RecursionError):
            value = None
        yield value if isinstance(value, dict) else {}


def _read(name: str) -> str:
    try:
        data = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        raise SetupError(f"could not read {name}: {error.strerror}") from None
    return data.decode("utf-8", "replace")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _code(value: Any) -> int | None:
    try:
        return None if isinstance(value, bool) else int(value)
    except (TypeError, ValueError, OverflowError):
        return None


def _moment(value: Any) -> float | None:
    """Parse an epoch in seconds or milliseconds, or ISO 8601 (UTC without a zone). None if it is neither."""
    if isinstance(value, bool):
        return None
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        pass
    else:
        number = number / 1000 if number >= 1e11 else number
        return number if 0 <= number < 1e11 else None  # also not a number, and endless
    try:
        moment = datetime.fromisoformat(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _iso(moment: float | None) -> str | None:
    if moment is None:
        return None
    timespec = "seconds" if moment == int(moment) else "milliseconds"
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec=timespec).replace("+00:00", "Z")


def _sentence(answer: dict[str, Any]) -> str:
    if "ran" in answer:
        name = f" ({answer['framework']})" if answer["framework"] else ""
        return f"tests {'failed' if answer['failed'] else 'passed'}{name}" if answer["ran"] else "no tests ran"
    if not answer["limit"]:
        return "no limit"
    return f"a {answer['kind']} limit, " + (
        f"until {answer['resets_at']}" if answer["resets_at"] else "reset time unknown"
    )
