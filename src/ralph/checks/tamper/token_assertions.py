"""Assertions of languages that are read as tokens."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property

from msgspec import Struct

from ralph.checks.tamper.grading import BROAD, Condition, Grade, condition, grade, is_fixed
from ralph.checks.tamper.languages import Language
from ralph.checks.tamper.lexing import HERE_DOCUMENT, Lexed, arguments, tokens
from ralph.checks.tamper.paths import words_of
from ralph.checks.tamper.shell_assertions import shell_claim
from ralph.checks.tamper.suite import EXACT, NOTHING, PREDICATE, TRUTHY, Assertion, Fate, Tokens, is_literal
from ralph.checks.tamper.zones import Zone, worst

_LINK = re.compile(r"\s*(?:\?\.|\.|->)\s*(?P<name>\w+[?!]?)\s*(?P<open>\()?")
_ANYTHING = re.compile(r"\bexpect\s*\.\s*(?:anything|any)\s*\(|\b(?:mock\.Anything|anything\(\)|any\(\)|ANY)\b")
_HIDING_CATCH = re.compile(r"\s*\.\s*catch\s*\(\s*(?:\(\s*\w*\s*\)|\w+)\s*=>\s*\{\s*\}\s*\)")
_CHAIN_WORDS = frozenset(
    {"resolves", "rejects", "to", "be", "been", "have", "and", "with", "that", "eventually", "deep", "is"}
)
_MOST = 800


class Found(Struct, frozen=True):
    assertion: Assertion
    start: int
    end: int


class Claimed(Struct, frozen=True):
    """One assertion as parsed, before its context is known."""

    op: str
    subject: Tokens
    expected: Tokens
    strength: float
    end: int
    constant: bool = False
    raises: tuple[str, ...] = ()


class AssertionReader:
    def __init__(self, name: str, language: Language, lexed: Lexed, line_of: LineFinder) -> None:
        self._name = name
        self._language = language
        self._lexed = lexed
        self._line = line_of

    def read(self, start: int, end: int, zones: list[Zone]) -> list[Found]:
        found: list[Found] = []
        last = start
        for match in self._language.assertion.finditer(self._lexed.bare, start, end):
            if match.start() < last or len(found) >= _MOST:
                continue  # an argument of the assertion before
            claimed = self._claim(match, end)
            if claimed is None:
                continue
            last = max(last, claimed.end)
            found.append(self._found(match.start(), claimed, zones))
        if self._language.failure is not None:
            found += self._failures(start, end, zones)
        return found

    def _found(self, at: int, claimed: Claimed, zones: list[Zone], own: Zone | None = None) -> Found:
        fate, under = worst(zones, at, own)
        if claimed.constant:
            fate = Fate.CONSTANT
        elif _HIDING_CATCH.match(self._lexed.bare, claimed.end):
            fate = max(fate, Fate.SWALLOWED)
        whole = (*claimed.subject, claimed.op, *claimed.expected)
        assertion = Assertion(
            line=self._line(at),
            said=" ".join(self._lexed.code[at : max(claimed.end, at + 1)].split())[:90].strip(),
            tokens=whole,
            plain=whole,
            subject=claimed.subject,
            expected=claimed.expected,
            strength=NOTHING if fate is Fate.CONSTANT else claimed.strength,
            fate=fate,
            condition=under,
            tolerance=_tolerance(claimed),
            raises=claimed.raises,
            is_failure=claimed.op == "fail",
        )
        return Found(assertion, at, claimed.end)

    def _claim(self, match: re.Match[str], end: int) -> Claimed | None:
        groups = match.groupdict()
        if self._name == "shell":
            return self._shell(match)
        if groups.get("fluent"):
            return self._fluent(match.start("fluent"), end)
        if groups.get("should") or groups.get("must") or groups.get("infix"):
            return self._suffix(match, groups)
        if groups.get("expected"):
            close = self._lexed.bare.find(")", match.end())
            waited = tokens(self._lexed.code[match.end() : close])
            return Claimed("throws", (), (f"'{waited[0]}",) if waited else (), EXACT, close, raises=waited[:1])
        if groups.get("word"):
            close = self._end_of_line(match.end())
            return self._truth(tokens(self._lexed.code[match.end() : close].split(",")[0]), close)
        return self._call(match, groups.get("name") or groups.get("ava") or "", groups.get("types") or "")

    def _end_of_line(self, at: int) -> int:
        close = self._lexed.bare.find("\n", at)
        return len(self._lexed.bare) if close < 0 else close

    def _shell(self, match: re.Match[str]) -> Claimed:
        close = self._end_of_line(match.end())
        if (document := HERE_DOCUMENT.search(self._lexed.code, match.end())) and document.start() < close:
            close = document.end()
        claim = shell_claim(self._lexed.code[match.start() : close])
        return Claimed(claim.op, claim.subject, claim.expected, claim.strength, close, claim.constant)

    def _truth(self, said: Tokens, close: int) -> Claimed:
        found = condition(said)
        return _claimed(found, close)

    def _call(self, match: re.Match[str], name: str, types: str) -> Claimed | None:
        opening = match.end() - 1
        if self._lexed.bare[opening : opening + 1] in ("(", "[", "{"):
            args, close = arguments(self._lexed, opening)
            close += 1
        elif self._lexed.bare[match.end() : match.end() + 1] == "(":
            args, close = arguments(self._lexed, match.end())
            close += 1
        else:
            close = self._end_of_line(match.end())
            args = _split(self._lexed.code[match.end() : close])
        if args and re.fullmatch(r"t|\w+\.T\(\)|s\.T\(\)", args[0]):
            args = args[1:]
        words = words_of(name)
        if words[-1:] == ["fail"] or words == ["flunk"]:
            return Claimed("fail", (), (), EXACT, close)
        given = [tokens(arg) for arg in args]
        if len(given) == 2 and words[-1:] == ["that"]:
            return self._matched(given[0], tokens(args[1]), close)
        graded = grade(name, compares=len(given) > 1)
        if graded.throws:
            waited = tokens(types.strip("<>")) or (given[0] if given and given[0][:1] not in (("(",), ("|",)) else ())
            return _thrown(graded, waited, given[-1] if given else (), close)
        if not given:
            return None
        if graded.unary or len(given) == 1:
            if graded.op in ("true", "not", "=="):
                return _claimed(condition(given[0], negated=graded.op == "not"), close)
            fixed = is_fixed(given[0])
            return Claimed(graded.op, given[0], (), graded.strength, close, constant=fixed)
        return self._compared(graded, given, close)

    def _compared(self, graded: Grade, given: list[Tokens], close: int) -> Claimed:
        one, two = given[0], given[1]
        first_is_expected = self._name in ("java", "php", "csharp", "ruby") and graded.op != "has"
        if is_fixed(one) and not is_fixed(two):
            subject, expected = two, one
        elif is_fixed(two) and not is_fixed(one):
            subject, expected = one, two
        else:
            subject, expected = (two, one) if first_is_expected else (one, two)
        if graded.op == "≈" and len(given) > 2:
            expected = (*expected, "±", *given[2])
        constant = (subject == expected or (is_fixed(one) and is_fixed(two))) and graded.op != "!="
        return Claimed(graded.op, subject, expected, graded.strength, close, constant)

    def _matched(self, subject: Tokens, matcher: Tokens, close: int) -> Claimed:
        """`assertThat(x, is(equalTo(5)))`, `Assert.That(x, Is.EqualTo(5))`."""
        words = [token for token in matcher if token[:1].isidentifier() and not is_literal(token)]
        expected = tuple(token for token in matcher if is_literal(token))
        name = "_".join(words[:3]) if words else "equal"
        graded = grade(name, compares=bool(expected))
        return Claimed(
            graded.op, subject, expected or matcher, graded.strength, close, is_fixed(subject) and bool(expected)
        )

    def _fluent(self, opening: int, end: int) -> Claimed | None:
        bare = self._lexed.bare
        if bare[opening : opening + 1] == ".":
            args: list[str] = []
            close = opening - 1
        else:
            args, close = arguments(self._lexed, opening)
        subject = tokens(", ".join(args))
        if self._name == "swift":
            return self._truth(subject, close + 1)
        at = close + 1
        names: list[str] = []
        given = ""
        was_called = False
        while (link := _LINK.match(bare, at, end)) is not None and link["name"] not in ("catch", "then", "finally"):
            names.append(link["name"])
            at = link.end()
            if link["open"]:
                was_called = True
                given_args, shut = arguments(self._lexed, link.end() - 1)
                given = ", ".join(given_args) or given
                at = shut + 1
        if self._name == "ruby" and names and names[-1] in ("to", "not_to", "to_not"):
            at = self._end_of_line(at)
            return self._ruby(subject, names, self._lexed.code[link_end(bare, close + 1) : at], at)
        if len(args) > 1 and not names:
            return self._matched(tokens(args[0]), tokens(args[1]), at)
        if not names:
            return Claimed("bare", subject, (), TRUTHY, at) if subject else None
        return self._chained(subject, names, given, at, was_called)

    def _ruby(self, subject: Tokens, names: list[str], matcher: str, close: int) -> Claimed:
        negated = names[-1] != "to"
        said = tokens(matcher)
        name = next((token for token in said if token[:1].isidentifier() and not is_literal(token)), "")
        at = said.index(name) + 1 if name else 0
        expected = tuple(token for token in said[at:] if token not in ("(", ")"))
        if name == "be" and expected[:1] and expected[0] in ("<", ">", "<=", ">="):
            name = "be_greater"
        graded = grade(name or "be", negated=negated, compares=bool(expected))
        if graded.throws:
            return _thrown(graded, expected, subject, close)
        constant = is_fixed(subject) and (not expected or is_fixed(expected)) and not negated
        return Claimed(graded.op, subject, expected, graded.strength, close, constant or subject == expected)

    def _chained(self, subject: Tokens, names: list[str], given: str, close: int, was_called: bool) -> Claimed:
        negated = "not" in names or "never" in names
        matcher = [name for name in names if name not in ("not", "never")]
        if self._name == "go":
            inner = re.match(r"\s*(\w+)\s*\((.*)\)\s*$", given, re.DOTALL)
            matcher, given = ([inner[1]], inner[2]) if inner else (matcher, given)
            negated = negated or bool({"ToNot", "NotTo", "ShouldNot"} & set(names))
        useful = [name for name in matcher if name not in _CHAIN_WORDS] or matcher[-1:]
        name = "_".join(useful)
        expected = tokens(given)
        graded = grade(name, negated=negated, compares=bool(expected))
        if graded.throws:
            return _thrown(graded, expected, subject, close)
        if _ANYTHING.search(given):
            return Claimed(
                graded.op, subject, expected, NOTHING, close, constant=not negated and expected[:1] == ("expect",)
            )
        if expected in (("#true",), ("#false",)) and graded.op == "==":
            return _claimed(condition(subject, negated=expected == ("#false",)), close)
        fixed = is_fixed(subject) and (not expected or is_fixed(expected))
        constant = not negated and (fixed or (bool(expected) and subject == expected))
        if not was_called and not {"true", "false", "null", "undefined", "ok", "exist", "empty"} & set(names):
            return Claimed("bare", subject, (), TRUTHY, close)  # `expect(x).toBe` without a call does nothing
        return Claimed(graded.op, subject, expected, graded.strength, close, constant)

    def _suffix(self, match: re.Match[str], groups: dict[str, str | None]) -> Claimed:
        """The subject comes first: `x.should.equal(5)`, `x shouldBe 5`, `x.must_equal 5`."""
        bare = self._lexed.bare
        start = max(bare.rfind(sign, 0, match.start()) for sign in "\n;{}") + 1
        subject = tokens(self._lexed.code[start : match.start()])
        if groups.get("should"):
            claimed = self._fluent_after(subject, match.end() - 1)
            if claimed is not None:
                return claimed
        close = self._end_of_line(match.end())
        name = groups.get("must") or groups.get("infix") or "should"
        rest = self._lexed.code[match.end() : close]
        expected = tuple(token for token in tokens(rest) if token not in ("(", ")"))
        graded = grade(name, compares=bool(expected))
        if graded.throws:
            return _thrown(graded, expected, subject, close)
        return Claimed(graded.op, subject, expected, graded.strength, close, is_fixed(subject) and is_fixed(expected))

    def _fluent_after(self, subject: Tokens, at: int) -> Claimed | None:
        names: list[str] = []
        given = ""
        called = False
        while (link := _LINK.match(self._lexed.bare, at)) is not None:
            names.append(link["name"])
            at = link.end()
            if link["open"]:
                called = True
                args, shut = arguments(self._lexed, link.end() - 1)
                given = ", ".join(args) or given
                at = shut + 1
        return self._chained(subject, names, given, at, called) if names else None

    def _failures(self, start: int, end: int, zones: list[Zone]) -> Iterator[Found]:
        assert self._language.failure is not None
        for count, match in enumerate(self._language.failure.finditer(self._lexed.bare, start, end)):
            if count >= _MOST:
                return
            at = match.start()
            around = [zone for zone in zones if zone.fate is Fate.CONDITIONAL and zone.start < at < zone.end]
            own = max(around, key=lambda zone: zone.start, default=None)
            close = self._lexed.closing(match.end() - 1) + 1
            if own is None or not own.condition.startswith("if"):
                yield self._found(at, Claimed("fail", (), (), EXACT, close), zones)
                continue
            header = self._lexed.code[: own.start].rstrip()
            said = header[max(header.rfind(sign) for sign in "{}\n;") + 1 :]
            found = condition(tokens(re.sub(r"^\s*(?:\}?\s*else\s+)?if\b", "", said)), negated=True)
            yield self._found(at, _claimed(found, close), zones, own)


class LineFinder:
    """Line numbers of offsets, without counting from the start each time."""

    def __init__(self, text: str) -> None:
        self._text = text

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *(match.end() for match in re.finditer("\n", self._text))]

    def __call__(self, offset: int) -> int:
        from bisect import bisect_right

        return bisect_right(self._starts, offset)


def link_end(bare: str, at: int) -> int:
    """Past `.to` or `.not_to`."""
    link = _LINK.match(bare, at)
    while link is not None and link["name"] not in ("to", "not_to", "to_not"):
        link = _LINK.match(bare, link.end())
    return link.end() - (1 if link["open"] else 0) if link else at


def _claimed(found: Condition, close: int) -> Claimed:
    return Claimed(found.op, found.subject, found.expected, found.strength, close, found.constant)


def _thrown(graded: Grade, waited: Tokens, body: Tokens, close: int) -> Claimed:
    names = tuple(token for token in waited if token[:1].isupper() and not is_literal(token))[:1]
    pattern = tuple(token for token in waited if is_literal(token))
    is_broad = (not names and not pattern) or (bool(names) and names[0] in BROAD and not pattern)
    strength = PREDICATE if is_broad and graded.strength == EXACT else graded.strength
    return Claimed(
        graded.op, body, (*(f"'{name}" for name in names), *pattern), strength, close, raises=names or ("Error",)
    )


def _split(text: str) -> list[str]:
    """Arguments without parentheses, as in Ruby."""
    found = [""]
    depth = 0
    quote = ""
    for sign in text[:2000]:
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "\"'":
            quote = sign
        depth += (sign in "([{") - (sign in ")]}") if not quote else 0
        if sign == "," and depth == 0 and not quote:
            found.append("")
        else:
            found[-1] += sign
    return [part.strip() for part in found if part.strip()]


def _tolerance(claimed: Claimed) -> float:
    if claimed.op != "≈":
        return 0.0
    numbers = [float(t) for t in claimed.expected if re.fullmatch(r"\d+(?:\.\d+)?(?:e-?\d+)?", t)]
    return numbers[-1] if len(numbers) > 1 else 0.0
