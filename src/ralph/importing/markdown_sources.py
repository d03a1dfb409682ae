"""Tasks in Markdown: checklists, `fix_plan.md` with its bullets, and plans with a heading per task."""

from __future__ import annotations

import re

import msgspec

from ralph.core.errors import BadData
from ralph.core.plan import State
from ralph.core.problems import Place, Problem
from ralph.importing import body, wording
from ralph.importing.kinds import CHECKLIST, FIX_PLAN, TASK_PLAN
from ralph.importing.stories import Batch, Item, in_order, remark, text_key
from ralph.plans.markdown import Block, Kind, scan, with_plain_line_ends
from ralph.plans.markdown_stories import after_item, blocks_nested, code_spans

_MARK = re.compile(r"\[([-~/>!?*])\](?=[ \t])")
"""Marks that some tools use beside `[ ]` and `[x]`: `[-]` is dropped, the others are open."""


class _Document:
    """A Markdown source, and the tasks read so far: the headings and list items above a task are its phase."""

    def __init__(self, text: str, kind: str, file: str) -> None:
        self.text = with_plain_line_ends(text)
        self.blocks = scan(self.text)
        self.kind, self.file = kind, file
        self.items: list[Item] = []
        self.problems: list[Problem] = []
        self._keys: dict[str, int] = {}
        self._headings: list[tuple[int, str]] = []
        self._groups: list[tuple[int, str]] = []

    def words(self, block: Block) -> str:
        return self.text[block.text : block.end]

    def enter(self, heading: Block) -> None:
        self._groups = []
        above = [one for one in self._headings if one[0] < heading.level]
        self._headings = [*above, (heading.level, wording.title(self.words(heading)))]

    def group(self, item: Block) -> None:
        """A list item that only groups others."""
        self._groups.append((item.depth, wording.title(self.words(item).split("\n")[0])))

    def leave(self, depth: int) -> None:
        self._groups = [one for one in self._groups if one[0] < depth]

    def leave_out(self, title: str, why: str, line: int) -> None:
        self.problems.append(remark("left-out", f"left out: {title!r} {why}", self.file, line))

    def unique(self, *words: str) -> str:
        """The key of a task with this text; the second one of the same text gets another key."""
        key = text_key(self.kind, self.file, *words)
        self._keys[key] = self._keys.get(key, 0) + 1
        return key if self._keys[key] == 1 else f"{key}-{self._keys[key]}"

    def add(self, at: int, end: int, *, is_done: bool = False, priority: float = 0) -> None:
        """The list item at `at`, with everything nested in it up to `end`."""
        block = self.blocks[at]
        raw = self.words(block)[: wording.LONGEST_TEXT].split("\n")[0]
        if block.box >= 0 or _MARK.match(raw):
            is_done = is_done or raw[1] in "xX"
            raw = raw[3:].lstrip()
        content = body.read(self.text, blocks_nested(self.text, self.blocks, at, end), every_item=True)
        title = wording.title(raw) or "(no title)"
        description = content.description
        if title.endswith("…"):  # it was cut
            description = f"{wording.line(raw)}\n\n{description}".strip()
        above = [words for _, words in (*self._headings, *self._groups)]
        inner = [words for level, words in self._headings if level > 1] + [words for _, words in self._groups]
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
                phase=" › ".join(inner),
                line=block.line,
            )
        )

    def batch(self, nothing: str, hint: str, verify: tuple[str, ...] = ()) -> Batch:
        """Raises BadData, with these words, if there are no tasks."""
        if not self.items:
            raise BadData(nothing, where=Place(self.file), hint=hint)
        first = next((block for block in self.blocks if block.kind is Kind.HEADING and not block.depth), None)
        return Batch(
            kind=self.kind,
            file=self.file,
            items=tuple(in_order(self.items)),
            name=wording.title(self.words(first)) if first and first.level == 1 else "",
            verify=verify,
            problems=tuple(self.problems),
        )


def read_checklist(text: str, file: str) -> Batch:
    document = _Document(text, CHECKLIST, file)
    blocks = document.blocks
    at = 0
    while at < len(blocks):
        block = blocks[at]
        at += 1
        if block.kind is Kind.HEADING and not block.depth:
            document.enter(block)
        elif block.kind is Kind.ITEM:
            end = after_item(blocks, at - 1, len(blocks))
            document.leave(block.depth)
            mark = _MARK.match(document.text, block.text)
            if mark and mark[1] == "-":
                title = wording.title(document.text[mark.end() : block.end])
                document.leave_out(title, "is marked as dropped", block.line)
                at = end
            elif block.box >= 0 or mark:
                document.add(at - 1, end)
                at = end
            elif any(inner.box >= 0 for inner in blocks[at:end]):
                document.group(block)
    return document.batch("no tasks in this checklist", "a task is a line such as `- [ ] Add a login page`")


