"""Make text from plans, agents and file names safe for a terminal or a log line."""

from __future__ import annotations

import re

# ECMA-48 sequences: CSI, OSC (ended by BEL or ST) and the other string sequences, then two-byte escapes.
_ESCAPES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"
    r"|\x1b[ -/]*[0-~]?"
)
# Control characters except tab and newline; bidirectional overrides can make a line read as another one.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\u2028\u2029]")


def clean(text: str) -> str:
    """Remove escape sequences and control characters. Tabs and newlines stay."""
    text = text.replace("\r\n", "\n")
    return _CONTROLS.sub("", _ESCAPES.sub("", text))


_COMMENT = re.compile(r"(```.*?```|`[^`\n]+`)|<!--.*?-->\n?", re.DOTALL)


def without_comments(markdown: str) -> str:
    """Without HTML comments, except in code. A prompt has no use for the instructions of a template."""
    return _COMMENT.sub(lambda match: match[1] or "", markdown)


def one_line(text: str, width: int | None = None) -> str:
    """Clean, on one line, cut to `width` with an ellipsis."""
    line = " ".join(clean(text).split())
    if width is not None and len(line) > width:
        line = line[: max(width - 1, 0)].rstrip() + "…"
    return line


def estimate_tokens(text: str) -> int:
    """An estimate of four characters per token, for text no model has counted."""
    return (len(text) + 3) // 4


def plural(count: int, word: str) -> str:
    if count == 1:
        return f"1 {word}"
    return f"{count} {word[:-1]}ies" if word.endswith("y") else f"{count} {word}s"
