"""Backslashes: in `$'…'`, and in the arguments of `printf` and `echo -e`."""

_SIMPLE = {
    "a": "\a",
    "b": "\b",
    "e": "\x1b",
    "E": "\x1b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    "\\": "\\",
    "'": "'",
    '"': '"',
    "?": "?",
}
_HEX = "0123456789abcdefABCDEF"
_OCTAL = "01234567"
_DIGITS = {"x": 2, "u": 4, "U": 8}


def unescape(text: str) -> str:
    """The result of backslashes in `$'…'`, printf and `echo -e`. Bytes above 127 are read as Latin-1, which
    suffices."""
    if "\\" not in text:
        return text
    out: list[str] = []
    i, end = 0, len(text)
    while i < end:
        letter = text[i]
        if letter != "\\" or i + 1 >= end:
            out.append(letter)
            i += 1
            continue
        letter = text[i + 1]
        i += 2
        if letter in _SIMPLE:
            out.append(_SIMPLE[letter])
        elif letter in _DIGITS:
            width = _run(text, i, _HEX, _DIGITS[letter])
            out.append(_character(text[i : i + width], 16) if width else "\\" + letter)
            i += width
        elif letter in _OCTAL:
            # `\0nnn` is the form of echo and of printf's %b, `\nnn` the one of $'…'.
            i = i if letter == "0" else i - 1
            width = _run(text, i, _OCTAL, 3)
            out.append(_character(text[i : i + width] or "0", 8))
            i += width
        elif letter == "c":
            i += 1
        else:
            out.append("\\" + letter)
    return "".join(out)


def _run(text: str, start: int, allowed: str, most: int) -> int:
    width = 0
    while width < most and start + width < len(text) and text[start + width] in allowed:
        width += 1
    return width


def _character(digits: str, base: int) -> str:
    number = int(digits, base)
    return chr(number) if number < 0x110000 and not 0xD800 <= number < 0xE000 else "?"