_DONE = re.compile(r"\b(?:completed?|done|finished|fixed|resolved|archived?)\b", re.IGNORECASE)
_NO_TASKS = re.compile(
    r"\b(?:notes?|context|learnings?|overview|legend|background|summary|goals?|references?|links|status|principles|rules"
    r"|instructions|how to|conventions)\b",
    re.IGNORECASE,
)
_LEVELS = (
    (re.compile(r"\b(?:critical|urgent|blockers?|immediate|must|p0)\b", re.IGNORECASE), 1),
    (re.compile(r"\b(?:high|important|p1)\b", re.IGNORECASE), 2),
    (re.compile(r"\b(?:medium|normal|should|p2)\b", re.IGNORECASE), 3),
    (re.compile(r"\b(?:low|minor|nice|could|p3)\b", re.IGNORECASE), 4),
    (re.compile(r"\b(?:someday|backlog|later|future|ideas|p4)\b", re.IGNORECASE), 5),
)


def level_of(words: str) -> int:
    """1 to 5 for words that express importance, 0 for others."""
    return next((level for pattern, level in _LEVELS if pattern.search(words)), 0)


def read_fix_plan(text: str, file: str) -> Batch:
    document = _Document(text, FIX_PLAN, file)
    blocks = document.blocks
    section, priority = "", 0
    boxes = _has_boxes(blocks, 0)
    for at, block in enumerate(blocks):
        if block.kind is Kind.HEADING and not block.depth:
            section = document.words(block)
            document.enter(block)
            priority = level_of(section)
            boxes = _has_boxes(blocks, at + 1)
        elif block.kind is Kind.ITEM and not block.depth:
            title = wording.title(document.words(block).split("\n")[0])
            if (mark := _MARK.match(document.text, block.text)) and mark[1] == "-":
                document.leave_out(title, "is marked as dropped", block.line)
            elif block.box < 0 and boxes:
                document.leave_out(title, "has no checkbox, but others in the section do", block.line)
            elif block.box < 0 and _NO_TASKS.search(section):
                document.leave_out(title, f"is under {wording.title(section)!r}", block.line)
            else:
                is_done = bool(_DONE.search(section)) and not priority
                document.add(at, after_item(blocks, at, len(blocks)), is_done=is_done, priority=priority)
    return document.batch("no tasks in this file", "a task is a bullet such as `- Fix the login page`")


def _has_boxes(blocks: list[Block], start: int) -> bool:
    """Whether a bullet of the section that starts here has a checkbox; then those without one are remarks."""
    for block in blocks[start:]:
        if block.kind is Kind.HEADING and not block.depth:
            return False
        if block.kind is Kind.ITEM and not block.depth and block.box >= 0:
            return True
    return False


def is_fix_plan(file: str) -> bool:
    return wording.slug(file.rpartition("/")[2].removesuffix(".md")) == "fix plan"


TASK_HEAD = re.compile(
    r"(?:\[[ xX]\][ \t]*)?(?:\*\*)?(?:task|step|story|work item)[ \t]+#?(?P<number>[0-9]+(?:\.[0-9]+)*[a-z]?)(?:\*\*)?"
    r"[ \t]*[:.)–—-]*[ \t]*(?P<title>.*)",
    re.IGNORECASE | re.DOTALL,
)
_TASK_NEEDS = re.compile(
    r"^[ \t]*(?:[-*+][ \t]+)?(?:\*\*|__)?(?:depends[ \t]+on|dependenc(?:y|ies)|blocked[ \t]+by|requires)(?:\*\*|__)?"
    r"[ \t]*:?(?:\*\*|__)?[ \t]*(?P<what>[^\n]*(?:task|step|#)[^\n]*)$",
    re.IGNORECASE | re.MULTILINE,
)
_FILES = re.compile(
    r"^(?:\*\*|__)?Files?(?:\*\*|__)?:(?:\*\*|__)?[ \t]*\n+((?:[ \t]*- [^\n]*(?:\n|\Z))+)", re.MULTILINE
)
_LONGEST_LEAD = 600
_PHASE = re.compile(r"(?:phase|part|milestone|stage|chapter|sprint|iteration|epic|wave)\b|[0-9]+[.)]", re.IGNORECASE)
_NUMBER = re.compile(r"(?<![\w.])#?([0-9]+(?:\.[0-9]+)*[a-z]?)(?![\w])")


