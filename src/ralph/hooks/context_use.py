"""How full the context is, from the transcript's token counts; reported once at 50, 60, 70, 80 and 90 percent."""

import os

from ralph.hooks.call import NOTHING, Answer, Call, context
from ralph.hooks.policy import CONTEXT_TOKENS, CONTEXT_WINDOW
from ralph.hooks.quick_json import loads

TYPE_CHECKING = False  # `typing` is not imported for it
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

THRESHOLDS = (50, 60, 70, 80, 90)
_WINDOW = 200_000
_LARGE_WINDOW = 1_000_000
_PIECE = 256 * 1024
_MOST = 32 * 1024 * 1024
_BYTES_PER_TOKEN = 4

_NOTICE = (
    "Plan to finish this story in this session. Add follow-up work to the plan as a new story; a later session "
    "picks it up."
)
_WARNING = (
    "Finish this story soon and start nothing else. Add what remains to the plan as a new story; write what the next "
    "session needs to know into the progress log."
)
_CRITICAL = (
    "Start no new work: (1) add the remaining work to the plan as new stories, (2) write what you know into the "
    "progress log, (3) leave the tree in a state that passes its tests, (4) end your turn. The next session continues "
    "from there."
)
_MEANING = {50: _NOTICE, 60: _NOTICE, 70: _WARNING, 80: _WARNING, 90: _CRITICAL}
_REVIEW_NOTICE = "Plan to finish this review in this session."
_REVIEW_WARNING = "Finish this review soon: check the remaining criteria, then write your verdict."
_REVIEW_CRITICAL = "Write your verdict now, with the findings you have, and end your turn. Edit nothing."
_REVIEW_MEANING = {
    50: _REVIEW_NOTICE,
    60: _REVIEW_NOTICE,
    70: _REVIEW_WARNING,
    80: _REVIEW_WARNING,
    90: _REVIEW_CRITICAL,
}
"""A reviewer edits nothing, the plan included."""


def answer(call: Call) -> Answer:
    """The highest threshold that was reached and not yet reported; lower ones are skipped."""
    used = _told_by_the_loop(call, CONTEXT_TOKENS) or _used(call.text("transcript_path"))
    window = _window(call, used)
    if not used or window <= 0:
        return NOTHING
    percent = 100 * used // window
    if call.is_by_hand and percent < THRESHOLDS[0]:
        forget(call)  # another transcript of the same name, in a second try
    told = _told(call)
    reached = [mark for mark in THRESHOLDS if percent >= mark and mark > told]
    if not reached:
        return NOTHING
    mark = reached[-1]
    _tell(call, mark)
    meaning = _REVIEW_MEANING if call.policy and call.policy.mode == "review" else _MEANING
    word = "CRITICAL" if mark >= 90 else "WARNING" if mark >= 70 else "NOTICE"
    return context(
        f"{word}: about {percent}% of the context is used ({used:,} of {window:,} tokens). {meaning[mark]}", "context"
    )


def forget(call: Call) -> None:
    """After a new session or a compaction, every threshold counts again, and so does the context."""
    gone = [_state(call)]
    if call.policy and call.policy.state and call.text("source") == "compact":
        gone.append(os.path.join(call.policy.state, CONTEXT_TOKENS))
    for path in gone:
        try:
            os.unlink(path)
        except OSError:
            pass


"""Files in the session's folder. The loop reads the client's stream, also where no transcript is kept."""


def _told_by_the_loop(call: Call, name: str) -> int:
    if call.policy is None or not call.policy.state:
        return 0
    try:
        with open(os.path.join(call.policy.state, name), encoding="ascii") as stream:
            return int(stream.read() or 0)
    except (OSError, ValueError):
        return 0


def _window(call: Call, used: int) -> int:
    """What the loop knows about the model, or a manual setting; never less than what is already in use."""
    if call.policy is None:
        given = os.environ.get("CLAUDE_CONTEXT_WINDOW", "")
        window = int(given) if given.isdecimal() else _WINDOW
    else:
        window = _told_by_the_loop(call, CONTEXT_WINDOW) or int(call.policy.number("context_window", _WINDOW))
    return _LARGE_WINDOW if _WINDOW == window < used else window


def _used(path: str) -> int:
    """Tokens in the last usage record after the last compaction, else an estimate from the size of what follows it."""
    try:
        with open(path, "rb") as stream:
            size = stream.seek(0, os.SEEK_END)
            passed = 0
            for line in _from_the_end(stream, size):
                if b'"usage"' in line or b"compact_boundary" in line:
                    record = _record(line)
                    if record.get("subtype") == "compact_boundary":
                        return passed // _BYTES_PER_TOKEN
                    if (count := _count(record)) is not None:
                        return count
                passed += len(line) + 1
    except (OSError, ValueError):
        return 0
    return size // _BYTES_PER_TOKEN


def _from_the_end(stream: "BinaryIO", at: int) -> "Iterator[bytes]":
    """The lines of a file, last one first: what is needed is usually near the end of a long transcript."""
    rest, piece, until = b"", _PIECE, max(0, at - _MOST)
    while at > until:
        step = min(piece, at)
        at -= step
        stream.seek(at)
        rest, *lines = (stream.read(step) + rest).split(b"\n")
        yield from reversed(lines)
        piece *= 2  # a line may be as long as the file; it is not put together in small steps
    yield rest


def _record(line: bytes) -> dict[str, object]:
    try:
        value = loads(line.decode("utf-8", "replace"))
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _count(record: dict[str, object]) -> int | None:
    """Everything the model read for its last answer. A sub-agent has a separate context."""
    message = record.get("message")
    if record.get("isSidechain") is True or not isinstance(message, dict):
        return None
    usage = message.get("usage")
    if not isinstance(usage, dict):
        return None
    names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")
    counts = [value for name in names if isinstance(value := usage.get(name), int)]
    return sum(counts) if counts else None


def _state(call: Call) -> str:
    session = call.text("session_id") or call.text("transcript_path")
    name = "".join(c for c in session if c.isalnum() or c in "-_")[-80:]
    if call.policy and call.policy.state:
        return os.path.join(call.policy.state, f"context-told-{name}")
    return os.path.join(os.environ.get("TMPDIR") or "/tmp", f"ralph-context-{os.getuid()}-{name}")


def _told(call: Call) -> int:
    try:
        with open(_state(call), encoding="ascii") as stream:
            return int(stream.read().strip() or 0)
    except (OSError, ValueError):
        return 0


def _tell(call: Call, mark: int) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        descriptor = os.open(_state(call), flags, 0o600)  # by hand it is in a folder where others may put links
    except OSError:
        return
    try:
        os.write(descriptor, str(mark).encode())
    except OSError:
        pass
    finally:
        os.close(descriptor)
