"""What a line of a shell test claims: `[ "$status" -eq 0 ]`, `grep -q done out.txt`."""

from __future__ import annotations

import re

from msgspec import Struct

from ralph.checks.tamper.suite import BOUND, EXACT, TRUTHY, Tokens

_WORD = re.compile(r"\"(?:\\.|[^\"\\])*\"|'[^']*'|[^\s;|&]+|[;|&]+")
_VARIABLE = re.compile(r"(?<!\\)[$`]")
_HIDES = re.compile(r"(?:\|\||;)\s*(?:true|:|return\s+0|exit\s+0|echo\b.*)\s*;?\s*$")
_EXACT = frozenset({"-eq", "=", "==", "-z", "-f", "-d", "-e", "-s", "-x"})
_BOUNDS = frozenset({"-gt", "-ge", "-lt", "-le", "=~"})
_WEAK = frozenset({"-ne", "!=", "-n"})


class ShellClaim(Struct, frozen=True):
    op: str
    subject: Tokens
    expected: Tokens
    strength: float
    constant: bool = False


def shell_claim(line: str) -> ShellClaim:
    hidden = _HIDES.search(line) is not None
    words = _WORD.findall(_HIDES.sub("", line))
    if words and words[0] in ("[", "[[", "test", "(("):
        words = [word for word in words[1:] if word not in ("]", "]]", "))")]
        op = next((word for word in words if word in _EXACT | _BOUNDS | _WEAK), "true")
        strength = EXACT if op in _EXACT else BOUND if op in _BOUNDS else TRUTHY
        if words[:1] == ["!"]:
            op, strength = f"not {op}", TRUTHY
        if op in ("=", "==") and re.search(r"(?<!\\)\*", words[-1]):
            op, strength = "=~", BOUND
        op = "-eq" if op in ("=", "==") else op
    else:
        op = words[0] if words else "?"
        words = words[1:]
        strength = (
            BOUND if op.startswith(("grep", "assert_output")) and {"-p", "--partial", "-q"} & set(words) else EXACT
        )
        if op.startswith(("assert", "refute", "diff", "cmp", "fail")):
            strength = BOUND if {"-p", "--partial", "--regexp", "-e"} & set(words) else EXACT
    told = [word for word in words if word not in _OPERATORS]
    asked = (
        next((word for word in told if _VARIABLE.search(word)), "")
        if op in _OPERATORS | {"true"} or op.startswith("not ")
        else ""
    )
    subject = (asked.strip("\"'"),) if asked else ()
    rest = list(told)
    if asked:
        rest.remove(asked)
    constant = hidden or (not any(map(_VARIABLE.search, told)) and op in _OPERATORS | {"true"})
    return ShellClaim(op, subject, tuple(map(_literal, rest)), strength, constant)


_OPERATORS = _EXACT | _BOUNDS | _WEAK | {"!"}


def _literal(word: str) -> str:
    if re.fullmatch(r"-?\d+", word):
        return word
    return "'" + word.strip("\"'") if not word.startswith("-") else word
