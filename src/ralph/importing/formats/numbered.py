"""Checklists in which each task has a number or an ID: what spec-kit, OpenSpec and Kiro have in common.

    - [ ] 2. Store the users             a task with parts: what it says is repeated in each of them
      - Use one table
      - [x] 2.1 Create the table         a story
        - It has an index                one of its criteria
        - _Requirements: 1.1_            a note
      - [-] 2.2 Read a user              in progress

A part need not be nested in its task: the numbers count. Numbers of more than two parts are criteria.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import zip_longest

import msgspec
from msgspec import Struct

from ralph.core.plan import State
from ralph.importing import body, wording
from ralph.importing.document import MARK, Document, headline
from ralph.importing.records import part_of
from ralph.importing.stories import Batch, Item, plain_key, source_home
from ralph.plans.markdown import Block, Kind
from ralph.plans.markdown_stories import after_item, blocks_nested

NUMBER = re.compile(r"(?P<id>[0-9]+(?:\.[0-9]+)*)(?:[.):]|(?=[ \t]))\*?[ \t]*(?P<title>.*)", re.DOTALL)
_REFERENCE = re.compile(
    r"\**_?\**(?:Requirements?|Validates|Covers|Boundary|Spec|_?Refs?)\b[^:]{0,20}:"
    r"|_[^_:]{3,24}:\s*[0-9][0-9., ]*_\Z",  # the same in another language
    re.IGNORECASE,
)
_NEEDS = re.compile(r"\(?_?\**(?:depends(?: on)?|dependencies|blocked by|requires|needs)\b\**:?", re.IGNORECASE)


_PART = re.compile(r"[0-9]|phase\b|tasks?\Z", re.IGNORECASE)
"""A section of tasks. In others, checkboxes without a number are a list of what to check at the end."""


class Task(Struct):
    at: int
    end: int
    id: str
    title: str
    mark: str
    is_optional: bool
    phase: str
    context: list[int]
    """Blocks."""
    parent: str = ""


class Numbering(Struct, frozen=True, kw_only=True):
    """What differs from one format to the next."""

    kind: str
    id: re.Pattern[str] = NUMBER
    in_progress: str = "-~"
    """Marks of tasks that are not finished; others are dropped."""
    marks: re.Pattern[str] = re.compile(r"\A(?:\(P\)[ \t]*)")
    """Words before a title that say how it may be scheduled."""


def read(text: str, file: str, form: Numbering) -> Document:
    document = Document(text, form.kind, file)
    tasks = list(_tasks(document, form))
    known = {task.id for task in tasks if task.id}
    home = source_home(file)
    items: dict[str, Item] = {}
    parents = {task.id.rpartition(".")[0] for task in tasks if task.id.count(".") == 1} & known
    groups: dict[str, Item] = {}
    for task in tasks:
        document.take(task.at, task.end)
        item = _item(document, task, form, known, home)
        if task.id in parents:
            groups[task.id] = item
            continue
        if task.mark == "-" and "-" not in form.in_progress:
            document.leave_out(item.title, "is marked as dropped", item.line)
            continue
        if item.key in items:
            document.leave_out(item.id, "occurs twice; the first one counts", item.line)
            continue
        items[item.key] = item
    leaves = {own: [key for key, item in items.items() if item.id.startswith(f"{own}.")] for own in groups}
    document.items = [_placed(item, groups, leaves, form.kind, home) for item in items.values()]
    return document


NOTHING = ("no tasks in this file", "a task is a line such as `- [ ] 1.1 Add a login page`")


def batch(text: str, file: str, form: Numbering) -> Batch:
    return read(text, file, form).batch(*NOTHING)


def _tasks(document: Document, form: Numbering) -> Iterator[Task]:
    """Each numbered checkbox, with the blocks up to the next one; and unnumbered ones that are not nested."""
    blocks = document.blocks
    found: list[Task] = []
    level = 0
    context: list[tuple[int, int]] = []
    for at, block in enumerate(blocks):
        if block.kind is Kind.HEADING and not block.depth:
            document.enter(block)
            context = [(level, one) for level, one in context if 1 < level < block.level]
            level = block.level
        elif block.kind is Kind.ITEM and (mark := MARK.match(document.text, block.text)):
            words = document.text[mark.end() : block.end].strip()
            own = form.id.match(words)
            if (own and own["id"].count(".") < 2) or (not own and not block.depth):
                title = own["title"] if own else words
                end = after_item(blocks, at, len(blocks))
                said = [one for _, one in context]
                task = Task(at, end, own["id"] if own else "", title, mark[1], bool(mark[2]), document.phase, said)
                found.append(task)
        elif block.kind is Kind.TEXT and not block.depth and not (found and found[-1].phase == document.phase):
            context.append((level, at))  # what a section says before its first task belongs to each
    with_numbers = {task.phase for task in found if task.id}
    if with_numbers:
        found = [task for task in found if task.id or task.phase in with_numbers or _PART.match(task.phase)]
    for task, after in zip_longest(found, found[1:]):
        if after and after.at < task.end:
            task.end = after.at
        for at in task.context:
            document.take(at, at + 1)
        yield task


def _item(document: Document, task: Task, form: Numbering, known: set[str], home: str) -> Item:
    text, blocks = document.text, document.blocks
    block = blocks[task.at]
    first, is_all = headline(task.title)
    title = form.marks.sub("", first.strip())
    inner = blocks_nested(text, blocks, task.at, task.end)[is_all:]
    needs, references, kept = _sorted(text, inner, known)
    needs += _ids(title, known) if _NEEDS.search(title) else []
    content = body.read(text, kept, every_item=True)
    context = wording.prose("\n\n".join(document.words(blocks[at]) for at in task.context))
    optional = "Optional in its source." if task.is_optional else ""
    short = wording.title(title) or "(no title)"
    cut = wording.line(title) if short.endswith("…") else ""
    return Item(
        key=plain_key(f"{form.kind}:{home}#{task.id}") if task.id else document.unique(task.phase, wording.slug(title)),
        id=task.id,
        title=short,
        description="\n\n".join(filter(None, (cut, content.description, context))),
        criteria=content.criteria,
        depends_on=tuple(plain_key(f"{form.kind}:{home}#{own}") for own in dict.fromkeys(needs) if own != task.id),
        state=State.DONE if task.mark in "xX" else State.TODO,
        notes="\n".join(filter(None, (content.notes, *references, optional))),
        verify=content.verify,
        phase=task.phase,
        line=block.line,
    )


def _sorted(text: str, inner: list[Block], known: set[str]) -> tuple[list[str], list[str], list[Block]]:
    """Dependencies, references to requirements, and the rest."""
    needs: list[str] = []
    references: list[str] = []
    kept: list[Block] = []
    for block in inner:
        words = wording.line(text[block.text : block.end])
        if block.kind is not Kind.OTHER and _NEEDS.match(words) and (found := _ids(words, known)):
            needs += found
        elif block.kind is not Kind.OTHER and _REFERENCE.match(words):
            references.append(words.strip("_* "))
        else:
            kept.append(block)
    return needs, references, kept


def _ids(words: str, known: set[str]) -> list[str]:
    after = words[found.end() :].replace("_", " ") if (found := _NEEDS.search(words)) else ""
    return [own for own in re.findall(r"(?<![\w.])T?[0-9]+(?:\.[0-9]+)*[a-z]?(?!\w|\.[0-9])", after) if own in known]


def _placed(item: Item, groups: dict[str, Item], leaves: dict[str, list[str]], kind: str, home: str) -> Item:
    """A part of a group says what the group says, and waits for what it waits for."""
    group = groups.get(item.id.rpartition(".")[0])
    needs = (*item.depends_on, *(group.depends_on if group else ()))
    keys = {plain_key(f"{kind}:{home}#{own}"): parts for own, parts in leaves.items()}
    flat = [leaf for need in needs for leaf in keys.get(need, [need]) if leaf != item.key]
    item = msgspec.structs.replace(item, depends_on=tuple(dict.fromkeys(flat)))
    if not group:
        return item
    said = "\n\n".join(
        filter(None, (group.description, "\n".join(f"- {words}" for words in group.criteria), group.notes))
    )
    phase = " › ".join(filter(None, (group.phase, group.title)))
    return part_of(msgspec.structs.replace(item, phase=phase), msgspec.structs.replace(group, description=said))
