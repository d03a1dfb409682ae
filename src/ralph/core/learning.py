"""A learning: one line that a session leaves for later ones, with its origin, and the files that hold them. Pure.

    - Tests freeze the clock with `fixed_now`. (US-003, 2026-11-15, 1a2b3c4d5)
    - The cache has to be cleared first. (US-004, 2026-11-15, not accepted)

It is a claim like any other. A learning from an attempt that was not accepted is kept, since failures teach most, and
is marked permanently. In `learnings.md`, every line is one. In a progress log they are the section "Codebase
Patterns", the items under "Learnings:" in an entry, and lines that start with "Learned:". Users and agents edit
these files too, so bullets of any kind are accepted, and nothing is ever an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from ralph.core.lazy_pattern import lazy_pattern
from ralph.core.text import clean, one_line

LONGEST = 600
"""Characters. Longer text belongs in a document."""
_SHORT_COMMIT = 9
_LONGEST_STORY = 60
_NOT_ACCEPTED = "not accepted"
_TAG = lazy_pattern(
    r"\s+\((?:(?P<story>[^()]{1,80}?), )?(?P<date>\d{4}-\d\d-\d\d)"
    r"(?:, (?P<commit>[0-9a-f]{7,64}))?(?P<mark>, not accepted)?\)$"
)
_WORD = lazy_pattern(r"[^\W_]+(?:[-_./:'][^\W_]+)*")
_SMALL = (
    "a an and are as at be by do does for from has have here in is it its of on or so that the their them then there "
    "they this to was we were when which will with you your"
)
_TURNS = "not no never without cannot can't don't doesn't isn't only except unless always before after instead"
_FILLERS, _DECISIVE = frozenset(_SMALL.split()), frozenset(_TURNS.split())
_ALIKE = 0.9
_FEW = 8
"""Texts with so few words must be identical to count as the same."""


class Learning(Struct, frozen=True, kw_only=True):
    text: str
    story: str = ""
    date: str = ""
    """`2026-11-15`"""
    commit: str = ""
    accepted: bool = True
    """False: from an attempt that was not accepted."""
    curated: bool = False
    """It was moved to the curated section ("Codebase Patterns")."""
    line: int = 0
    """Line number in its file."""


def learned(text: str, *, day: str, story: str = "", commit: str = "", accepted: bool = True) -> Learning:
    """A new learning. `day` may be a full ISO 8601 timestamp."""
    return Learning(
        text=one_line(text, LONGEST),
        story=one_line(story, _LONGEST_STORY).translate({ord("("): "[", ord(")"): "]"}),
        date=day[:10],
        commit=commit[:_SHORT_COMMIT],
        accepted=accepted,
    )


def written(learning: Learning) -> str:
    """Its line, without the bullet."""
    known = [learning.story, learning.date, learning.commit, "" if learning.accepted else _NOT_ACCEPTED]
    tag = ", ".join(filter(None, known)) if learning.date else ""
    return f"{learning.text} ({tag})" if tag else learning.text


def read_line(text: str, *, curated: bool = False, line: int = 0, story: str = "", date: str = "") -> Learning:
    """`story` and `date` come from the context, for a line that does not name them."""
    tag = _TAG.search(text)
    if tag is None:
        return Learning(text=text.strip(), curated=curated, line=line, story=story, date=date)
    return Learning(
        text=text[: tag.start()].strip(),
        story=tag["story"] or "",
        date=tag["date"],
        commit=tag["commit"] or "",
        accepted=not tag["mark"],
        curated=curated,
        line=line,
    )


def plain_words(text: str) -> tuple[str, ...]:
    """The text that learnings are compared by: without case and punctuation."""
    return tuple(_WORD.findall(text.casefold()))


def is_same(first: str, second: str) -> bool:
    """Whether two learnings are the same, or so similar that only one is needed.

    Negations and numbers must occur in both.
    """
    one, other = plain_words(first), plain_words(second)
    if one == other:
        return True
    left, right = ([word for word in words if word not in _FILLERS] for words in (one, other))
    if left == right:
        return bool(left)
    kept, all_words = set(left) & set(right), set(left) | set(right)
    if min(len(left), len(right)) < _FEW or len(kept) < _ALIKE * len(all_words) or _pivots(left) != _pivots(right):
        return False
    from difflib import SequenceMatcher  # few come so near

    return SequenceMatcher(None, left, right, autojunk=False).ratio() >= _ALIKE  # the same order, too


def _pivots(words: Iterable[str]) -> set[str]:
    return {word for word in words if word in _DECISIVE or any(letter.isdigit() for letter in word)}


def news(learnings: Sequence[Learning], known: Iterable[Learning]) -> tuple[Learning, ...]:
    """The learnings that are not known yet. One known only from a failed attempt is new when an accepted one
    confirms it.
    """
    seen = list(known)
    new: list[Learning] = []
    for learning in learnings:
        if not learning.text:
            continue
        if any((old.accepted or not learning.accepted) and is_same(old.text, learning.text) for old in seen):
            continue
        seen.append(learning)
        new.append(learning)
    return tuple(new)


def distinct(learnings: Iterable[Learning]) -> tuple[Learning, ...]:
    """Each learning once, in its best-supported version: curated, else from accepted work, else the first."""
    best: dict[tuple[str, ...], Learning] = {}
    for learning in learnings:
        key = plain_words(learning.text)
        before = best.get(key)
        if before is None or _worth(learning) > _worth(before):
            best[key] = learning  # stays in the place of the first
    return tuple(best.values())


def _worth(learning: Learning) -> tuple[bool, bool]:
    return learning.curated, learning.accepted


PATTERNS = "Codebase Patterns"
LOOP = "loop: "
"""Prefix of Ralph's own remarks among the learnings: a verdict is not a learning."""
_BULLET = lazy_pattern(r"([ \t]*)(?:[-*+]|\d{1,3}[.)])[ \t]+(.*)")
_HEADING = lazy_pattern(r"#{1,6}(?:[ \t]|$)")
_PATTERNS = lazy_pattern(r"#{1,6}[ \t]+codebase patterns\b", re.IGNORECASE)
_LABEL = lazy_pattern(r"[ \t]*(?:#{1,6}[ \t]+)?(?:\*\*)?(?:learnings?|learned)(?:\*\*)?[ \t]*:?(?:\*\*)?[ \t]*", re.I)
_LEARNED = lazy_pattern(
    r"(?:\*\*)?(?:learnings?(?: for [a-z ]{1,40})?|learned)(?:\*\*)?:(?:\*\*)?[ \t]*(.*)", re.IGNORECASE
)
"""In a bullet: one learning or, if nothing follows, the heading of those nested in it."""
_FIELD = lazy_pattern(r"(?:- )?(Story|Date|When):[ \t]*(\S*)")
_RULE = lazy_pattern(r"[ \t]*(?:-{3,}|\*{3,}|_{3,})[ \t]*")
_ENTRY = lazy_pattern(r"#{2,6}(?:[ \t\r]|$)|[ \t]*(?:-{3,}|\*{3,}|_{3,})[ \t\r]*$")
"""Marks the end of a log's beginning or of its curated section."""
_PLACEHOLDER = lazy_pattern(r"\(.*\)|<.*>|\.\.\.|…|none\.?|n/a", re.IGNORECASE)
_BULLETS = frozenset("-*+0123456789")
_TELLING = frozenset("#*-_SDWLl \t")
"""Prefixes of lines that introduce learnings or name their story."""
_PREFACE = "What one iteration found out and the next ones should know."
_COMMENT = lazy_pattern(r"<!--.*?-->", re.DOTALL)


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
        if bullet and (learned := _LEARNED.fullmatch(bullet[2])):
            if learned[1]:
                item = _Item(number, len(bullet[1]), learned[1], False, story, date)
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
