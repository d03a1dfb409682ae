"""Find learnings in the files that hold them. Pure.

In `learnings.md`, every line is one. In a progress log they are the section "Codebase Patterns", the items under
"Learnings:" in an entry, and lines that start with "Learned:". Users and agents edit these files too, so bullets of any
kind are accepted, and nothing is ever an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from ralph.core.learning import Learning, read_line
from ralph.core.text import clean

PATTERNS = "Codebase Patterns"
LOOP = "loop: "
"""Prefix of Ralph's own remarks among the learnings: a verdict is not a learning."""
_BULLET = re.compile(r"([ \t]*)(?:[-*+]|\d{1,3}[.)])[ \t]+(.*)")
_HEADING = re.compile(r"#{1,6}(?:[ \t]|$)")
_PATTERNS = re.compile(r"#{1,6}[ \t]+codebase patterns\b", re.IGNORECASE)
_LABEL = re.compile(r"[ \t]*(?:#{1,6}[ \t]+)?(?:\*\*)?(?:learnings?|learned)(?:\*\*)?[ \t]*:?(?:\*\*)?[ \t]*", re.I)
_LEARNED = re.compile(
    r"(?:\*\*)?(?:learnings?(?: for [a-z ]{1,40})?|learned)(?:\*\*)?:(?:\*\*)?[ \t]*(.*)", re.IGNORECASE
)
"""In a bullet: one learning or, if nothing follows, the heading of those nested in it."""
_FIELD = re.compile(r"(?:- )?(Story|Date|When):[ \t]*(\S*)")
_RULE = re.compile(r"[ \t]*(?:-{3,}|\*{3,}|_{3,})[ \t]*")
_ENTRY = re.compile(r"#{2,6}(?:[ \t\r]|$)|[ \t]*(?:-{3,}|\*{3,}|_{3,})[ \t\r]*$")
"""Marks the end of a log's beginning or of its curated section."""
_PLACEHOLDER = re.compile(r"\(.*\)|<.*>|\.\.\.|…|none\.?|n/a", re.IGNORECASE)
_BULLETS = frozenset("-*+0123456789")
_TELLING = frozenset("#*-_SDWLl \t")
"""Prefixes of lines that introduce learnings or name their story."""
_PREFACE = "What one iteration found out and the next ones should know."
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)


class _Item(Struct):
    line: int
    indent: int
    text: str
    curated: bool = False
    story: str = ""
    date: str = ""

    def learning(self) -> Learning | None:
        text = " ".join(self.text.split())
        if not text or text == _PREFACE or text.startswith(LOOP) or _PLACEHOLDER.fullmatch(text):
            return None
        return read_line(text, curated=self.curated, line=self.line, story=self.story, date=self.date)


def in_notes(text: str) -> tuple[Learning, ...]:
    """All learnings of a file that holds nothing else: bullets and paragraphs."""
    return _learnings(_items_of_notes(_without_comments(clean(text))))


def in_log(text: str) -> tuple[Learning, ...]:
    """The learnings of a progress log."""
    return _learnings(_items_of_log(_without_comments(clean(text))))


def _learnings(items: Iterator[_Item]) -> tuple[Learning, ...]:
    return tuple(found for item in items if (found := item.learning()) is not None)


def _without_comments(text: str) -> str:
    """The same lines, so that line numbers stay valid."""
    return _COMMENT.sub(lambda found: "\n" * found[0].count("\n"), text) if "<!--" in text else text


def _items_of_notes(text: str) -> Iterator[_Item]:
    item: _Item | None = None
    for number, line in enumerate(text.split("\n"), 1):
        bullet = _BULLET.fullmatch(line)
        if bullet and (item is None or len(bullet[1]) <= item.indent + 1):
            if item:
                yield item
            item = _Item(number, len(bullet[1]), bullet[2])
        elif not line.strip() or _HEADING.match(line) or _RULE.fullmatch(line):
            if item:
                yield item
            item = None
        elif item:
            item.text += f" {line.strip()}"
        else:
            item = _Item(number, 0, line)
    if item:
        yield item


