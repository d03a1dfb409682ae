"""Separates comments, strings and code, for languages that are read as tokens.

`code` has the comments blanked, `bare` also the content of strings. Both are as long as the text, line by line, so
that a place found in one is the same place in all of them.
"""

from __future__ import annotations

import re
from functools import cache

from msgspec import Struct

from ralph.checks.tamper.suite import Tokens

# What is never closed reaches to the end (of the line, or of the file): no rule is tried twice on the same stretch.
_DOUBLE = r'"(?:\\.|[^"\\\n])*+(?:"|$)'
_SINGLE = r"'(?:\\.|[^'\\\n])*+(?:'|$)"
_DOUBLE_LONG = r'"(?:\\.|[^"\\])*+(?:"|\Z)'
_SINGLE_LONG = r"'(?:\\.|[^'\\])*+(?:'|\Z)"
_BACKTICK = r"`(?:\\.|[^`\\])*+(?:`|\Z)"
_TRIPLE = r'"""(?:\\.|[^\\])*?(?:"""|\Z)'
_TRIPLE_SINGLE = r"'''(?:\\.|[^\\])*?(?:'''|\Z)"
_CHAR = r"'(?:\\[^\n]{1,8}?|[^'\\\n])'"
_SLASHES = r"//[^\n]*|/\*.*?(?:\*/|\Z)"
_HASH = r"\#[^\n]*"
# A pattern after an operator or an opening bracket; elsewhere a slash divides.
_JS_PATTERN = r"(?<=[(,=:\[!&|?{};])[ \t]*/(?![*/])(?:\\.|\[(?:\\.|[^\]\\\n]){0,200}\]|[^/\\\n\[]){1,500}/[a-z]*"

_HERE = (
    r"(?<!<)<<(?!<)-?[ ]?(?P<quote>['\"]?)(?P<tag>[^\s'\"|&;<>()$`\\]+)(?P=quote)[^\n]*\n"
    r"(?:.*?\n)?[ \t]*(?P=tag)(?=[\n)]|\Z)"
)

HERE_DOCUMENT = re.compile(_HERE, re.DOTALL)

_RULES: dict[str, tuple[str, str]] = {
    "javascript": (_SLASHES, f"{_DOUBLE}|{_SINGLE}|{_BACKTICK}|{_JS_PATTERN}"),
    "go": (_SLASHES, f"{_DOUBLE}|{_BACKTICK}|{_CHAR}"),
    "rust": (_SLASHES, rf'r\#+".*?(?:"\#+|\Z)|{_DOUBLE_LONG}|{_CHAR}'),
    "ruby": (rf"(?:(?<=\s)|^){_HASH}|^=begin\b.*?(?:^=end\b[^\n]*|\Z)", f"{_DOUBLE_LONG}|{_SINGLE_LONG}|{_BACKTICK}"),
    "java": (_SLASHES, f"{_TRIPLE}|{_DOUBLE}|{_CHAR}"),
    "php": (rf"{_SLASHES}|\#(?!\[)[^\n]*", f"{_DOUBLE_LONG}|{_SINGLE_LONG}"),
    "csharp": (_SLASHES, rf'{_TRIPLE}|@\$?"(?:""|[^"])*+(?:"|\Z)|{_DOUBLE}|{_CHAR}'),
    "shell": (rf"(?:(?<=[\s;])|^){_HASH}", rf"{_HERE}|{_DOUBLE_LONG}|'[^']*+(?:'|\Z)"),
    "swift": (_SLASHES, f"{_TRIPLE}|{_DOUBLE}"),
    "cpp": (_SLASHES, f"{_DOUBLE}|{_CHAR}"),
    "python": (_HASH, f"{_TRIPLE}|{_TRIPLE_SINGLE}|{_DOUBLE}|{_SINGLE}"),
    "": (_HASH, f"{_DOUBLE}|{_SINGLE}"),
}


class Lexed(Struct, frozen=True):
    code: str
    bare: str
    pairs: dict[int, int]
    """Where each bracket that opens is closed."""

    def closing(self, opening: int) -> int:
        return self.pairs.get(opening, len(self.bare))


