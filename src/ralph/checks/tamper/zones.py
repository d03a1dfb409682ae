"""Parts of a test's body where an assertion is not what it seems: never reached, caught, or conditional."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from ralph.checks.tamper.lexing import Lexed, tokens
from ralph.checks.tamper.suite import Fate


class Zone(Struct, frozen=True):
    start: int
    end: int
    fate: Fate
    condition: str = ""


_NEVER = re.compile(r"\b(?:if|while|elsif|unless)\s*\(?\s*(?:false|0|!true|False|nil)\s*\)?\s*$")
_ALWAYS = re.compile(r"\bif\s*\(?\s*(?:true|1|True)\s*\)?\s*$")
_IF = re.compile(r"\b(?:if|unless|elsif|switch)\b")
_GO_IF = re.compile(r"\bif\s+(?![(\s])[^\n{}]*;[^\n{}]*$")
_ELSE = re.compile(r"\belse\s*$")
_CATCH = re.compile(r"^\s*\)?\s*(?:catch|rescue)\b(?P<what>.*)$", re.DOTALL)
_SAVES = re.compile(
    r"\b(?:throw|raise|rethrow|fail|flunk|panic|die)\b|\bexpect\b|assert|\bt\s*\.\s*(?:Error|Fatal"
    r"|Fail)|\bdone\s*\(\s*\w"
)
_CAUGHT = re.compile(r"\b(?:catch_unwind|runCatching)\s*\(?[^;{}]*$")
_RETURN = re.compile(r"(?<![\w.$@])return\b(?P<rest>[^\n;}]*)")
_ASSERTS = re.compile(r"expect|assert|should|verify|\bt\s*\.")
_MOST = 2000


def brace_zones(lexed: Lexed, start: int, end: int) -> list[Zone]:
    """`start` is the brace that opens the body, `end` the one that closes it."""
    blocks = [(at, close) for at in _braces(lexed, start + 1, end) if (close := lexed.closing(at)) <= end]
    zones = []
    conditional = []
    for at, close in blocks:
        header = _header(lexed.bare, at, start)
        if _NEVER.search(header):
            zones.append(Zone(at, close, Fate.UNREACHABLE))
        elif _ALWAYS.search(header):
            continue
        elif (begin := _condition(header)) >= 0 or _ELSE.search(header):
            said = " ".join(tokens(lexed.code[at - len(header) + begin : at])) if begin >= 0 else "else"
            conditional.append(Zone(at, close, Fate.CONDITIONAL, said))
        elif _CAUGHT.search(header) or (re.search(r"\btry\s*$", header) and _is_forgotten(lexed, close)):
            zones.append(Zone(at, close, Fate.SWALLOWED))
    return [*zones, *conditional, *_after_returns(lexed, start, end, blocks, conditional)]


def _condition(header: str) -> int:
    """Where the `if` of this brace begins, or -1: an earlier one may be in the same text."""
    found = list(_IF.finditer(header))
    if not found:
        return -1
    rest = header[found[-1].end() :].strip()
    if rest.startswith("("):
        depth = 0
        for at, sign in enumerate(rest):
            depth += (sign == "(") - (sign == ")")
            if depth == 0 and at < len(rest) - 1 and not re.match(r"\s*(?:&&|\|\||[=!<>]|\.)", rest[at + 1 :]):
                return -1
        return found[-1].start()
    return found[-1].start() if "\n" not in rest else -1


def _braces(lexed: Lexed, start: int, end: int) -> Iterator[int]:
    at = lexed.bare.find("{", start, end)
    count = 0
    while at >= 0 and count < _MOST:
        yield at
        count += 1
        at = lexed.bare.find("{", at + 1, end)


def _header(bare: str, brace: int, floor: int) -> str:
    """What precedes a brace: back to the end of the statement before."""
    text = bare[max(floor + 1, brace - 300) : brace]
    if (go := _GO_IF.search(text)) is not None:
        return text[go.start() :]
    cut = max(text.rfind(sign) for sign in "{};")
    return text[cut + 1 :]


def _is_forgotten(lexed: Lexed, closing: int) -> bool:
    """The `catch` after a `try` lets the test continue as if nothing had happened."""
    match = re.compile(r"\s*(?P<head>(?:catch|rescue)\b[^{]*)\{").match(lexed.bare, closing + 1)
    if match is None:
        return False
    body = lexed.bare[match.end() : lexed.closing(match.end() - 1)]
    return not _SAVES.search(body)


def _after_returns(
    lexed: Lexed, start: int, end: int, blocks: list[tuple[int, int]], conditional: list[Zone]
) -> Iterator[Zone]:
    for match in _RETURN.finditer(lexed.bare, start + 1, end):
        if _ASSERTS.search(match["rest"]):
            continue
        around = [(at, close) for at, close in blocks if at < match.start() < close]
        before = lexed.bare[start + 1 : match.start()].rstrip()
        if not around:
            guarded = before.endswith(")") and re.search(r"\bif\s*\([^\n]*\)$", before)
            fate = Fate.CONDITIONAL if guarded else Fate.UNREACHABLE
            yield Zone(match.end(), end, fate, "a return before it" if guarded else "")
        elif len(around) == 1 and any(zone.start == around[0][0] for zone in conditional):
            yield Zone(around[0][1], end, Fate.CONDITIONAL, "a return before it")


def line_zones(lexed: Lexed, start: int, end: int) -> list[Zone]:
    """For bodies without braces (Ruby, Python that cannot be parsed): by indentation."""
    zones = []
    lines = _lines(lexed.bare, start, end)
    inside = [item for item in lines[1:] if item[1].strip()]
    base = min((_indent(text) for _, text in inside), default=0)
    for number, (at, text) in enumerate(inside):
        word = text.split()[0].rstrip(":")
        if _indent(text) == base and word in ("return", "next") and not re.search(r"\b(?:if|unless)\b", text):
            zones.append(Zone(at + len(text), end, Fate.UNREACHABLE))
        if word == "if" and re.search(r"\bif\s+(?:false|False|nil|0)\s*:?\s*$", text):
            zones.append(Zone(at, _block_end(inside, number, end), Fate.UNREACHABLE))
        elif word in ("if", "unless"):
            zones.append(Zone(at, _block_end(inside, number, end), Fate.CONDITIONAL, " ".join(text.split())))
        if word in ("begin", "try"):
            close = _block_end(inside, number, end)
            body = lexed.bare[at:close]
            rescue = re.search(r"^\s*(?:rescue|except)\b.*", body + lexed.bare[close:end], re.MULTILINE | re.DOTALL)
            if rescue and not _SAVES.search(rescue[0]):
                zones.append(Zone(at, close, Fate.SWALLOWED))
    return zones


def _lines(text: str, start: int, end: int) -> list[tuple[int, str]]:
    found = []
    for line in text[start:end].split("\n"):
        found.append((start, line))
        start += len(line) + 1
    return found


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip())


def _block_end(lines: list[tuple[int, str]], number: int, end: int) -> int:
    indent = _indent(lines[number][1])
    return next((at for at, text in lines[number + 1 :] if _indent(text) <= indent), end)


def worst(zones: list[Zone], at: int, own: Zone | None = None) -> tuple[Fate, str]:
    fate, condition = Fate.LIVE, ""
    for zone in zones:
        if zone.start < at < zone.end and zone is not own and zone.fate > fate:
            fate, condition = zone.fate, zone.condition
    return fate, condition
