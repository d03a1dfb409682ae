"""Tasks in Markdown: checklists, `fix_plan.md` with its bullets, and plans with a heading per task."""

from __future__ import annotations

import re

import msgspec

from ralph.core.errors import BadData
from ralph.core.plan import State
from ralph.core.problems import Place, Problem
from ralph.importing import body, wording
from ralph.importing.stories import Batch, Item, remark, text_key
from ralph.plans.markdown import Block, Kind, scan, with_plain_line_ends
from ralph.plans.markdown_stories import after_item, blocks_nested, code_spans

CHECKLIST = "checklist"
CHECKLIST_TITLE = "a Markdown checklist, with headings as parts of the work"

_MARK = re.compile(r"\[([-~/>!?*])\](?=[ \t])")
"""Marks that some tools use beside `[ ]` and `[x]`: `[-]` is dropped, the others are open."""
_DROPPED = re.compile(r"\[-\](?=[ \t])")


class _Outline:
    """The position in a document: the headings, and list items that only group others."""

    def __init__(self) -> None:
        self._headings: list[tuple[int, str]] = []
        self._groups: list[tuple[int, str]] = []

    def enter(self, level: int, words: str) -> None:
        self._groups = []
        self._headings = [one for one in self._headings if one[0] < level] + [(level, wording.title(words))]

    def group(self, depth: int, words: str) -> None:
        self.leave(depth)
        self._groups.append((depth, wording.title(words)))

    def leave(self, depth: int) -> None:
        self._groups = [one for one in self._groups if one[0] < depth]

    @property
    def path(self) -> tuple[str, ...]:
        return tuple(words for _, words in (*self._headings, *self._groups))

    @property
    def phase(self) -> str:
        """Without the title of the document."""
        inner = [words for level, words in self._headings if level > 1] + [words for _, words in self._groups]
        return " › ".join(inner)


def read_checklist(text: str, file: str) -> Batch:
    text = with_plain_line_ends(text)
    blocks = scan(text)
    outline = _Outline()
    items: list[Item] = []
    problems: list[Problem] = []
    seen: dict[str, int] = {}
    at = 0
    while at < len(blocks):
        block = blocks[at]
        if block.kind is Kind.HEADING and not block.depth:
            outline.enter(block.level, text[block.text : block.end])
        elif block.kind is Kind.ITEM:
            end = after_item(blocks, at, len(blocks))
            outline.leave(block.depth)
            mark = _MARK.match(text, block.text)
            if mark and mark[1] == "-":
                words = wording.title(text[mark.end() : block.end])
                problems.append(remark("left-out", f"left out: {words!r} is marked as dropped", file, block.line))
                at = end
                continue
            if block.box >= 0 or mark:
                items.append(_listed_task(text, blocks, at, end, outline, seen, CHECKLIST, file))
                at = end
                continue
            if any(inner.box >= 0 for inner in blocks[at + 1 : end]):
                outline.group(block.depth, text[block.text : block.end].split("\n")[0])
        at += 1
    if not items:
        raise BadData(
            "no tasks in this checklist",
            where=Place(file),
            hint="a task is a line such as `- [ ] Add a login page`",
        )
    return Batch(kind=CHECKLIST, file=file, items=tuple(items), name=_name_of(text, blocks), problems=tuple(problems))


def _listed_task(
    text: str,
    blocks: list[Block],
    at: int,
    end: int,
    outline: _Outline,
    seen: dict[str, int],
    kind: str,
    file: str,
    *,
    is_done: bool = False,
    priority: float = 0,
) -> Item:
    """The item at `at`, with everything nested in it up to `end`."""
    block = blocks[at]
    raw = text[block.text : min(block.end, block.text + wording.LONGEST_TEXT)].split("\n")[0]
    if block.box >= 0 or _MARK.match(raw):
        is_done = is_done or text[block.text + 1] in "xX"
        raw = raw[3:].lstrip()
    found = body.read(text, blocks_nested(text, blocks, at, end), every_item=True)
    title = wording.title(raw) or "(no title)"
    key = text_key(kind, file, *outline.path, wording.slug(raw))
    seen[key] = seen.get(key, 0) + 1
    return Item(
        key=key if seen[key] == 1 else f"{key}-{seen[key]}",
        title=title,
        description=_longer(raw, title, found.description),
        criteria=found.criteria,
        priority=priority,
        state=State.DONE if is_done or wording.looks_done(raw) else State.TODO,
        notes=found.notes,
        verify=found.verify,
        phase=outline.phase,
        line=block.line,
    )


