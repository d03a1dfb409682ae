"""Plans with a heading per task, as in `docs/plans/*.md` of other tools: `### Task 3: Title`, steps, commands."""

from __future__ import annotations

import re

import msgspec

from ralph.core.errors import BadData
from ralph.core.plan import State
from ralph.core.problems import Place
from ralph.plans.importing import body, wording
from ralph.plans.importing.checklist import name_of
from ralph.plans.importing.found import Batch, Item, text_key
from ralph.plans.markdown import Block, Kind, scan, with_plain_line_ends
from ralph.plans.markdown_stories import code_spans

KIND = "plans"
TITLE = "docs/plans/*.md: a heading per task, `### Task 1: …`, with steps below it"

HEAD = re.compile(
    r"(?:\[[ xX]\][ \t]*)?(?:\*\*)?(?:task|step|story|work item)[ \t]+#?(?P<number>[0-9]+(?:\.[0-9]+)*[a-z]?)(?:\*\*)?"
    r"[ \t]*[:.)–—-]*[ \t]*(?P<title>.*)",
    re.IGNORECASE | re.DOTALL,
)
_NEEDS = re.compile(
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


def read(text: str, file: str) -> Batch:
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
        end = _end(blocks, at, limits[len(items)])
        item = _task(text, blocks, at, end, found, file, phase)
        seen[item.key] = seen.get(item.key, 0) + 1
        if seen[item.key] > 1:
            item = msgspec.structs.replace(item, key=f"{item.key}-{seen[item.key]}")
        numbers.setdefault(found["number"].lower(), item.key)
        items.append(item)
    linked = [_linked(item, numbers) for item in items]
    verify = _verify_of_all(text, blocks, heads[0][0])
    return Batch(kind=KIND, file=file, items=tuple(linked), name=name_of(text, blocks), verify=verify)


def _heads(text: str, blocks: list[Block]) -> list[tuple[int, re.Match[str]]]:
    """The headings of tasks. Steps of a task may have deeper headings, which are not tasks."""
    found = []
    for at, block in enumerate(blocks):
        if block.kind is Kind.HEADING and not block.depth and (head := HEAD.fullmatch(text[block.text : block.end])):
            found.append((at, head))
    top = min((blocks[at].level for at, _ in found), default=0)
    return [(at, head) for at, head in found if blocks[at].level == top]


def _end(blocks: list[Block], at: int, limit: int) -> int:
    level = blocks[at].level
    end = at + 1
    while end < limit and not (
        blocks[end].kind is Kind.HEADING and not blocks[end].depth and blocks[end].level <= level
    ):
        end += 1
    return end


def _task(text: str, blocks: list[Block], at: int, end: int, head: re.Match[str], file: str, phase: str) -> Item:
    block = blocks[at]
    found = body.read(text, blocks[at + 1 : end], every_item=False)
    raw = head["title"]
    title = wording.title(raw) or f"Task {head['number']}"
    is_ticked = block.box >= 0 and text[block.box] != " "
    is_done = is_ticked or wording.looks_done(raw) or (found.boxes > 0 and found.boxes == found.ticked)
    section = text[block.start : blocks[end].start if end < len(blocks) else len(text)]
    needs = [number for line in _NEEDS.finditer(section) for number in _NUMBER.findall(line["what"])]
    return Item(
        key=text_key(KIND, file, head["number"], wording.slug(raw)),
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
    return wording.prose(_NEEDS.sub("", text))


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
