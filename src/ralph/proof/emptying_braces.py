"""Empty functions of Go and Rust: their bodies are always in braces, so tokens and matching brackets are enough.

Where the reader is not sure, the function stays as it is; a file whose brackets do not match is not touched at all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from ralph.core.lazy_pattern import lazy_pattern

_GO_TOKENS = lazy_pattern(
    rb"""(?P<space>\s+|//[^\n]*|/\*.*?\*/)|"(?:[^"\\\n]|\\.)*"|`[^`]*`|'(?:[^'\\\n]+|\\.[^'\n]*)'|[\w\x80-\xff]+|<-|\.\.\.|.""",
    re.DOTALL,
)
_RUST_TOKENS = lazy_pattern(
    rb"""(?P<space>\s+|//[^\n]*)|(?P<comment>/\*)|[bc]?r(?P<hashes>\#*)".*?"(?P=hashes)|[bc]?"(?:[^"\\]|\\.)*"
    |b?'(?:[^'\\\n\x80-\xff]|[\xc0-\xff][\x80-\xbf]+|\\[^u\n][^'\n]*|\\u\{[^}']*\})'|'?(?:r\#)?[\w\x80-\xff]+|->|=>|.""",
    re.DOTALL | re.VERBOSE,
)
_WORD = rb"[\w\x80-\xff]+"
_OPEN, _CLOSE = (b"(", b"[", b"{"), {b")": b"(", b"]": b"[", b"}": b"{"}


class _Token(NamedTuple):
    text: bytes
    start: int
    end: int


class _Source:
    """The tokens of a file without comments, and for each opening bracket the closing one."""

    def __init__(self, source: bytes, tokens: list[_Token]) -> None:
        self.source = source
        self.tokens = tokens
        self.closing: dict[int, int] = {}
        self.is_valid = True
        stack: list[int] = []
        for at, token in enumerate(tokens):
            if token.text in _OPEN:
                stack.append(at)
            elif opening := _CLOSE.get(token.text):
                if not stack or tokens[stack[-1]].text != opening:
                    self.is_valid = False
                    return
                self.closing[stack.pop()] = at
        self.is_valid = not stack

    def word(self, at: int) -> bytes:
        return self.tokens[at].text if 0 <= at < len(self.tokens) else b""

    def text(self, start: int, end: int) -> bytes:
        """The source of the tokens from `start` up to `end`."""
        return self.source[self.tokens[start].start : self.tokens[end - 1].end] if start < end else b""

    def is_same_line(self, at: int) -> bool:
        """A token is on the line of the one before it, where Go sees no semicolon between them."""
        return at < len(self.tokens) and b"\n" not in self.source[self.tokens[at - 1].end : self.tokens[at].start]


class _Function(NamedTuple):
    """Positions of tokens."""

    name: bytes
    start: int
    parameters: int
    result: tuple[int, int]
    """Empty if there is no result type."""
    body: int
    is_const: bool = False


def emptied(suffix: str, old: bytes | None, new: bytes) -> bytes | None:
    language = LANGUAGES[suffix]
    source = _read(language.tokens, new)
    if source is None:
        return None
    known: set[tuple[bytes, bytes]] = set()
    if old and (before := _read(language.tokens, old)):
        known = {(function.name, _tokens(before, function)) for function in language.functions(before)}
    changed = [one for one in language.functions(source) if (one.name, _tokens(source, one)) not in known]
    if not changed:
        return None
    result = new
    for function in reversed(changed):
        if not _is_empty(source, function) and (text := language.body(source, function)) is not None:
            start, end = source.tokens[function.body].start, source.tokens[source.closing[function.body]].end
            result = result[:start] + text + result[end:]
    after = _read(language.tokens, result)
    if after is None:
        return None
    return _without_unused_imports(source, after) if suffix == ".go" else result