def _longer(raw: str, title: str, description: str) -> str:
    """If the title had to be cut, the description starts with all of it."""
    return f"{wording.line(raw)}\n\n{description}".strip() if title.endswith("…") else description


def _name_of(text: str, blocks: list[Block]) -> str:
    first = next((block for block in blocks if block.kind is Kind.HEADING and not block.depth), None)
    return wording.title(text[first.text : first.end]) if first and first.level == 1 else ""


FIX_PLAN = "fix_plan"
FIX_PLAN_TITLE = "fix_plan.md: bullets in order of importance, with or without checkboxes"

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
    text = with_plain_line_ends(text)
    blocks = scan(text)
    outline = _Outline()
    items: list[Item] = []
    problems: list[Problem] = []
    seen: dict[str, int] = {}
    section, priority = "", 0
    boxes = _has_boxes(blocks, 0)
    at = 0
    while at < len(blocks):
        block = blocks[at]
        if block.kind is Kind.HEADING and not block.depth:
            section = text[block.text : block.end]
            outline.enter(block.level, section)
            priority = level_of(section)
            boxes = _has_boxes(blocks, at + 1)
        elif block.kind is Kind.ITEM and not block.depth:
            end = after_item(blocks, at, len(blocks))
            words = wording.title(text[block.text : block.end].split("\n")[0])
            if _DROPPED.match(text, block.text):
                problems.append(remark("left-out", f"left out: {words!r} is marked as dropped", file, block.line))
            elif block.box < 0 and (boxes or _NO_TASKS.search(section)):
                why = (
                    "has no checkbox, but others in the section do" if boxes else f"is under {wording.title(section)!r}"
                )
                problems.append(remark("left-out", f"left out: {words!r} {why}", file, block.line))
            else:
                done = bool(_DONE.search(section)) and not priority
                items.append(
                    _listed_task(text, blocks, at, end, outline, seen, FIX_PLAN, file, is_done=done, priority=priority)
                )
            at = end
            continue
        at += 1
    if not items:
        raise BadData(
            "no tasks in this file", where=Place(file), hint="a task is a bullet such as `- Fix the login page`"
        )
    return Batch(
        kind=FIX_PLAN, file=file, items=tuple(_ranked(items)), name=_name_of(text, blocks), problems=tuple(problems)
    )


def _has_boxes(blocks: list[Block], start: int) -> bool:
    """Whether a bullet of the section that starts here has a checkbox; then those without one are remarks."""
    for block in blocks[start:]:
        if block.kind is Kind.HEADING and not block.depth:
            return False
        if block.kind is Kind.ITEM and not block.depth and block.box >= 0:
            return True
    return False


def _ranked(items: list[Item]) -> list[Item]:
    """By importance; within a section in file order."""
    return sorted(items, key=lambda item: item.priority or 3) if any(item.priority for item in items) else items


def is_fix_plan(file: str) -> bool:
    return wording.slug(file.rpartition("/")[2].removesuffix(".md")) == "fix plan"


