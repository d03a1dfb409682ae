"""A Markdown source while it is read: where a task is, what it is called, and what no task has taken."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ralph.core.plan import State
from ralph.core.problems import Place, Problem
from ralph.importing import body, wording
from ralph.importing.stories import Batch, Item, NoTasks, in_order, remark, text_key
from ralph.plans.markdown import Block, Kind, scan, with_plain_line_ends
from ralph.plans.markdown_stories import after_item, blocks_nested

MARK = re.compile(r"\[([ xX~/>!?*-])\](\*?)(?=[ \t\n])")
"""A checkbox with any of the marks that tools use: `[-]` is dropped or in progress, `[ ]*` is optional."""
BOX = re.compile(r"^[ \t]*(?:[-*+]|[0-9]{1,9}[.)])[ \t]+\[[ xX~/>!?*-]\]\*?[ \t]", re.MULTILINE)
_NOTHING = re.compile(r"\s*(?:<!--.*|-{3,}|\*{3,}|_{3,}|#+)?\s*", re.DOTALL)


_WRAPPED = re.compile(r"[\w,'\"`|]\n[ \t]*[a-z'\"`(|]")


_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_HEADING = re.compile(r"[ \t]*#")
_FEWEST = 2
_CONSUMED = frozenset(
    {"acceptance", "blocked", "commands", "create", "criteria", "definition", "depends", "dependencies", "done"}
    | {"expected", "files", "modify", "optional", "requirements", "requires", "status", "task", "tasks", "test"}
    | {"tests", "verification", "verify"}
)
"""Words that a reader turns into the fields of a story."""


def _words_of(text: str) -> set[str]:
    return {word.casefold() for word in re.findall(r"[^\W\d_]{3,}", text)}


def headline(words: str) -> tuple[str, bool]:
    """The first line of a task; or all of its paragraph if the line was only wrapped, and whether that is so."""
    first, _, rest = words.partition("\n")
    whole = wording.line(words)
    is_wrapped = len(whole) <= wording.LONGEST_TITLE and _WRAPPED.search(f"{first.rstrip()}\n{rest}") is not None
    return (whole, True) if is_wrapped else (first, False)


class Document:
    """The headings and list items above a task are its phase."""

    def __init__(self, text: str, kind: str, file: str) -> None:
        self.text = with_plain_line_ends(text)
        self.blocks = scan(self.text)
        self.kind, self.file = kind, file
        self.items: list[Item] = []
        self.left: list[Problem] = []
        self.taken = [False] * len(self.blocks)
        self._covered: set[int] = set()
        """Lines that a remark lists as left out."""
        self._keys: dict[str, int] = {}
        self._headings: list[tuple[int, str]] = []
        self._groups: list[tuple[int, str]] = []

    def words(self, block: Block) -> str:
        return self.text[block.text : block.end]

    def take(self, start: int, end: int) -> None:
        self.taken[start:end] = [True] * (end - start)

    def enter(self, heading: Block) -> None:
        self._groups = []
        above = [one for one in self._headings if one[0] < heading.level]
        self._headings = [*above, (heading.level, wording.title(self.words(heading)))]

    def group(self, at: int) -> None:
        """A list item that only groups others."""
        item = self.blocks[at]
        self.take(at, at + 1)
        self._groups.append((item.depth, wording.title(self.words(item).split("\n")[0])))

    def leave(self, depth: int) -> None:
        self._groups = [one for one in self._groups if one[0] < depth]

    @property
    def phase(self) -> str:
        inner = [words for level, words in self._headings if level > 1] + [words for _, words in self._groups]
        return " › ".join(inner)

    def leave_out(self, title: str, why: str, line: int) -> None:
        self.left.append(remark("left-out", f"{title!r} {why}", self.file, line))

    def unique(self, *words: str) -> str:
        """The key of a task with this text; the second one of the same text gets another key."""
        key = text_key(self.kind, self.file, *words)
        self._keys[key] = self._keys.get(key, 0) + 1
        return key if self._keys[key] == 1 else f"{key}-{self._keys[key]}"

    def add(self, at: int, end: int, *, is_done: bool = False, priority: float = 0) -> None:
        """The list item at `at`, with everything nested in it up to `end`."""
        block = self.blocks[at]
        self.take(at, end)
        words, is_all = headline(self.words(block)[: wording.LONGEST_TEXT])
        raw = self.words(block)[: wording.LONGEST_TEXT].split("\n")[0]
        if block.box >= 0 or MARK.match(raw):
            is_done = is_done or raw[1] in "xX"
            raw, words = (text[3:].lstrip("*").lstrip() for text in (raw, words))
        content = body.read(self.text, blocks_nested(self.text, self.blocks, at, end)[is_all:], every_item=True)
        title = wording.title(words) or "(no title)"
        description = content.description
        if title.endswith("…"):  # it was cut
            description = f"{wording.line(words)}\n\n{description}".strip()
        above = [words for _, words in (*self._headings, *self._groups)]
        self.items.append(
            Item(
                key=self.unique(*above, wording.slug(raw)),
                title=title,
                description=description,
                criteria=content.criteria,
                priority=priority,
                state=State.DONE if is_done or wording.looks_done(raw) else State.TODO,
                notes=content.notes,
                verify=content.verify,
                touches=content.touches,
                phase=self.phase,
                line=block.line,
            )
        )

    @property
    def title(self) -> str:
        first = next((block for block in self.blocks if block.kind is Kind.HEADING and not block.depth), None)
        return wording.title(self.words(first)) if first and first.level == 1 else ""

    def batch(self, nothing: str, hint: str, verify: tuple[str, ...] = ()) -> Batch:
        """Raises NoTasks, with these words, if there are no tasks."""
        if not self.items:
            raise NoTasks(nothing, where=Place(self.file), hint=hint)
        left = [*self.left, *self._untaken()]
        return Batch(
            kind=self.kind,
            file=self.file,
            items=tuple(in_order(self.items)),
            name=self.title,
            verify=verify,
            left=tuple(sorted((*left, *self._lost(left, verify)), key=lambda problem: problem.where.line or 0)),
        )

    def _lost(self, left: list[Problem], verify: tuple[str, ...]) -> Iterator[Problem]:
        """Once for all lines that no remark covers and whose words are in no story: a reader dropped them."""
        texts = [self.title, *verify]
        for item in self.items:
            texts += (item.title, item.description, item.notes, item.phase, item.why)
            texts += (*item.criteria, *item.verify, *item.touches)
        said = _CONSUMED | _words_of("\n".join(texts))
        named = {problem.where.line for problem in left}
        for at, block in enumerate(self.blocks):
            if block.line in named:
                end = after_item(self.blocks, at, len(self.blocks)) if block.kind is Kind.ITEM else at + 1
                stop = self.blocks[end].line if end < len(self.blocks) else self.text.count("\n") + 2
                self._covered.update(range(block.line, stop))
        plain = _COMMENT.sub(lambda found: "\n" * found[0].count("\n"), self.text)
        lost: list[tuple[int, str]] = []
        for number, line in enumerate(plain.split("\n"), 1):
            if number not in self._covered and not _HEADING.match(line):
                words = _words_of(line)
                if len(missing := words - said) >= _FEWEST and 2 * len(missing) >= len(words):
                    lost.append((number, line))
        if lost:
            first, sample = lost[0]
            listed = ", ".join(str(number) for number, _ in lost)
            message = f"line{'s' * (len(lost) > 1)} {listed}: {wording.title(sample)[:60]}"
            yield remark("left-out", message, self.file, first)

    def _untaken(self) -> Iterator[Problem]:
        """Whole sections without a task, and text beside the tasks of a section."""
        named = {problem.where.line for problem in self.left}
        at, heading = 0, ""
        while at < len(self.blocks):
            block = self.blocks[at]
            if block.kind is Kind.HEADING and not block.depth:
                heading = wording.title(self.words(block))
                end = self.end_of_section(at)
                said = [one for one in range(at + 1, end) if self._says_something(one)]
                if not any(self.taken[at:end]) and any(self.blocks[one].line not in named for one in said):
                    yield self._remark(f"the section {heading!r}", at, end)
                    at = end
                else:
                    at += 1
            elif self.taken[at] or not self._says_something(at) or block.line in named:
                at = after_item(self.blocks, at, len(self.blocks)) if block.line in named else at + 1
            else:
                end = at
                while end < len(self.blocks) and not self.taken[end] and not self._is_head(end):
                    end += 1
                yield self._remark(f"text under {heading!r}" if heading else "text", at, end)
                at = end

    def end_of_section(self, at: int) -> int:
        level = self.blocks[at].level
        for end in range(at + 1, len(self.blocks)):
            if self._is_head(end) and self.blocks[end].level <= level:
                return end
        return len(self.blocks)

    def _is_head(self, at: int) -> bool:
        return self.blocks[at].kind is Kind.HEADING and not self.blocks[at].depth

    def _says_something(self, at: int) -> bool:
        block = self.blocks[at]
        return block.kind is not Kind.HEADING and not _NOTHING.fullmatch(self.text[block.start : block.end])

    def _remark(self, what: str, start: int, end: int) -> Problem:
        first = self.blocks[start]
        stop = self.blocks[end].start if end < len(self.blocks) else len(self.text)
        last = first.line + self.text[first.start : stop].rstrip().count("\n")
        self._covered.update(range(first.line, last + 1))
        where = f"line {first.line}" if last <= first.line else f"lines {first.line}–{last}"
        sample = wording.title(self.words(first).split("\n")[0])[:60] if first.kind is not Kind.HEADING else ""
        said = f": {sample}" if sample else ""
        return remark("left-out", f"{what}, {where}{said}", self.file, first.line)