def _read(pattern: re.Pattern[bytes], source: bytes) -> _Source | None:
    """None: its brackets do not match."""
    tokens, at = [], 0
    while match := pattern.match(source, at):
        at = match.end()
        groups = match.groupdict()
        if groups.get("comment"):
            at = _end_of_comment(source, at)
        elif groups["space"] is None:
            tokens.append(_Token(match[0], match.start(), at))
    found = _Source(source, tokens)
    return found if found.is_valid else None


def _end_of_comment(source: bytes, at: int) -> int:
    """Rust's comments nest."""
    depth = 1
    for mark in re.compile(rb"/\*|\*/").finditer(source, at):
        depth += 1 if mark[0] == b"/*" else -1
        if not depth:
            return mark.end()
    return len(source)


def _tokens(source: _Source, function: _Function) -> bytes:
    end = source.closing[function.body] + 1
    return b"\0".join(token.text for token in source.tokens[function.start : end])


_REFUSAL = lazy_pattern(
    rb"(?:throw|panic)\W.{0,200}?(?:not implemented|unimplemented|todo)|todo!|unimplemented!", re.I | re.S
)
"""A statement with which a function says that it does nothing yet."""
_RETURN = lazy_pattern(rb"(?:return\s+)?((?:(?:Some|Ok)\()?[\w.]+\)?(?:,\s*[\w.]+)*)\s*;?")
_CONSTANTS = frozenset({b"Some", b"Ok", b"None", b"nil", b"true", b"false"})


def _is_empty(source: _Source, function: _Function) -> bool:
    """It has no statement, only says that it is not implemented, or returns an argument.

    A constant alone is no stub: a story can ask for one."""
    start, end = function.body + 1, source.closing[function.body]
    if start == end:
        return True
    text = source.text(start, end)
    if _REFUSAL.match(text):
        opening = next((at for at in range(start, end) if at in source.closing), None)
        rest = [source.word(at) for at in range(source.closing[opening] + 1, end)] if opening else [b""]
        if rest in ([], [b";"]):
            return True
    given = source.text(function.parameters, source.closing[function.parameters])
    arguments = set(re.findall(rb"\w+", given)) - {b"self"}
    if not (match := _RETURN.fullmatch(text)):
        return False
    names = set(re.findall(rb"[A-Za-z_]\w*", match[1]))
    return bool(names & arguments) and names <= arguments | _CONSTANTS


# Go


def _go_functions(source: _Source) -> Iterator[_Function]:
    """The outermost functions and function literals."""
    at = 0
    while at < len(source.tokens):
        is_type = source.word(at - 1) == b"]" and source.is_same_line(at)  # `[]func(){…}`: the braces are no body
        function = _go_function(source, at) if source.word(at) == b"func" and not is_type else None
        if function is None:
            at += 1
            continue
        end = source.closing[function.body] + 1
        if source.word(end) == b"(":  # called at once: not a function of the package
            at = function.body + 1
            continue
        yield function
        at = end


def _go_function(source: _Source, start: int) -> _Function | None:
    at = start + 1
    name = source.word(start - 2) + source.word(start - 1) + b"."
    if source.word(at) == b"(" and re.fullmatch(_WORD, source.word(source.closing[at] + 1)):
        after = source.closing[at] + 2
        if source.word(after) == b"(" and source.is_same_line(after):  # a method, not a literal with a result
            name = source.text(at, after - 1) + b"."
            at = after - 1
    if source.word(at) != b"(":
        name = (name if source.word(at - 1) == b")" else b".") + source.word(at)
        at += 1
        if source.word(at) == b"[":
            at = source.closing[at] + 1
    if source.word(at) != b"(":
        return None
    result = source.closing[at] + 1
    body = _go_result(source, result)
    if source.word(body) != b"{" or not source.is_same_line(body):
        return None
    return _Function(name, start, at, (result, body), body)


