"""BMAD: a file for each story, `# Story 1.2: …`, with a status, acceptance criteria and tasks.

Its tasks say how to do it: they are part of the description. What the developer recorded is left out.
"""

from __future__ import annotations

import re

import msgspec

from ralph.core.plan import State
from ralph.importing import wording
from ralph.importing.document import Document
from ralph.importing.sample import Sample
from ralph.importing.stories import Batch, Item, plain_key, remark
from ralph.importing.wording import Fate
from ralph.plans.markdown import Block, Kind

_HEAD = re.compile(
    r"(?:User )?Story[ \t]*:?[ \t]*(?P<number>[0-9]+[.-][0-9]+[a-z]?(?:[.-][0-9]+)?)[ \t]*[:.–—-]*[ \t]*(?P<title>.*)",
    re.IGNORECASE | re.DOTALL,
)
_STORY = re.compile(r"^#[ \t]+(?:User )?Story[ \t]*:?[ \t]*[0-9]+[.-][0-9]+", re.MULTILINE | re.IGNORECASE)
_SECTION = re.compile(
    r"^##[ \t]+(?:Story\b|User Story\b|Acceptance Criteria|Tasks\b|Status)", re.MULTILINE | re.IGNORECASE
)
_STATUS = re.compile(
    r"^(?:#{1,4}[ \t]+|[-*][ \t]+)?\**Status\**[ \t]*"
    r"(?::\**[ \t]*(?P<same>[^\n]*\S)|:?\**[ \t]*\n+[ \t]*(?P<next>[^\n#]*\S))",
    re.MULTILINE | re.IGNORECASE,
)
_FIELDS = {
    "status": "status",
    "story": "story|user story|story statement",
    "criteria": r"acceptance criteria(?: \(acs?\))?",
    "tasks": r"tasks(?: ?/ ?subtasks| and subtasks)?|implementation tasks",
    "notes": r"dev(?:eloper)? notes?|dev technical (?:guidance|reference)|technical notes|testing|dependencies|context"
    "|technical requirements|references",
}
_CRITERION = re.compile(r"\W*(?:AC\W{0,2}[0-9]+|Given\b|Scenario\b)", re.IGNORECASE)
_NUMBERED = re.compile(r"\W*AC\W{0,2}[0-9]+", re.IGNORECASE)
_LONGEST = 8000


def recognise(sample: Sample) -> bool:
    return sample.has(_STORY) and sample.has(_SECTION)


def read(text: str, file: str) -> Batch:
    document = Document(text, "bmad", file)
    sections = _sections(document)
    head = next(
        (found for block in document.blocks if block.level == 1 and (found := _HEAD.fullmatch(document.words(block)))),
        None,
    )
    number = head["number"].replace("-", ".") if head else ""
    title = wording.title(head["title"] if head else document.title)
    stated = _STATUS.search(document.text)
    status = wording.line((stated["same"] or stated["next"]).strip("*_ ")) if stated else ""
    fate = wording.fate(status)
    if fate is Fate.UNKNOWN:
        line = document.text[: stated.start()].count("\n") + 1 if stated else 1
        document.left.append(remark("left-out", f"the status {status[:60]!r}; the story is open", file, line))
    for at, block in enumerate(document.blocks):
        if stated and stated.start() <= block.start < stated.end():
            document.take(at, at + 1)
    if fate is Fate.GONE:
        left = remark("left-out", f"{number or title!r} is {status.lower()}", file, 1)
        return Batch(kind="bmad", file=file, items=(), left=(left,))
    wanted = sections.get("criteria", [])
    description = [
        _said(document, sections.get("story", [])),
        _titled("Shown in the criteria", _said(document, [b for b in wanted if b.kind is Kind.OTHER])),
        _titled("Tasks", _said(document, sections.get("tasks", []))),
        _titled("Notes", _said(document, sections.get("notes", []))[:_LONGEST]),
    ]
    document.items = [
        Item(
            key=plain_key(f"bmad:{number or file.rpartition('/')[2]}"),
            id=number,
            title=title,
            description=wording.prose("\n\n".join(filter(None, description))),
            criteria=tuple(_criteria(document, wanted)),
            state={Fate.DONE: State.DONE, Fate.BLOCKED: State.BLOCKED}.get(fate, State.TODO),
            line=1,
        )
    ]
    return msgspec.structs.replace(
        document.batch("no story in this file", "a story starts with `# Story 1.1: …`"), name=""
    )


def _sections(document: Document) -> dict[str, list[Block]]:
    found: dict[str, list[Block]] = {}
    for at, block in enumerate(document.blocks):
        if block.kind is not Kind.HEADING or block.level not in (2, 3) or document.taken[at]:
            continue
        title = wording.title(document.words(block)).split("{")[0].strip().lower()
        field = next((name for name, words in _FIELDS.items() if re.fullmatch(words, title)), "")
        if field:
            end = document.end_of_section(at)
            found.setdefault(field, []).extend(document.blocks[at + 1 : end])
            document.take(at, end)
    return found


def _said(document: Document, blocks: list[Block]) -> str:
    lines = [document.text[block.start : block.end].rstrip() for block in blocks]
    return wording.prose(wording.without_comments("\n".join(lines)))


def _titled(title: str, said: str) -> str:
    return f"{title}:\n\n{said}" if said else ""


def _criteria(document: Document, blocks: list[Block]) -> list[str]:
    """An item with what is nested in it, or a heading or line `AC1: …` with the items below it, is one criterion."""
    found: list[list[str]] = []
    leads = False
    lead = _NUMBERED if any(_NUMBERED.match(document.words(block)) for block in blocks) else _CRITERION
    for block in blocks:
        words = wording.unwrapped(wording.line(re.sub(r"^\[[ xX]\]\s+", "", document.words(block))))
        if block.kind is Kind.OTHER or not words.strip("-*_ "):
            continue
        is_lead = block.kind is not Kind.ITEM and bool(lead.match(words))
        if found and (block.depth or (leads and not is_lead)):
            found[-1].append(words)
        else:
            found.append([words])
        leads = is_lead or (leads and bool(block.depth or not is_lead))
    return [f"{lead.rstrip(':')}: {'; '.join(rest)}" if rest else lead for lead, *rest in found]
