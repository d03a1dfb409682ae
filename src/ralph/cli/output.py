"""The only place that prints. Results go to stdout, messages to stderr."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO

from ralph.core.text import clean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ralph.config.trust import Verdict


def wants_colour(stream: TextIO) -> bool:
    """Colour only on a terminal, and never with NO_COLOR."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return stream.isatty()


def can_say(text: str) -> bool:
    """Whether stdout can encode these characters; otherwise they are escaped."""
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def paint(text: str, style: str, stream: TextIO | None = None) -> str:
    if not wants_colour(stream or sys.stdout):
        return text
    from ralph.views.paint import paint as painted

    return painted(text, style)


def folded(text: str, stream: TextIO, indent: int | None = None) -> str:
    """On a terminal, the long lines of a text broken between words. A bar of progress stays in one piece.

    `indent`: of what follows a break; by default four columns more than the line has.
    """
    room = columns(stream)
    if not is_too_wide(text, room):
        return text
    from ralph.recording.spans import as_terminal_codes, wrapped
    from ralph.views.paint import unpainted

    lines: list[str] = []
    for line in text.replace("█] ", "█]\u00a0").replace("░] ", "░]\u00a0").split("\n"):
        bare = unpainted(line)
        own = min(len(bare) - len(bare.lstrip(" ")), room // 4) + 4 if indent is None else indent
        lines += map(as_terminal_codes, wrapped(line, room, own))
    return "\n".join(lines).replace("]\u00a0", "] ")


def is_too_wide(text: str, room: int) -> bool:
    """`room`: 0 if any width will do."""
    if len(text) <= room // 2 or room < _NARROWEST:  # a character has two columns at most
        return False
    from ralph.views.columns import cells
    from ralph.views.paint import unpainted

    return any(cells(line) > room for line in unpainted(text).split("\n"))


def columns(stream: TextIO) -> int:
    """The width of a terminal; 0 for a file, a pipe, or a terminal that does not tell."""
    try:
        return os.get_terminal_size(stream.fileno()).columns if stream.isatty() else 0
    except (OSError, ValueError):
        return 0


_NARROWEST = 32


def say(text: str = "", style: str = "", *, folds: bool = False) -> None:
    """Print a line of the result. `folds`: it is prose, which is broken between words on a terminal."""
    line = clean(_redacted_line(text))
    line = paint(line, style) if style else line
    print(folded(line, sys.stdout) if folds else line)


def say_raw(text: str, *, at_once: bool = False) -> None:
    """Print text that needs no cleaning: painted, or written by Ralph itself."""
    print(_redacted_line(text), flush=at_once)


def note(text: str, style: str = "") -> None:
    """Print a message. A closed terminal is ignored."""
    line = clean(_redacted_line(text))
    painted = paint(line, style, sys.stderr) if style else line
    if _diverted and sys.stderr.isatty():
        _diverted[-1](painted)
        return
    try:
        print(folded(painted, sys.stderr), file=sys.stderr)
    except OSError as error:
        if error.errno != errno.EIO:
            raise


_diverted: list[Callable[[str], None]] = []


def divert(to: Callable[[str], None] | None) -> None:
    """Redirect messages for a terminal: a live view prints them above itself. None: stop redirecting."""
    _diverted[:] = [to] if to else []


@contextmanager
def lost_output() -> Iterator[None]:
    """Go on if stdout takes nothing more: a closed terminal, a closed pipe or a full device. A full one is reported."""
    try:
        yield
        sys.stdout.flush()
    except OSError as error:
        if error.errno not in (errno.EIO, errno.EPIPE):
            with suppress(OSError):
                warn(f"the output could not be written: {error.strerror}")
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:  # Python would try again at exit, and report it again
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def warn(text: str) -> None:
    note(f"warning: {text}", "yellow")


def fail(text: str, hint: str = "") -> None:
    note(f"ralph: {text}", "red")
    if hint:
        note(f"  hint: {hint}")


def emit_json(value: Any) -> None:
    """One JSON document on stdout; msgspec structs, enums, paths and tuples are fine."""
    sys.stdout.flush()
    sys.stdout.buffer.write(_encoded(value, indent=2) + b"\n")
    sys.stdout.buffer.flush()


def emit_bytes(data: bytes) -> None:
    """The content of a file, byte for byte."""
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def emit_line(value: Any) -> None:
    """Print one JSON document on one line, and flush."""
    sys.stdout.buffer.write(_encoded(value) + b"\n")
    sys.stdout.buffer.flush()


def _redacted(data: bytes) -> bytes:
    from ralph.host.redaction import redact  # not needed for `ralph --version`

    return redact(data)


def _redacted_line(text: str) -> str:
    from ralph.host.redaction import redact_line

    return redact_line(text)


def _encoded(value: Any, indent: int | None = None) -> bytes:
    import msgspec

    try:
        text = _redacted(msgspec.json.encode(value, enc_hook=str))
    except UnicodeEncodeError:  # a path with bytes that are not UTF-8: escaped, so that a reader gets them back
        import json

        return _redacted(json.dumps(msgspec.to_builtins(value, enc_hook=str), indent=indent).encode())
    return text if indent is None else msgspec.json.format(text, indent=indent)


def can_draw() -> bool:
    """Whether stdout is a terminal on which the cursor can be moved."""
    return sys.stdout.isatty() and os.environ.get("TERM", "") not in ("", "dumb", "unknown")


def is_interactive() -> bool:
    """Whether the user can be asked: stdin and stdout are a terminal."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def ask_line(prompt: str) -> str:
    """Read a line from the user. Only call if `is_interactive()`. End of input counts as Ctrl-C."""
    while True:
        print(folded(prompt, sys.stderr), end="", file=sys.stderr, flush=True)
        try:
            line = sys.stdin.readline()
        except UnicodeDecodeError:
            note("not valid UTF-8; try again")
            continue
        if not line:
            raise KeyboardInterrupt
        return line.strip().encode("utf-8", "replace").decode()


def ask(question: str) -> bool:
    """Ask yes or no; no is the default. Only call if `is_interactive()`."""
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def ask_trust(verdict: Verdict) -> bool:
    """Show the commands of a workspace that are not trusted yet, and ask whether to run them."""
    for line in verdict.difference:
        note(line)
    return ask("Run these commands?")
