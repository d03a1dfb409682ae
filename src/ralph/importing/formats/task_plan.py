"""Plans with a heading for each task and steps below it: docs/plans of ralphex and superpowers, epics of BMAD."""

from __future__ import annotations

import re
from itertools import pairwise

import msgspec

from ralph.core.plan import State
from ralph.importing import body, wording
from ralph.importing.document import BOX, Document
from ralph.importing.formats import bmad
from ralph.importing.sample import Sample
from ralph.importing.stories import Batch, Item
from ralph.plans.markdown import Kind
from ralph.plans.markdown_stories import code_spans

_NUMBERED = (
    r"(?:\[[ xX]\][ \t]*)?(?:\*\*)?(?:{words})[ \t]+#?(?P<number>[0-9]+(?:[.-][0-9]+)*[a-z]?)"
    r"(?:\*\*)?[ \t]*[:.)–—-]*[ \t]*"
    r"(?P<title>.*)"
)
_FLAGS = re.IGNORECASE | re.DOTALL
HEADS = (
    re.compile(_NUMBERED.format(words="task|step|story|work item"), _FLAGS),
    re.compile(_NUMBERED.format(words="iteration|increment"), _FLAGS),
    re.compile(r"(?:\[[ xX]\][ \t]*)?(?P<number>[0-9]+(?:\.[0-9]+)*)[.):]?[ \t]+(?P<title>.*)", re.DOTALL),
)
"""How a heading names a task. The first form that a file uses counts. The last one: only under a heading of tasks."""
TASKS = re.compile(
    r"(?:the |implementation |development )?(?:tasks?|steps?|changes|iterations|work items)(?: list| breakdown)?"
    r"|implementation(?: plan| order)?|plan",
    re.IGNORECASE,
)
_TASK = re.compile(
    rf"^#{{1,6}}[ \t]+{_NUMBERED.format(words='task|step|story|work item|iteration|increment')}$".replace(
        ".*)", "[^\n]*)"
    ),
    re.MULTILINE | re.IGNORECASE,
)
_SECTION = re.compile(
    rf"^##?[ \t]+(?:{TASKS.pattern})[ \t]*\n(?:(?!##? ).*\n)*?###[ \t]+1[.):][ \t]+\S", re.MULTILINE | re.IGNORECASE
)
_NEEDS = re.compile(
    r"^[ \t]*(?:[-*+][ \t]+)?(?:\*\*|__)?(?:depends[ \t]+on|dependenc(?:y|ies)|blocked[ \t]+by|requires|prerequisites?)"
    r"(?:\*\*|__)?[ \t]*:?(?:\*\*|__)?[ \t]*(?P<what>[^\n]*(?:task|step|story|iteration|#)[^\n]*)$",
    re.IGNORECASE | re.MULTILINE,
)
_FILES = re.compile(
    r"^(?:\*\*|__)?Files?(?:\*\*|__)?:(?:\*\*|__)?[ \t]*\n+((?:[ \t]*- [^\n]*(?:\n|\Z))+)", re.MULTILINE
)
_LONGEST_LEAD = 600
_PHASE = re.compile(r"(?:phase|part|milestone|stage|chapter|sprint|iteration|epic|wave)\b|[0-9]+[.)]", re.IGNORECASE)
PHASE = re.compile(
    r"(?:phase|stage|milestone|step)[ \t]+#?(?P<number>[0-9]+(?:\.[0-9]+)*[a-z]?)[ \t]*[.):–—-]*[ \t]*(?P<title>.*)",
    _FLAGS,
)
_NUMBER = re.compile(r"(?<![\w.])#?([0-9]+(?:[.-][0-9]+)*[a-z]?)(?![\w])")


def recognise(sample: Sample) -> bool:
    if bmad.recognise(sample):
        return False
    return sample.has(_TASK) or (sample.has(_SECTION) and sample.has(BOX))


def read(text: str, file: str) -> Batch:
    document = Document(text, "plans", file)
    return read_headed(document, heads_of(document))


def read_headed(document: Document, heads: dict[int, re.Match[str]]) -> Batch:
    blocks = document.blocks
    numbers: dict[str, str] = {}
    phase = ""
    following = dict(pairwise(sorted(heads)))
    for at, block in enumerate(blocks):
        if at in heads:
            end = min(document.end_of_section(at), following.get(at, len(blocks)))
            item = _headed_task(document, at, end, heads[at])
            document.take(at, end)
            numbers.setdefault(heads[at]["number"].lower(), item.key)
            document.items.append(msgspec.structs.replace(item, phase=phase))
        elif block.kind is Kind.HEADING and not block.depth:
            words = wording.title(document.words(block))
            phase = words if _PHASE.match(words) else ""
    document.items = [_linked(item, numbers) for item in document.items]
    hint = "a task heading is a line such as `### Task 1: Add a login page`"
    return document.batch("no task headings in this plan", hint, _verify_of_all(document, heads))


