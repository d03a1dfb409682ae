"""Make text from plans, agents and file names safe for a terminal or a log line."""

from __future__ import annotations

import re

from ralph.core.lazy_pattern import lazy_pattern

# ECMA-48 sequences: CSI, OSC (ended by BEL or ST) and the other string sequences, then two-byte escapes.
_ESCAPES = lazy_pattern(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?"
    r"|\x1b[ -/]*[0-~]?"
)
_COLOURS = lazy_pattern(r"\x1b\[[0-?]*[ -/]*[@-~]")
_LETTER = "[\u0590-\u1fff\u2190-\ufdff\ufe70-\ufefe\U00010000-\U000dffff]"
# Control characters except tab and newline; bidirectional overrides, which make a line read as another one; and all
# other characters that nobody sees but a model reads: zero width, fillers, tags, variation selectors. Joiners stay
# between letters of scripts and emoji that need them.
_INVISIBLE = lazy_pattern(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
    f"|(?<!{_LETTER})[\u200c\u200d\ufe00-\ufe0f]|[\u200c\u200d](?!{_LETTER})"
)


def clean(text: str) -> str:
    """Remove escape sequences, control characters and invisible characters. Tabs and newlines stay."""
    if text.isascii() and text.isprintable():
        return text
    text = text.replace("\r\n", "\n")
    return _INVISIBLE.sub("", _ESCAPES.sub("", text))


def revealed(text: str) -> str:
    """The text with invisible characters as `<U+202E>`: a reviewer has to see that a change adds them."""
    text = text.replace("\r\n", "\n")
    return _INVISIBLE.sub(lambda found: f"<U+{ord(found[0]):04X}>", text)


def shown(text: str) -> str:
    """`revealed`, but colours, which are in the output of most tools, are dropped."""
    return text if text.isascii() and text.isprintable() else revealed(_COLOURS.sub("", text))


_COMMENT = lazy_pattern(r"(```.*?```|`[^`\n]+`)|<!--.*?-->\n?", re.DOTALL)


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
