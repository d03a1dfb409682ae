"""The bytes of a file as text, if it is text and not too long."""

from __future__ import annotations

LONGEST = 400_000
"""Characters of one file. Anything longer is data, or meant to keep a reader busy."""


def is_binary(data: bytes) -> bool:
    return b"\0" in data[:8192] and not data.startswith((b"\xff\xfe", b"\xfe\xff"))


def text_of(data: bytes | None) -> str | None:
    """With `\\n` at the end of lines. None: missing, binary or too long."""
    if data is None or len(data) > LONGEST or is_binary(data):
        return None
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        text = data.decode("utf-16", "replace")
    else:
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError:
            text = data.decode("latin-1")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def squeezed(text: str) -> str:
    """Without any white space: equal for texts that differ in layout only."""
    return "".join(text.split())


def line_at(text: str, offset: int) -> int:
    return text.count("\n", 0, offset) + 1


def word_set(*texts: str) -> frozenset[str]:
    """The words of a text, for long lists of names."""
    return frozenset(word for text in texts for word in text.split())