def heads_of(document: Document) -> dict[int, re.Match[str]]:
    """The headings of tasks. Steps of a task may have deeper headings, which are not tasks."""
    blocks = document.blocks
    headings = [at for at, block in enumerate(blocks) if block.kind is Kind.HEADING and not block.depth]
    for form in HEADS:
        listed = headings if form is not HEADS[-1] else _under_tasks(document, headings)
        heads = {at: head for at in listed if (head := form.fullmatch(document.words(blocks[at])))}
        top = min((blocks[at].level for at in heads), default=0)
        if heads:
            tasks = {at: head for at, head in heads.items() if blocks[at].level == top}
            return tasks | _phases_without(document, tasks, headings)
    return {}


def _phases_without(
    document: Document, tasks: dict[int, re.Match[str]], headings: list[int]
) -> dict[int, re.Match[str]]:
    """Numbered phases that are not broken down into tasks, if others of their level are."""
    blocks = document.blocks
    phases = {at: head for at in headings if at not in tasks and (head := PHASE.fullmatch(document.words(blocks[at])))}
    inner = {at: any(at < task < document.end_of_section(at) for task in tasks) for at in phases}
    levels = {blocks[at].level for at, has_tasks in inner.items() if has_tasks}
    return {at: head for at, head in phases.items() if not inner[at] and blocks[at].level in levels}


def _under_tasks(document: Document, headings: list[int]) -> list[int]:
    found: list[int] = []
    for at in headings:
        if TASKS.fullmatch(wording.title(document.words(document.blocks[at]))):
            end = document.end_of_section(at)
            found += [inner for inner in headings if at < inner < end]
    return sorted(set(found))


def _headed_task(document: Document, at: int, end: int, head: re.Match[str]) -> Item:
    text, blocks = document.text, document.blocks
    block = blocks[at]
    content = body.read(text, blocks[at + 1 : end], every_item=False)
    raw = head["title"]
    is_ticked = block.box >= 0 and text[block.box] != " "
    is_done = is_ticked or wording.looks_done(raw) or (content.boxes > 0 and content.boxes == content.ticked)
    section = text[block.start : blocks[end].start if end < len(blocks) else len(text)]
    needs = [number for line in _NEEDS.finditer(section) for number in _NUMBER.findall(line["what"])]
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
    return wording.prose(_NEEDS.sub("", text))


def _linked(item: Item, numbers: dict[str, str]) -> Item:
    """Task numbers become keys; a number without a task stays, and is reported later."""
    needs = tuple(numbers.get(number, f"task {number}") for number in item.depends_on)
    return msgspec.structs.replace(item, depends_on=tuple(need for need in needs if need != item.key))


def _verify_of_all(document: Document, heads: dict[int, re.Match[str]]) -> tuple[str, ...]:
    """Commands under a heading such as `## Validation Commands`, beside the tasks."""
    blocks = document.blocks
    level = min((blocks[at].level for at in heads), default=0)
    found: dict[str, None] = {}
    for at, block in enumerate(blocks):
        if block.kind is Kind.HEADING and block.level <= level and body.section_of(document.words(block)) == "verify":
            end = min([document.end_of_section(at), *(task for task in heads if task > at)])
            commands = body.read(document.text, blocks[at:end], every_item=False).verify
            found.update(dict.fromkeys(commands))
            if commands and len(commands) == sum(one.kind in (Kind.ITEM, Kind.OTHER) for one in blocks[at:end]):
                document.take(at, end)
    return tuple(found)


def shortened(item: Item, where: str) -> Item:
    """For a plan that agents can read themselves: what the task is, and where its steps are."""
    lead = re.split(r"```|~~~|^#", item.description, maxsplit=1, flags=re.MULTILINE)[0].strip()
    short = lead if len(lead) <= _LONGEST_LEAD else lead[:_LONGEST_LEAD].rsplit(None, 1)[0] + " …"
    pointer = f"The steps are in {wording.line(where)}, from line {item.line} on."
    return msgspec.structs.replace(item, description="\n\n".join(text for text in (short, pointer) if text))
