"""Tests of languages that are read as tokens: where they begin and end, what skips them, what they assert."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct

from ralph.checks.tamper.languages import LANGUAGES, CaseRule, Language
from ralph.checks.tamper.lexing import Lexed, lex, tokens
from ralph.checks.tamper.suite import Case, Mark, Outline, Tokens, is_literal
from ralph.checks.tamper.token_assertions import AssertionReader, LineFinder
from ralph.checks.tamper.zones import brace_zones, line_zones

_GROUPS = frozenset({"describe", "context", "suite", "feature", "RSpec.describe"})
_MODIFIERS = {
    "skip": "skip",
    "todo": "skip",
    "fixme": "skip",
    "failing": "xfail",
    "fails": "xfail",
    "skipIf": "skipif",
    "runIf": "skipif",
    "only": "focus",
}
_EXPECTED = re.compile(
    r"\b(?:expected|want|exp|golden)\w*\s*(?::=|=(?!=)|:\s*[\w<>\[\]]+\s*=)(?P<value>[^;\n]+)", re.IGNORECASE
)
_ROW = re.compile(r"[\[{(](?P<inside>[^\[\](){};]{1,400})[\]})]")
_ROW_CALL = re.compile(
    r"\b(?:InlineData|TestCase|DataRow|case|test_case|CsvSource|ValueSource|EnumSource"
    r"|Arguments\.of|arguments|of|Row)\s*\(?\s*\{?\s*$"
)
_CALL = re.compile(r"[\w$!]\s*\(|^\s*run\s", re.MULTILINE)
_BUILD_TAG = re.compile(r"^//go:build[ \t]+[^\n]+|^//[ \t]*\+build[ \t]+[^\n]+|^#!\[cfg\([^\n]*", re.MULTILINE)
_MOST_CASES = 3000
_LONGEST_LINE = 20_000


class Place(Struct, frozen=True):
    """A test in its file. `head` is where its annotations begin, `open` where its body does."""

    head: int
    start: int
    open: int
    end: int
    rule: CaseRule
    is_group: bool = False


class TokenSuite:
    def __init__(self, path: str, language: str, text: str) -> None:
        self._path = path
        self._name = language
        self._language: Language = LANGUAGES[language]
        self._lexed: Lexed = lex(text, language)
        self._line = LineFinder(text)
        self._text = text
        self._places: dict[tuple[str, int], Place] = {}
        self.outlines: Sequence[Outline] = self._outlines()
        self.marks: Sequence[Mark] = self._file_marks()

    @classmethod
    def read(cls, path: str, language: str, text: str) -> TokenSuite | None:
        if language not in LANGUAGES or max(map(len, text.split("\n"))) > _LONGEST_LINE:
            return None
        return cls(path, language, text)

    @property
    def code(self) -> str:
        """The text without its comments."""
        return self._lexed.code

    def _outlines(self) -> list[Outline]:
        found: list[Outline] = []
        groups: list[tuple[int, int, str, tuple[Mark, ...]]] = []
        for place, name, is_test, own in self._cases():
            around = [group for group in groups if group[0] < place.start < group[1]]
            full = " > ".join([*(group[2] for group in around), name])
            marks = (*(mark for group in around for mark in group[3]), *own)
            if place.is_group:
                groups.append((place.start, place.end, name, own))
                continue
            line = self._line(place.start)
            self._places[(full, line)] = place
            source = "\n".join(self._lexed.code[place.head : place.end].split())
            body = "\n".join(self._lexed.code[place.open : place.end].split())
            found.append(Outline(self._path, full, line, is_test, source, body, tuple(dict.fromkeys(marks))))
        if not found and self._name == "shell" and self._lexed.code.strip():
            self._places[("script", 1)] = Place(0, 0, 0, len(self._lexed.code), self._language.cases[0])
            source = "\n".join(self._lexed.code.split())
            found.append(Outline(self._path, "script", 1, True, source, source))
        return found

    def _cases(self) -> Iterator[tuple[Place, str, bool, tuple[Mark, ...]]]:
        matches = [
            (match.start(), rule, match)
            for rule in self._language.cases
            for match in rule.pattern.finditer(self._lexed.bare)
        ]
        matches.sort(key=lambda item: item[0])
        for at, rule, match in matches[:_MOST_CASES]:
            groups = match.groupdict()
            if rule.body == "call":
                yield from self._called(at, rule, match)
            elif rule.body == "end" and groups.get("word"):
                yield from self._blocks(at, rule, match)
            else:
                place = self._placed(at, rule, match)
                name = self._lexed.code[match.start("name") : match.end("name")]
                head = self._lexed.bare[place.head : place.open]
                test = (
                    rule.is_test is None or rule.is_test.search(name) or (rule.annotated and rule.is_test.search(head))
                )
                yield place, name.strip("`\"' "), bool(test), self._skips(place.head, place.open)

    def _placed(self, at: int, rule: CaseRule, match: re.Match[str]) -> Place:
        if rule.body == "braces":
            opening = match.end() - 1
            return Place(self._annotations(at), at, opening, self._lexed.closing(opening) + 1, rule)
        end = self._indented_end(match.start(), rule.body == "end")
        return Place(self._annotations(at), at, match.end(), end, rule)

    def _annotations(self, at: int) -> int:
        """Back to the end of the previous statement: annotations and attributes belong to what follows them."""
        if self._name == "python":
            start = self._lexed.bare.rfind("\n\n", 0, at)
            return max(start, 0)
        floor = max(0, at - 3000)
        text = self._lexed.bare[floor:at]
        depth = 0
        for offset in range(len(text) - 1, -1, -1):
            sign = text[offset]
            depth += (sign in ")]}") - (sign in "([{")
            if (sign == ";" and depth == 0) or (sign == "{" and depth < 0) or (sign == "}" and depth == 1):
                return floor + offset + 1
            if sign == "(" and depth < 0:
                return floor + offset + 1
        return floor

    def _called(
        self, at: int, rule: CaseRule, match: re.Match[str]
    ) -> Iterator[tuple[Place, str, bool, tuple[Mark, ...]]]:
        code = self._lexed
        opening = match.end()
        if code.bare[opening : opening + 1] == "`":  # it.each`table`(…)
            opening = code.bare.find("(", code.bare.find("`", opening + 1))
        mods = re.findall(r"\w+", match["mods"])
        end = code.closing(opening) if opening >= 0 else len(code.bare)
        if {"each", "skipIf", "runIf", "if", "for"} & set(mods):
            further = re.compile(r"\s*\(").match(code.bare, end + 1)
            if further is None:
                return
            opening, end = further.end() - 1, code.closing(further.end() - 1)
        first = re.compile(r"\s*(?P<quote>[\"'`])").match(code.bare, opening + 1)
        line = self._line(at)
        marks = [Mark(_MODIFIERS[mod], line, f"{match['word']}.{mod}") for mod in mods if mod in _MODIFIERS]
        if match["x"]:
            marks.append(Mark("skip" if match["x"] == "x" else "focus", line, f"{match['x']}{match['word']}"))
        if first is None:
            if not {"skip", "fixme", "only"} & set(mods) or match["word"] in _GROUPS:
                return
            name = ""
        else:
            close = code.bare.find(first["quote"], first.end())
            name = code.code[first.end() : close]
        body = re.compile(r"(?:=>|\bfunction\b[^{]*)\s*\{?").search(code.bare, opening, end)
        brace = body.end() - 1 if body and code.bare[body.end() - 1] == "{" else -1
        if body is None and match["word"] not in _GROUPS and first is not None and "," not in code.bare[opening:end]:
            marks.append(Mark("skip", line, "a test without a body"))
        tail = re.compile(r"\)\s*->\s*(?P<word>skip|todo|only)\s*\(").match(code.bare, end)
        if tail:
            marks.append(Mark("focus" if tail["word"] == "only" else "skip", line, f"->{tail['word']}()"))
        place = Place(at, at, brace if brace >= 0 else opening, end, rule, match["word"] in _GROUPS)
        if not place.is_group and first is not None:
            marks += self._skips(opening, brace if brace >= 0 else opening)
        if first is None and not place.is_group:
            return
        yield place, name, True, tuple(marks)

    def _blocks(
        self, at: int, rule: CaseRule, match: re.Match[str]
    ) -> Iterator[tuple[Place, str, bool, tuple[Mark, ...]]]:
        """Ruby's `it "does" do … end`."""
        head = match["head"]
        text = self._lexed.code[match.start("head") : match.end("head")]
        named = re.search(r"\"([^\"]*)\"|'([^']*)'", text)
        name = (named[1] or named[2] or "") if named else text.strip(" ({")[:60]
        is_group = match["word"] in _GROUPS
        line = self._line(match.start("word"))
        marks = (
            [Mark("skip" if match["x"] == "x" else "focus", line, f"{match['x']}{match['word']}")] if match["x"] else []
        )
        marks += self._skips(match.start("head"), match.end("head"))
        if re.search(r"\bdo\b[^\n]*$", head):
            end = self._indented_end(match.start(), True)
        elif "{" in head:
            end = self._lexed.closing(match.start("head") + head.index("{")) + 1
        else:
            end = match.end()
            if not is_group:
                marks.append(Mark("skip", line, "a test without a body"))
        yield (
            Place(at, at, match.end("head") if "{" not in head else match.start("head"), end, rule, is_group),
            name,
            True,
            tuple(marks),
        )

    def _indented_end(self, start: int, with_end: bool) -> int:
        bare = self._lexed.bare
        begin = bare.rfind("\n", 0, start) + 1
        line = bare[begin : bare.find("\n", start) if "\n" in bare[start:] else len(bare)]
        indent = len(line) - len(line.lstrip())
        stop = re.compile(rf"^[ \t]{{{indent}}}end\b[^\n]*" if with_end else rf"^[ \t]{{0,{indent}}}\S", re.MULTILINE)
        found = stop.search(bare, begin + len(line) + 1) if begin + len(line) < len(bare) else None
        return (found.end() if with_end else found.start()) if found else len(bare)

    def _skips(self, start: int, end: int) -> tuple[Mark, ...]:
        return tuple(
            Mark(
                skip.kind,
                self._line(match.start()),
                " ".join(self._lexed.code[match.start() : match.end() + 20].split("\n")[0].split()),
            )
            for skip in self._language.skips
            for match in skip.pattern.finditer(self._lexed.bare, start, end)
        )

    def _file_marks(self) -> tuple[Mark, ...]:
        """Skips outside every test: a disabled class, a `before` that skips them all."""
        inside = [(place.head, place.end) for place in self._places.values()]
        found = [
            Mark(skip.kind, self._line(match.start()), " ".join(match[0].split()))
            for skip in self._language.skips
            for match in skip.pattern.finditer(self._lexed.bare)
            if not any(start <= match.start() < end for start, end in inside)
        ]
        found = [mark for mark in found if mark.kind != "guard"]
        for match in _BUILD_TAG.finditer(self._text) if self._name in ("go", "rust") else ():
            found.append(Mark("guard", self._line(match.start()), match[0].strip()))
        return tuple(found)

    def case(self, outline: Outline) -> Case:
        place = self._places[(outline.name, outline.line)]
        has_braces = place.rule.body in ("braces", "call") and self._lexed.bare[place.open : place.open + 1] == "{"
        zones = (
            brace_zones(self._lexed, place.open, place.end)
            if has_braces
            else line_zones(self._lexed, place.open, place.end)
        )
        reader = AssertionReader(self._name, self._language, self._lexed, self._line)
        start = place.head if self._name == "java" else place.open
        found = reader.read(start, place.end, zones)
        skips = () if outline.name == "script" else self._skips(place.open, place.end)
        taken = [(item.start, item.end) for item in found]
        calls = len(_CALL.findall(self._lexed.bare, place.open, place.end))
        return Case(
            outline,
            tuple(item.assertion for item in found),
            tuple(dict.fromkeys((*outline.marks, *skips))),
            calls,
            tuple(self._rows(place, taken)),
        )

    def _rows(self, place: Place, taken: list[tuple[int, int]]) -> Iterator[Tokens]:
        """Rows of a table of examples: elements of a list, arguments of an annotation, a value called `expected`."""
        bare, code = self._lexed.bare, self._lexed.code
        for count, match in enumerate(_ROW.finditer(bare, place.head, place.end)):
            if count > 2000:
                return
            if any(start <= match.start() < end for start, end in taken):
                continue
            before = bare[max(0, match.start() - 60) : match.start()].rstrip()
            after = bare[match.end() : match.end() + 60].lstrip()[:1]
            opens = ("[", "{", ",", ":") if self._name == "go" else ("[", "{", ",")
            listed = before[-1:] in opens and after in (",", "]", "}", "")
            if not (listed or _ROW_CALL.search(before)) or "=>" in match[0] or "return" in match[0]:
                continue
            row = tokens(code[match.start("inside") : match.end("inside")])
            if any(map(is_literal, row)):
                yield row
        for match in _EXPECTED.finditer(bare, place.open, place.end):
            value = tokens(code[match.start("value") : match.end("value")])
            if any(map(is_literal, value)) and not any(start <= match.start() < end for start, end in taken):
                yield ("expected", *value)
