"""Parse the Markdown of one task: description, criteria, commands, notes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from textwrap import dedent

from msgspec import Struct

from ralph.importing import wording
from ralph.plans.markdown import Block, Kind
from ralph.plans.markdown_stories import code_spans, paths_listed

_NAMES = {
    "criteria": "acceptance criteria|acceptance|success criteria|definition of done|done when|criteria",
    "verify": "verify|verification|verification commands|validation|validation commands|how to verify|test|tests"
    "|test commands|run|run tests",
    "touches": "touches",
    "notes": "notes|note",
}
_SECTIONS = {name: field for field, names in _NAMES.items() for name in names.split("|")}
_LABEL = re.compile(
    r"[ \t]*(\*\*|__|\*|_)?([A-Za-z][A-Za-z ]{2,24}?)[ \t]*(?:(?(1)(?::\1|\1[ \t]*:)|:)|(?(1)\1(?=[ \t]*\Z)|(?!)))"
)
_SHELL = re.compile(r"[`~]{3,}[ \t]*(?:bash|sh|shell|console|zsh|terminal)?[ \t]*\Z")
_COMMAND = re.compile(r"(?:\./)?[A-Za-z][\w./+-]*(?: (?!=).+)?")
_ALONE = frozenset(
    {"make", "pytest", "tox", "nox", "ninja", "ctest", "rake", "phpunit", "jest", "vitest", "mypy", "ruff"}
)
_NO_PROOF = re.compile(
    r"(?:sudo |git |rm |mkdir |cd \S+$|touch |cp |mv |echo |cat |(?:npm|pnpm|yarn) (?:i|install|add)\b|pip3? )"
)
_EXPECTED = re.compile(r"(?:\*\*)?Expected\b", re.IGNORECASE)
_FAILS = re.compile(r"\bExpected:?\W*\s*(?:the test to |it to |to )?fail", re.IGNORECASE)


class Body(Struct, frozen=True):
    description: str = ""
    criteria: tuple[str, ...] = ()
    verify: tuple[str, ...] = ()
    touches: tuple[str, ...] = ()
    notes: str = ""
    boxes: int = 0
    ticked: int = 0


def read(text: str, blocks: Sequence[Block], *, every_item: bool) -> Body:
    """`every_item`: each list item is a criterion; else only those with a checkbox or under a criteria heading."""
    return _Reader(text, every_item).read(blocks)


def section_of(heading: str) -> str:
    """The field of a heading or a label; empty if it is another kind."""
    return _SECTIONS.get(wording.slug(heading), "")


def label_of(line: str) -> tuple[str, str]:
    """Field and value of a line such as `**Verify:** ...`; the field is empty for other lines."""
    found = _LABEL.match(line)
    field = section_of(found[2]) if found else ""
    return (field, line[found.end() :].strip()) if found and field else ("", "")


def commands_in(line: str) -> list[str]:
    """The code spans of a line that can be verification commands."""
    return [code for span in code_spans(line) if is_proof(code := wording.line(span))]


def is_proof(code: str) -> bool:
    """Whether it is a command that could fail if the work is not done. A bare path is a file name."""
    if not _COMMAND.fullmatch(code) or _NO_PROOF.match(code):
        return False
    return " " in code or code in _ALONE or code.startswith("./")


class _Reader:
    def __init__(self, text: str, every_item: bool) -> None:
        self.text = text
        self.every_item = every_item
        self.section = ""
        self.level = -1
        """Depth of the item that opened the section; -1: a heading or a paragraph did."""
        self.parts: list[tuple[str, bool]] = []
        """Pieces of the description, and whether each is a list item."""
        self.criteria: list[tuple[int, str]] = []
        self.verify: dict[str, None] = {}
        self.touches: dict[str, None] = {}
        self.notes: list[str] = []
        self.boxes = self.ticked = 0
        self.last: list[str] = []
        """The last commands found: the following text may say that they are expected to fail."""

    def read(self, blocks: Sequence[Block]) -> Body:
        for block in blocks:
            if block.kind is not Kind.HEADING and self.level >= 0 and block.depth <= self.level:
                self.section, self.level = "", -1
            self._read(block)
        return Body(
            description=wording.prose(self._description()),
            criteria=tuple(dict.fromkeys(words for words in self._criteria() if words.strip())),
            verify=tuple(self.verify),
            touches=tuple(self.touches),
            notes=wording.prose("\n".join(self.notes)),
            boxes=self.boxes,
            ticked=self.ticked,
        )

    def _read(self, block: Block) -> None:
        raw = self.text[block.text : block.end]
        if block.kind is Kind.HEADING:
            self.section, self.level = section_of(raw), -1
            if not self.section:
                self.parts.append((f"{'#' * block.level} {wording.line(raw)}", False))
        elif block.kind is Kind.ITEM:
            self._read_item(block, raw)
        elif block.kind is Kind.TEXT:
            for line in wording.without_comments(raw).split("\n"):
                self._read_line(line.strip())
            self.parts.append(("", False))
        else:
            self._read_other(self.text[block.start : block.end])

    def _read_item(self, block: Block, raw: str) -> None:
        has_box = block.box >= 0
        self.boxes += has_box
        self.ticked += has_box and self.text[block.box] != " "
        words = wording.line(raw[3:] if has_box else raw)
        field, value = label_of(words)
        if field and not value:
            self.section, self.level = field, block.depth
        elif not words or (field and self._take(field, value)):
            return
        elif self.section == "criteria":
            self.criteria.append((block.depth, wording.unwrapped(words)))
        elif self.section and self._take(self.section, words):
            return
        elif has_box or self.every_item:
            self.criteria.append((block.depth, wording.unwrapped(words)))
        else:
            self.parts.append((f"{'  ' * block.depth}- {words}", True))

    def _read_line(self, line: str) -> None:
        if _EXPECTED.match(line) and self.last:
            if _FAILS.search(line):
                for command in self.last:
                    self.verify.pop(command, None)
            return
        field, value = label_of(line)
        if field and not value:
            self.section, self.level = field, -1
        elif field and self._take(field, value):
            return
        elif not self._take(self.section if self.section in ("verify", "notes") else "", line):
            self.parts.append((line, False))

    def _take(self, field: str, value: str) -> bool:
        """Whether the value fits this field."""
        if field == "criteria":
            self.criteria.append((0, wording.line(value)))
        elif field == "notes":
            self.notes.append(wording.line(value))
        elif field == "touches" and (paths := paths_listed(value)):
            self.touches.update(dict.fromkeys(paths))
        elif field == "verify" and (found := commands_in(value)):
            self.last = [command for command in found if command not in self.verify]
            self.verify.update(dict.fromkeys(found))
        else:
            return False
        return True

    def _read_other(self, raw: str) -> None:
        raw = dedent(raw)
        first, _, rest = raw.lstrip("\n").partition("\n")
        if first.lstrip().startswith("<!--"):
            return
        if self.section == "verify" and _SHELL.match(first.strip()):
            found = [
                code for line in rest.split("\n") if is_proof(code := wording.line(line.strip().removeprefix("$ ")))
            ]
            self.last = [command for command in found if command not in self.verify]
            self.verify.update(dict.fromkeys(found))
            return
        self.parts += [(raw, False), ("", False)]

    def _criteria(self) -> Iterator[str]:
        """An item that only introduces the nested ones is not a criterion, but a prefix of each of them."""
        lead: list[tuple[int, str]] = []
        for at, (depth, words) in enumerate(self.criteria):
            while lead and lead[-1][0] >= depth:
                lead.pop()
            has_nested = at + 1 < len(self.criteria) and self.criteria[at + 1][0] > depth
            if has_nested and words.endswith(":"):
                lead.append((depth, words))
            else:
                yield " ".join([*(text for _, text in lead), words])

    def _description(self) -> str:
        """Headings, and lists as a whole, are preceded by an empty line."""
        lines: list[str] = []
        was_item = False
        for part, is_item in self.parts:
            if lines and lines[-1] and (part.startswith("#") or is_item is not was_item):
                lines.append("")
            lines.append(part)
            was_item = is_item
        return "\n".join(lines)
