"""The only place that prints. Results go to stdout, everything said about them to stderr."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from typing import Any, TextIO

from ralph.core.text import clean

_CODES = {
    "bold": "1",
    "dim": "2",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "blue": "34",
    "cyan": "36",
}


def wants_colour(stream: TextIO) -> bool:
    """Colour only on a terminal, and never against NO_COLOR."""
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return stream.isatty()


def can_say(text: str) -> bool:
    """Whether stdout has these characters; one that has not gets escapes in their place."""
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def paint(text: str, style: str, stream: TextIO | None = None) -> str:
    if not wants_colour(stream or sys.stdout):
        return text
    codes = ";".join(_CODES[word] for word in style.split())
    return f"\x1b[{codes}m{text}\x1b[0m"


def say(text: str = "", style: str = "") -> None:
    """A line of the result."""
    line = clean(text)
    print(paint(line, style) if style else line)


def say_raw(text: str, *, at_once: bool = False) -> None:
    """Text that is already fit for stdout: painted, or written by Ralph itself."""
    print(text, flush=at_once)


def note(text: str, style: str = "") -> None:
    """A line about the result. A terminal that is gone does not get it, and that ends nothing."""
    line = clean(text)
    painted = paint(line, style, sys.stderr) if style else line
    if _diverted and sys.stderr.isatty():
        _diverted[-1](painted)
        return
    try:
        print(painted, file=sys.stderr)
    except OSError as error:
        if error.errno != errno.EIO:
            raise


_diverted: list[Callable[[str], None]] = []


def divert(to: Callable[[str], None] | None) -> None:
    """Notes for a terminal go here: a live view has to put them above itself. None: no longer."""
    _diverted[:] = [to] if to else []


def leave_closed_terminal() -> None:
    """What a terminal that is gone did not take is dropped, so that it is no error at exit."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError as error:
            if error.errno == errno.EIO:
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
    """One JSON document on a line of its own, at once."""
    sys.stdout.buffer.write(_encoded(value) + b"\n")
    sys.stdout.buffer.flush()


def _encoded(value: Any, indent: int | None = None) -> bytes:
    import msgspec

    try:
        text = msgspec.json.encode(value, enc_hook=str)
    except UnicodeEncodeError:  # a path with bytes that are not UTF-8: escaped, so that a reader gets them back
        import json

        return json.dumps(msgspec.to_builtins(value, enc_hook=str), indent=indent).encode()
    return text if indent is None else msgspec.json.format(text, indent=indent)


def can_draw() -> bool:
    """Stdout is a terminal on which the cursor can be moved."""
    return sys.stdout.isatty() and os.environ.get("TERM", "") not in ("", "dumb", "unknown")


def is_interactive() -> bool:
    """Somebody can be asked: both ends are a terminal."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def ask_line(prompt: str) -> str:
    """A line that somebody types. Only call when `is_interactive()`. The end of input counts as Ctrl-C."""
    while True:
        print(prompt, end="", file=sys.stderr, flush=True)
        try:
            line = sys.stdin.readline()
        except UnicodeDecodeError:
            note("that is not UTF-8; try again")
            continue
        if not line:
            raise KeyboardInterrupt
        return line.strip().encode("utf-8", "replace").decode()


def ask(question: str) -> bool:
    """Yes or no; no is the default. Only call when `is_interactive()`."""
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")