def _go_result(source: _Source, at: int) -> int:
    """The end of the result types that start here, if any."""
    if not source.is_same_line(at) or source.word(at) == b"{":
        return at
    return source.closing[at] + 1 if source.word(at) == b"(" else _go_type(source, at)


def _go_type(source: _Source, at: int) -> int:
    """The end of the type that starts here; the same place if there is none."""
    word = source.word(at)
    if word in (b"*", b"<-", b"chan"):
        return _go_type(source, at + 1)
    if word == b"[":
        return _go_type(source, source.closing[at] + 1)
    if word == b"(":
        return source.closing[at] + 1
    if word == b"map" and source.word(at + 1) == b"[":
        return _go_type(source, source.closing[at + 1] + 1)
    if word == b"func" and source.word(at + 1) == b"(":
        return _go_result(source, source.closing[at + 1] + 1)
    if word in (b"struct", b"interface"):
        return source.closing[at + 1] + 1 if source.word(at + 1) == b"{" else at
    if not re.fullmatch(_WORD, word):
        return at
    at += 3 if source.word(at + 1) == b"." else 1
    return source.closing[at] + 1 if source.word(at) == b"[" and source.is_same_line(at) else at


def _go_body(source: _Source, function: _Function) -> bytes | None:
    """Zero values: named results have them without being set. `*new(T)` is shorter, but `new` can be shadowed."""
    start, end = function.result
    if start == end:
        return b"{}"
    types = [source.text(start, end)]
    if source.word(start) == b"(":
        types, first = [], start + 1
        at = first
        while at < end:
            if source.word(at) == b"," or at == end - 1:
                if first < at and _go_type(source, first) != at:
                    return b"{ return }"
                types += [source.text(first, at)] if first < at else []
                first = at + 1
            at = source.closing.get(at, at) + 1
    return b"{ return func() (%b) { return }() }" % b", ".join(b"_ " + one for one in types)


def _without_unused_imports(before: _Source, after: _Source) -> bytes:
    """Rename imports that only emptied bodies used to `_`: Go does not compile unused ones."""
    unused = _packages(before) - _packages(after)
    result = after.source
    for at in reversed(list(_imports(after))):
        path = after.tokens[at]
        is_named = after.is_same_line(at) and after.word(at - 1) not in (b"import", b"(", b";")
        if unused & ({after.word(at - 1)} if is_named else _import_names(path.text)):
            start = after.tokens[at - 1].start if is_named else path.start
            result = result[:start] + b"_ " + result[path.start :]
    return result


def _imports(source: _Source) -> Iterator[int]:
    """The paths of imports."""
    at = 0
    while at < len(source.tokens):
        if source.word(at) == b"import":
            end = source.closing[at + 1] if at + 1 in source.closing else at + 3
            yield from (one for one in range(at, end) if source.word(one)[:1] in (b'"', b"`"))
        at = source.closing.get(at, at) + 1


def _packages(source: _Source) -> set[bytes]:
    """Every name before a dot that is not itself after one."""
    return {
        source.word(at - 1)
        for at in range(1, len(source.tokens))
        if source.word(at) == b"." and source.word(at - 2) != b"." and re.fullmatch(_WORD, source.word(at - 1))
    }


def _import_names(path: bytes) -> set[bytes]:
    """What an imported package may be called: its name is not always the last part of its path."""
    parts = path.strip(b'"`').split(b"/")
    if len(parts) > 1 and re.fullmatch(rb"v\d+", parts[-1]):
        parts.pop()
    last = re.sub(rb"\.v\d+$", b"", parts[-1])
    ends = {last.removesuffix(b"-go"), last.rpartition(b"-")[2], last.removesuffix(b".go")}
    return {last, last.removeprefix(b"go-"), *ends}


# Rust

_MODIFIERS = frozenset({b"pub", b"const", b"async", b"unsafe", b"extern", b"default", b"safe"})
_HAS_DEFAULT = lazy_pattern(
    rb"(bool|[iu](8|16|32|64|128|size)|f32|f64|char|String|&('\w+\s+)?str|(Option|Vec)<.*>)", re.DOTALL
)


