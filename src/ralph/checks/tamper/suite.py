"""Tests of any language as values, so that one comparison serves them all.

A token is a word of code. Literals are marked: `'text`, a number as it is, `#true`, `#false`, `#none`.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from functools import lru_cache
from typing import Protocol

from msgspec import Struct

from ralph.checks.tamper.paths import words_of

Tokens = tuple[str, ...]

# How much an assertion says. The steps matter, not the numbers.
NOTHING, TRUTHY, PREDICATE, BOUND, CLOSE, EXACT = 0.0, 1.0, 1.5, 2.0, 2.8, 3.0


class Fate(IntEnum):
    """The fate of an assertion, the worst last."""

    LIVE = 0
    CONDITIONAL = 1
    SWALLOWED = 2
    UNREACHABLE = 3
    CONSTANT = 4


class Assertion(Struct, frozen=True):
    line: int
    said: str
    """As quoted in a message."""
    tokens: Tokens
    """Canonical, with names replaced by what they stand for."""
    plain: Tokens
    """Canonical, as written."""
    subject: Tokens
    expected: Tokens
    strength: float
    fate: Fate = Fate.LIVE
    condition: str = ""
    """Under which it is made, when its fate is conditional."""
    tolerance: float = 0.0
    raises: tuple[str, ...] = ()
    """The errors it waits for, by name."""
    doubtful: bool = False
    """It apparently cannot fail; a test that compares states before and after can look like that."""
    is_failure: bool = False
    """`assert False`, `pytest.fail()`: a placeholder, or meant to be unreachable."""

    @property
    def op_is_close(self) -> bool:
        return self.tokens[len(self.subject) : len(self.subject) + 1] == ("≈",)


class Mark(Struct, frozen=True):
    """Something that keeps a test from running: a skip, an xfail, a focus on another one."""

    kind: str
    line: int
    text: str


class Outline(Struct, frozen=True):
    """A test or helper function as found in a file, before its body is read."""

    path: str
    name: str
    line: int
    is_test: bool
    """A runner collects it."""
    source: str
    """Equal for functions that do the same in the same file."""
    body: str
    """As `source`, without the name."""
    marks: tuple[Mark, ...] = ()


class Case(Struct, frozen=True):
    """A function with its body read."""

    outline: Outline
    assertions: tuple[Assertion, ...] = ()
    marks: tuple[Mark, ...] = ()
    """Those of the outline and those in the body."""
    calls: int = 0
    data: tuple[Tokens, ...] = ()
    """Rows of literals outside assertions."""
    loose: Tokens = ()
    """Single literals outside assertions."""
    replaced: frozenset[str] = frozenset()
    """Names that the test mocks."""


class Suite(Protocol):
    """One version of one test file."""

    @property
    def outlines(self) -> Sequence[Outline]: ...

    @property
    def marks(self) -> Sequence[Mark]:
        """Those of the whole file."""
        ...

    def case(self, outline: Outline) -> Case: ...


_LITERAL_STARTS = frozenset("'#0123456789")
_SAY_LITTLE = frozenset(
    [
        "self",
        "this",
        "len",
        "str",
        "int",
        "list",
        "dict",
        "set",
        "tuple",
        "sorted",
        "await",
        "new",
        "not",
        "is",
        "in",
        "t",
    ]
)
# The same assertions are looked at from many sides; the tokens of one do not change.
_remembered = lru_cache(maxsize=10_000)


def is_literal(token: str) -> bool:
    return token[0] in _LITERAL_STARTS or (token[0] == "-" and token[1:2].isdigit())


@_remembered
def literals(tokens: Tokens) -> Tokens:
    return tuple(token for token in tokens if is_literal(token))


@_remembered
def shape(tokens: Tokens) -> Tokens:
    return tuple("§" if is_literal(token) else token for token in tokens)


@_remembered
def names(tokens: Tokens) -> frozenset[str]:
    """Identifiers, without the ones that say nothing about what is tested."""
    plain = {token.lstrip(".$@") for token in tokens if not is_literal(token)}
    return frozenset(name for name in plain if name[:1].isidentifier()) - _SAY_LITTLE


@_remembered
def name_words(tokens: Tokens) -> frozenset[str]:
    return frozenset(word for name in names(tokens) for word in words_of(name))