TASK_PLAN = "plans"
TASK_PLAN_TITLE = "docs/plans/*.md: a heading per task, `### Task 1: …`, with steps below it"

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
    text = with_plain_line_ends(text)
    blocks = scan(text)
    heads = _heads(text, blocks)
    if not heads:
        raise BadData(
            "no task headings in this plan",
            where=Place(file),
            hint="a task heading is a line such as `### Task 1: Add a login page`",
        )
    items: list[Item] = []
    numbers: dict[str, str] = {}
    seen: dict[str, int] = {}
    phase = ""
    starts = {at for at, _ in heads}
    limits = [*(at for at, _ in heads[1:]), len(blocks)]
    at_head = dict(heads)
    for at, block in enumerate(blocks):
        if at not in starts:
            if block.kind is Kind.HEADING and not block.depth:
                words = wording.title(text[block.text : block.end])
                phase = words if _PHASE.match(words) else ""
            continue
        found = at_head[at]
        end = _end_of_task(blocks, at, limits[len(items)])
        item = _headed_task(text, blocks, at, end, found, file, phase)
        seen[item.key] = seen.get(item.key, 0) + 1
        if seen[item.key] > 1:
            item = msgspec.structs.replace(item, key=f"{item.key}-{seen[item.key]}")
        numbers.setdefault(found["number"].lower(), item.key)
        items.append(item)
    linked = [_linked(item, numbers) for item in items]
    verify = _verify_of_all(text, blocks, heads[0][0])
    return Batch(kind=TASK_PLAN, file=file, items=tuple(linked), name=_name_of(text, blocks), verify=verify)


def _heads(text: str, blocks: list[Block]) -> list[tuple[int, re.Match[str]]]:
    """The headings of tasks. Steps of a task may have deeper headings, which are not tasks."""
    found = []
    for at, block in enumerate(blocks):
        if (
            block.kind is Kind.HEADING
            and not block.depth
            and (head := TASK_HEAD.fullmatch(text[block.text : block.end]))
        ):
            found.append((at, head))
    top = min((blocks[at].level for at, _ in found), default=0)
    return [(at, head) for at, head in found if blocks[at].level == top]


def _end_of_task(blocks: list[Block], at: int, limit: int) -> int:
    level = blocks[at].level
    end = at + 1
    while end < limit and not (
        blocks[end].kind is Kind.HEADING and not blocks[end].depth and blocks[end].level <= level
    ):
        end += 1
    return end


def _headed_task(text: str, blocks: list[Block], at: int, end: int, head: re.Match[str], file: str, phase: str) -> Item:
    block = blocks[at]
    found = body.read(text, blocks[at + 1 : end], every_item=False)
    raw = head["title"]
    title = wording.title(raw) or f"Task {head['number']}"
    is_ticked = block.box >= 0 and text[block.box] != " "
    is_done = is_ticked or wording.looks_done(raw) or (found.boxes > 0 and found.boxes == found.ticked)
    section = text[block.start : blocks[end].start if end < len(blocks) else len(text)]
    needs = [number for line in _TASK_NEEDS.finditer(section) for number in _NUMBER.findall(line["what"])]
    return Item(
        key=text_key(TASK_PLAN, file, head["number"], wording.slug(raw)),
        title=title,
        description=_described(found.description),
        criteria=found.criteria,
        depends_on=tuple(dict.fromkeys(number.lower() for number in needs)),
        state=State.DONE if is_done else State.TODO,
        notes=found.notes,
        verify=found.verify,
        phase=phase,
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


def _verify_of_all(text: str, blocks: list[Block], first: int) -> tuple[str, ...]:
    """Commands under a heading such as `## Validation Commands`, before the first task."""
    for at, block in enumerate(blocks[:first]):
        if block.kind is Kind.HEADING and body.section_of(text[block.text : block.end]) == "verify":
            end = next((n for n in range(at + 1, first) if blocks[n].kind is Kind.HEADING), first)
            return body.read(text, blocks[at:end], every_item=False).verify
    return ()


def shortened(item: Item, where: str) -> Item:
    """For a plan that agents can read themselves: what the task is, and where its steps are."""
    lead = re.split(r"```|~~~|^#", item.description, maxsplit=1, flags=re.MULTILINE)[0].strip()
    short = lead if len(lead) <= _LONGEST_LEAD else lead[:_LONGEST_LEAD].rsplit(None, 1)[0] + " …"
    pointer = f"The steps are in {wording.line(where)}, from line {item.line} on."
    return msgspec.structs.replace(item, description="\n\n".join(text for text in (short, pointer) if text))