def _rust_functions(source: _Source) -> Iterator[_Function]:
    """The outermost functions, without tests and macros."""
    scopes: list[tuple[int, bytes]] = []
    at = 0
    while at < len(source.tokens):
        while scopes and scopes[-1][0] <= at:
            scopes.pop()
        word = source.word(at)
        if word == b"!" and (group := next((n for n in (at + 1, at + 2) if n in source.closing), None)):
            at = source.closing[group] + 1 if re.fullmatch(_WORD, source.word(at - 1)) else at + 1
            continue
        if word not in (b"fn", b"mod", b"impl", b"trait") or (word == b"fn" and source.word(at + 1) == b"("):
            at += 1
            continue
        parameters, arrow, where, body = _rust_header(source, at)
        if source.word(body) != b"{":
            at = body + 1
            continue
        head, attributes = _before(source, at)
        if word != b"trait" and any(re.search(rb"\btest\b|^#\[rstest", one) for one in attributes):
            at = source.closing[body] + 1
        elif word == b"fn":
            name = b".".join([*(name for _, name in scopes), source.word(at + 1)])
            result = (arrow + 1, where or body) if arrow else (body, body)
            if parameters:
                yield _Function(name, at, parameters, result, body, b"const" in head)
            at = source.closing[body] + 1
        else:
            scopes.append((source.closing[body], source.text(at, body)))
            at = body + 1


def _rust_header(source: _Source, at: int) -> tuple[int, int, int, int]:
    """The parameters, the arrow, the `where` (0: there is none) and the body or semicolon of an item."""
    parameters = arrow = where = angles = 0
    while at < len(source.tokens):
        word = source.word(at)
        if (word in (b"{", b";") and not angles) or word == b"}":
            break
        angles += {b"<": 1, b">": -1}.get(word, 0)
        if not angles and not where:
            if word == b"(" and not parameters:
                parameters = at
            elif word == b"->" and parameters and not arrow:
                arrow = at
            elif word == b"where":
                where = at
        at = source.closing.get(at, at) + 1
    return parameters, arrow, where, at


def _before(source: _Source, at: int) -> tuple[list[bytes], list[bytes]]:
    """The modifiers and the attributes of an item."""
    opening: dict[int, int] = {}
    modifiers, attributes = [], []
    at -= 1
    while at >= 0:
        word = source.word(at)
        if word in (b")", b"]") and not opening:
            opening = {closing: start for start, closing in source.closing.items()}
        if word in _MODIFIERS or word.startswith(b'"'):
            modifiers.append(word)
        elif word == b")" and source.word(opening[at] - 1) == b"pub":
            at = opening[at]
        elif word == b"]" and source.word(opening[at] - 1) == b"#":
            attributes.append(source.text(opening[at] - 1, at + 1))
            at = opening[at] - 1
        else:
            break
        at -= 1
    return modifiers, attributes


def _rust_body(source: _Source, function: _Function) -> bytes | None:
    """Only iterators can be emptied among functions that return `impl Trait`: nothing else is sure to compile."""
    result = source.text(*function.result)
    if not result:
        return b"{}"
    if re.search(rb"\bimpl\b", result):
        return b"{ std::iter::empty() }" if result.startswith(b"impl Iterator") else None
    if _HAS_DEFAULT.fullmatch(result) and not function.is_const:
        return b"{ Default::default() }"
    return b"{ unimplemented!() }"


class _Language(NamedTuple):
    tokens: re.Pattern[bytes]
    functions: Callable[[_Source], Iterator[_Function]]
    body: Callable[[_Source, _Function], bytes | None]


LANGUAGES = {
    ".go": _Language(_GO_TOKENS, _go_functions, _go_body),
    ".rs": _Language(_RUST_TOKENS, _rust_functions, _rust_body),
}