def _items_of_log(text: str) -> Iterator[_Item]:
    item: _Item | None = None
    is_list = is_curated = False
    head = -1  # how far the bullet is indented that the list is nested in
    story = date = ""
    for number, line in enumerate(text.split("\n"), 1):
        words = line.strip()
        # A log can be long, and most of its lines are of no interest: no pattern is tried on those.
        bullet = _BULLET.fullmatch(line) if words[:1] in _BULLETS and words else None
        if item is not None and words and not _ends(line, item, bullet):
            item.text += f" {words}"
            continue
        if item is not None:
            yield item
            item = None
        if not words or (not is_list and bullet is None and line[0] not in _TELLING):
            continue
        if bullet and head >= 0 and len(bullet[1]) <= head:
            is_list, head = False, -1
        if bullet and (said := _LEARNED.fullmatch(bullet[2])):
            if said[1]:
                item = _Item(number, len(bullet[1]), said[1], False, story, date)
            elif not is_list:
                is_list, is_curated, head = True, False, len(bullet[1])
        elif bullet and is_list:
            item = _Item(number, len(bullet[1]), bullet[2], is_curated, "" if is_curated else story, date)
        elif _PATTERNS.match(line):
            is_list, is_curated, head = True, True, -1
            story = date = ""
        elif _LABEL.fullmatch(line):
            is_list, is_curated, head = True, False, -1
        elif _RULE.fullmatch(line):
            is_list = is_curated = False
            story = date = ""
        elif line.strip():
            is_list = is_curated = is_curated and not _HEADING.match(line)
            if field := _FIELD.match(line):
                story, date = (field[2], date) if field[1] == "Story" else (story, field[2][:10])
    if item is not None:
        yield item


def _ends(line: str, item: _Item, bullet: re.Match[str] | None) -> bool:
    """Whether the line does not belong to the item before it."""
    if bullet:
        return len(bullet[1]) <= item.indent + 1
    indent = len(line) - len(line.lstrip())
    return indent <= item.indent or bool(_RULE.fullmatch(line))


class _Parts(Struct, frozen=True):
    """The parts of a log: its beginning, its curated section without the heading, and its entries. Joined, they are
    the text.
    """

    head: str
    curated: str
    entries: str
    has_section: bool


def _parts(text: str) -> _Parts:
    lines = text.splitlines(keepends=True)

    def next_mark(start: int) -> int:
        marks = (at for at in range(start, len(lines)) if _ENTRY.match(lines[at]))
        return next(marks, len(lines))

    start = next((at for at, line in enumerate(lines) if _PATTERNS.match(line)), None)
    if start is None:
        end = next_mark(0)
        return _Parts("".join(lines[:end]), "", "".join(lines[end:]), has_section=False)
    end = next_mark(start + 1)
    return _Parts("".join(lines[: start + 1]), "".join(lines[start + 1 : end]), "".join(lines[end:]), has_section=True)


def with_pattern(text: str, line: str) -> str | None:
    """The text with one more line at the end of the curated section. None: it has no such section.

    No existing byte changes.
    """
    parts = _parts(text)
    if not parts.has_section:
        return None
    listed = parts.curated.splitlines(keepends=True)
    end = max((at + 1 for at, one in enumerate(listed) if one.strip()), default=0)
    before = parts.head + "".join(listed[:end])
    mark = "\r\n" if parts.head.endswith("\r\n") else "\n"
    gap = "" if before.endswith("\n") else mark
    return f"{before}{gap}- {line}{mark}{''.join(listed[end:])}{parts.entries}"


def entries_of(text: str) -> str:
    """The entries of a log: what follows its beginning and its curated section."""
    return _parts(text).entries.rstrip()


def with_entries(now: str, before: str) -> str:
    """The current beginning of a log, with its earlier entries."""
    if not now.strip():
        return before
    new, old = _parts(now), _parts(before)
    beginning = new.head + new.curated if new.has_section or not old.has_section else old.head + old.curated
    return f"{beginning}{'' if not beginning or beginning.endswith(chr(10)) else chr(10)}{old.entries}"
