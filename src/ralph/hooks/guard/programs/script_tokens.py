"""Code of any scripting language as tokens: text, names, signs. Approximate, and the same for all of them."""

from ralph.hooks.guard.escapes import unescape

_NAME = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_")
_JOINS = (".", "::", "->", ":")
_COMMENTS = {
    "node": ("//",),
    "php": ("//", "#"),
    "perl": ("#",),
    "ruby": ("#",),
    "awk": ("#",),
    "lua": ("--",),
    "osascript": ("--", "#"),
    "Rscript": ("#",),
    "R": ("#",),
    "julia": ("#",),
    "python": ("#",),
    "tclsh": ("#",),
    "expect": ("#",),
    "groovy": ("//",),
    "scala": ("//",),
}
_QUOTES = ("q", "qq", "qx", "qw", "%x", "%q", "%Q", "x")
_HAVE_PATTERNS = ("node", "ruby", "perl", "awk")
_PAIRS = {"(": ")", "{": "}", "[": "]", "<": ">", "|": "|", "!": "!", "/": "/", "~": "~"}


class Token:
    """`kind`: text, name, number, sign, or command (backticks)."""

    __slots__ = ("kind", "text")

    def __init__(self, kind: str, text: str) -> None:
        self.kind = kind
        self.text = text


def tokens(code: str, language: str) -> list[Token]:
    found: list[Token] = []
    comments = _COMMENTS.get(language, ("#", "//"))
    i, end = 0, len(code)
    while i < end:
        letter = code[i]
        if letter in " \t\r":
            i += 1
        elif code.startswith("/*", i) and language in ("node", "php", "groovy", "scala"):
            stop = code.find("*/", i)
            i = end if stop < 0 else stop + 2
        elif any(code.startswith(mark, i) for mark in comments) and not (i and code[i - 1] in "$\\:'\""):
            stop = code.find("\n", i)
            i = end if stop < 0 else stop
        elif letter == "/" and language in _HAVE_PATTERNS and _starts_pattern(found):
            i = _pattern(code, i, found)
        elif letter in "'\"`":
            i = _quoted(code, i, language, found)
        elif letter in _NAME or (
            letter in "$@%" and i + 1 < end and code[i + 1] in _NAME and letter + language != "@php"
        ):
            i = _name(code, i, language, found)
        else:
            found.append(Token("sign", letter))
            i += 1
    return found


def _starts_pattern(found: list[Token]) -> bool:
    """A slash that is not a division: it follows nothing, an operator or a keyword."""
    if not found:
        return True
    last = found[-1]
    return last.text in ("return", "if", "unless", "and", "or", "not") or (
        last.kind == "sign" and last.text not in ")]}"
    )


def _pattern(code: str, start: int, found: list[Token]) -> int:
    i = start + 1
    while i < len(code) and code[i] not in "/\n":
        i += 2 if code[i] == "\\" else 1
    if i >= len(code) or code[i] == "\n":
        found.append(Token("sign", "/"))
        return start + 1
    return i + 1


def _quoted(code: str, start: int, language: str, found: list[Token]) -> int:
    mark = code[start]
    i = start + 1
    while i < len(code) and code[i] != mark:
        i += 2 if code[i] == "\\" else 1
    text = code[start + 1 : i]
    is_command = mark == "`" and (language in ("perl", "ruby", "php", "julia") or _is_tag(found))
    if mark == "'":
        text = text.replace("\\'", "'")
    else:
        text = unescape(text)
        for letter in "$@#/`":
            text = text.replace("\\" + letter, letter)
    found.append(Token("command" if is_command else "text", text))
    return i + 1


def _is_tag(found: list[Token]) -> bool:
    """`$` before a template string: zx and Bun run it."""
    return bool(found) and (found[-1].text in ("$", "Bun.$") or found[-1].text.endswith(".$"))


def _name(code: str, start: int, language: str, found: list[Token]) -> int:
    i = start + 1
    while i < len(code):
        if code[i] in _NAME or (code[i] in "?!" and language == "ruby" and code[i - 1] in _NAME):
            i += 1
            continue
        join = next((each for each in _JOINS if code.startswith(each, i)), "")
        if join and i + len(join) < len(code) and code[i + len(join)] in _NAME and not code[start].isdigit():
            i += len(join)
            continue
        break
    text = code[start:i]
    if language in ("perl", "ruby") and text in _QUOTES and i < len(code) and code[i] in _PAIRS:
        stop = code.find(_PAIRS[code[i]], i + 1)
        if stop > 0:
            found.append(Token("command" if text in ("qx", "%x", "x") else "text", code[i + 1 : stop]))
            return stop + 1
    found.append(
        Token("number" if text[0].isdigit() else "name", text.replace("::", ".").replace("->", ".").replace(":", "."))
    )
    return i
