"""How full the context is, from the transcript's own token counts; told once at 50, 60, 70, 80 and 90 percent."""

import os

from ralph.hooks.call import NOTHING, Answer, Call, context
from ralph.hooks.quick_json import loads

THRESHOLDS = (50, 60, 70, 80, 90)
_WINDOW = 200_000
_TAIL = 256 * 1024
_BYTES_PER_TOKEN = 4

_NOTICE = (
    "Keep an eye on the space that is left, and plan to finish this story in this session. Follow-up work that you "
    "find becomes a new story in the plan; a later session takes it."
)
_WARNING = (
    "Finish this story soon and start nothing else. What remains becomes a new story in the plan; write what the next "
    "session needs to know into the progress log."
)
_CRITICAL = (
    "Stop working on new things now: (1) put what is left into new stories in the plan, (2) write what you know into "
    "the progress log, (3) leave the tree in a state that passes its tests, (4) end your turn. The next session goes "
    "on from there."
)
_MEANING = {50: _NOTICE, 60: _NOTICE, 70: _WARNING, 80: _WARNING, 90: _CRITICAL}


def answer(call: Call) -> Answer:
    """The highest threshold that is reached and was not told yet; lower ones are then passed over."""
    window = int(call.policy.number("context_window", _WINDOW)) if call.policy else _window_by_hand()
    used = _counted_by_the_loop(call) or _used(call.text("transcript_path"))
    if not used or window <= 0:
        return NOTHING
    percent = 100 * used // window
    told = _told(call)
    reached = [mark for mark in THRESHOLDS if percent >= mark and mark > told]
    if not reached:
        return NOTHING
    mark = reached[-1]
    _tell(call, mark)
    word = "CRITICAL" if mark >= 90 else "WARNING" if mark >= 70 else "NOTICE"
    return context(
        f"{word}: about {percent}% of the context is used ({used:,} of {window:,} tokens). {_MEANING[mark]}", "context"
    )


def forget(call: Call) -> None:
    """A new session, or a compacted one: every threshold counts again."""
    if path := _state(call):
        try:
            os.unlink(path)
        except OSError:
            pass


def _counted_by_the_loop(call: Call) -> int:
    """The loop reads the client's stream, also where the session is not kept and there is no transcript."""
    if call.policy is None or not call.policy.state:
        return 0
    try:
        with open(os.path.join(call.policy.state, "context-tokens"), encoding="ascii") as stream:
            return int(stream.read() or 0)
    except (OSError, ValueError):
        return 0


def _used(path: str) -> int:
    """Tokens in the last usage record after the last compaction, else an estimate by size."""
    try:
        size = os.stat(path).st_size
        with open(path, "rb") as stream:
            stream.seek(max(0, size - _TAIL))
            lines = stream.read().split(b"\n")
    except OSError:
        return 0
    for line in reversed(lines):
        if b'"usage"' not in line and b"compact_boundary" not in line:
            continue
        record = _record(line)
        if record.get("subtype") == "compact_boundary":
            return 0
        if (count := _count(record)) is not None:
            return count
    return size // _BYTES_PER_TOKEN


def _record(line: bytes) -> dict[str, object]:
    try:
        value = loads(line.decode("utf-8", "replace"))
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _count(record: dict[str, object]) -> int | None:
    """Everything the model read for its last answer. A sub-agent's context is another one."""
    message = record.get("message")
    if record.get("isSidechain") is True or not isinstance(message, dict):
        return None
    usage = message.get("usage")
    if not isinstance(usage, dict):
        return None
    names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")
    counts = [value for name in names if isinstance(value := usage.get(name), int)]
    return sum(counts) if counts else None


def _window_by_hand() -> int:
    given = os.environ.get("CLAUDE_CONTEXT_WINDOW", "")
    return int(given) if given.isdigit() else _WINDOW


def _state(call: Call) -> str:
    folder = call.policy.state if call.policy and call.policy.state else os.environ.get("TMPDIR", "/tmp")
    name = "".join(c for c in call.session if c.isalnum() or c in "-_")[:80]
    return os.path.join(folder, f"ralph-context-{name}")


def _told(call: Call) -> int:
    try:
        with open(_state(call), encoding="ascii") as stream:
            return int(stream.read().strip() or 0)
    except (OSError, ValueError):
        return 0


def _tell(call: Call, mark: int) -> None:
    try:
        with open(_state(call), "w", encoding="ascii") as stream:
            stream.write(str(mark))
    except OSError:
        pass