@cache
def _rule(language: str) -> re.Pattern[str]:
    comment, string = _RULES.get(language, _RULES[""])
    return re.compile(f"(?P<string>{string})|(?P<comment>{comment})", re.DOTALL | re.MULTILINE)


_INK = re.compile(r"[^\n]")
_BRACKET = re.compile(r"[()\[\]{}]")
_OPENING = {")": "(", "]": "[", "}": "{"}


def lex(text: str, language: str) -> Lexed:
    code: list[str] = []
    bare: list[str] = []
    done = 0
    for match in _rule(language).finditer(text):
        start, end = match.span()
        between = text[done:start]
        piece = match[0]
        blank = _INK.sub(" ", piece)
        code += (between, blank if match.lastgroup == "comment" else piece)
        bare += (between, blank if match.lastgroup == "comment" else _hollow(piece))
        done = end
    code.append(text[done:])
    bare.append(text[done:])
    without_strings = "".join(bare)
    return Lexed("".join(code), without_strings, _pairs(without_strings))


def _hollow(string: str) -> str:
    """The quotes stay where they are."""
    return string[:1] + _INK.sub("_", string[1:-1]) + string[-1:] if len(string) > 1 else string


def _pairs(bare: str) -> dict[int, int]:
    pairs: dict[int, int] = {}
    stack: list[tuple[str, int]] = []
    for match in _BRACKET.finditer(bare):
        sign = match[0]
        if sign not in _OPENING:
            stack.append((sign, match.start()))
            continue
        if sign == "}":  # whatever was not closed inside stays open
            while stack and stack[-1][0] != "{":
                stack.pop()
        if stack and stack[-1][0] == _OPENING[sign]:
            pairs[stack.pop()[1]] = match.start()
    return pairs


_TOKEN = re.compile(
    rf"(?P<string>{_TRIPLE}|{_DOUBLE_LONG}|{_SINGLE_LONG}|{_BACKTICK})"
    r"|(?P<number>(?<!\w)(?:0[xXbBoO][\da-fA-F_]+|\d[\d_]*(?:\.\d[\d_]*)?(?:[eE][+-]?\d+)?)[a-zA-Z]{0,4}(?!\w))"
    r"|(?P<word>[@$]*[^\W\d]\w*(?:[?!](?![=(]))?)"
    r"|(?P<sign>===|!==|=>|==|!=|<=|>=|&&|\|\||->|::|\?\.|:=|=~|\.\.\.?|[^\s;])",
    re.DOTALL,
)
_CONSTANTS = {
    "true": "#true", "false": "#false", "null": "#none", "nil": "#none", "None": "#none", "undefined": "#none",
    "True": "#true", "False": "#false", "TRUE": "#true", "FALSE": "#false", "NULL": "#none", "nullptr": "#none",
}  # fmt: skip
_MOST_TEXT = 8000


def tokens(code: str) -> Tokens:
    """Words, numbers, strings and signs. The style of quotes, semicolons and trailing commas is left out."""
    out: list[str] = []
    for match in _TOKEN.finditer(code[:_MOST_TEXT]):
        text = match[0]
        kind = match.lastgroup
        if kind == "string":
            out.append("'" + text.strip("\"'`"))
        elif kind == "number":
            out.append(text.replace("_", ""))
        elif kind == "word":
            out.append(_CONSTANTS.get(text, text))
        else:
            if text in ")]}" and out and out[-1] == ",":
                out.pop()
            out.append(text)
    return tuple(out)


_IN_ARGUMENTS = re.compile(r"[()\[\]{},]")


def arguments(lexed: Lexed, opening: int) -> tuple[list[str], int]:
    """The arguments of the call whose bracket opens at `opening`, and where it closes."""
    end = lexed.closing(opening)
    parts = []
    depth = 0
    start = opening + 1
    for match in _IN_ARGUMENTS.finditer(lexed.bare, opening + 1, min(end, opening + _MOST_TEXT)):
        sign = match[0]
        if sign == "," and depth == 0:
            parts.append(lexed.code[start : match.start()])
            start = match.end()
        elif sign in "([{":
            depth += 1
        elif sign != ",":
            depth -= 1
    parts.append(lexed.code[start : min(end, start + _MOST_TEXT)])
    return [part.strip() for part in parts if part.strip()], end