def read_task_plan(text: str, file: str) -> Batch:
    document = _Document(text, TASK_PLAN, file)
    blocks = document.blocks
    heads = _heads(document)
    numbers: dict[str, str] = {}
    phase = ""
    limits = iter([*list(heads)[1:], len(blocks)])
    for at, block in enumerate(blocks):
        if at in heads:
            item = _headed_task(document, at, _end_of_task(blocks, at, next(limits)), heads[at])
            numbers.setdefault(heads[at]["number"].lower(), item.key)
            document.items.append(msgspec.structs.replace(item, phase=phase))
        elif block.kind is Kind.HEADING and not block.depth:
            words = wording.title(document.words(block))
            phase = words if _PHASE.match(words) else ""
    document.items = [_linked(item, numbers) for item in document.items]
    hint = "a task heading is a line such as `### Task 1: Add a login page`"
    return document.batch("no task headings in this plan", hint, _verify_of_all(document, min(heads, default=0)))


def _heads(document: _Document) -> dict[int, re.Match[str]]:
    """The headings of tasks. Steps of a task may have deeper headings, which are not tasks."""
    blocks = document.blocks
    headings = [at for at, block in enumerate(blocks) if block.kind is Kind.HEADING and not block.depth]
    heads = {at: head for at in headings if (head := TASK_HEAD.fullmatch(document.words(blocks[at])))}
    top = min((blocks[at].level for at in heads), default=0)
    return {at: head for at, head in heads.items() if blocks[at].level == top}


def _end_of_task(blocks: list[Block], at: int, limit: int) -> int:
    level = blocks[at].level
    for end in range(at + 1, limit):
        if blocks[end].kind is Kind.HEADING and not blocks[end].depth and blocks[end].level <= level:
            return end
    return limit


def _headed_task(document: _Document, at: int, end: int, head: re.Match[str]) -> Item:
    text, blocks = document.text, document.blocks
    block = blocks[at]
    content = body.read(text, blocks[at + 1 : end], every_item=False)
    raw = head["title"]
    is_ticked = block.box >= 0 and text[block.box] != " "
    is_done = is_ticked or wording.looks_done(raw) or (content.boxes > 0 and content.boxes == content.ticked)
    section = text[block.start : blocks[end].start if end < len(blocks) else len(text)]
    needs = [number for line in _TASK_NEEDS.finditer(section) for number in _NUMBER.findall(line["what"])]
    return Item(
        key=document.unique(head["number"], wording.slug(raw)),
        title=wording.title(raw) or f"Task {head['number']}",
        description=_described(content.description),
        criteria=content.criteria,
        depends_on=tuple(dict.fromkeys(number.lower() for number in needs)),
        state=State.DONE if is_done else State.TODO,
        notes=content.notes,
        verify=content.verify,
        touches=content.touches,
        line=block.line,
    )


def _described(text: str) -> str:
    """Without what other fields hold, and with the files of the task on one line."""
    text = _FILES.sub(lambda found: f"Files: {', '.join(code_spans(found[1])) or wording.line(found[1])}\n", text)
    return wording.prose(_TASK_NEEDS.sub("", text))


def _linked(item: Item, numbers: dict[str, str]) -> Item:
    """Task numbers become keys; a number without a task stays, and is reported later."""
    needs = tuple(numbers.get(number, f"task {number}") for number in item.depends_on)
    return msgspec.structs.replace(item, depends_on=tuple(need for need in needs if need != item.key))


def _verify_of_all(document: _Document, first: int) -> tuple[str, ...]:
    """Commands under a heading such as `## Validation Commands`, before the first task."""
    blocks = document.blocks
    for at, block in enumerate(blocks[:first]):
        if block.kind is Kind.HEADING and body.section_of(document.words(block)) == "verify":
            end = next((n for n in range(at + 1, first) if blocks[n].kind is Kind.HEADING), first)
            return body.read(document.text, blocks[at:end], every_item=False).verify
    return ()


def shortened(item: Item, where: str) -> Item:
    """For a plan that agents can read themselves: what the task is, and where its steps are."""
    lead = re.split(r"```|~~~|^#", item.description, maxsplit=1, flags=re.MULTILINE)[0].strip()
    short = lead if len(lead) <= _LONGEST_LEAD else lead[:_LONGEST_LEAD].rsplit(None, 1)[0] + " …"
    pointer = f"The steps are in {wording.line(where)}, from line {item.line} on."
    return msgspec.structs.replace(item, description="\n\n".join(text for text in (short, pointer) if text))
