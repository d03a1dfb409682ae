"""`.ralph/PRD-N/plan.md`: a checklist of stories, and a block of text for each.

    - [ ] US-001: Title            state TODO
    - [x] US-002: Title            state DONE
    - [ ] (P1) US-004: Title       the ID may be anywhere in the line
    ### US-001: Title              the block of US-001, up to the next story or a heading of the same level
    ### [ ] US-003: Title          item and block in one

The other states, attempts and reviews have no syntax and are kept in the state folder.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_left
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from msgspec import Struct

from ralph.core import problems
from ralph.core.changes import position
from ralph.core.errors import IllegalChange, PlanError
from ralph.core.names import prd_number
from ralph.core.plan import EXAMPLE_TITLE, Plan, State, Story
from ralph.core.ports import Locations, Naming, PlanRef, ProjectFacts, Templates, Traits
from ralph.core.problems import Problem
from ralph.core.text import one_line
from ralph.plans import markdown_edit
from ralph.plans.integrity import problems_of
from ralph.plans.markdown import Block, Kind, scan, with_plain_line_ends
from ralph.plans.markdown_edit import box, heading_text, joined_lines, top_lines, write_body
from ralph.plans.markdown_stories import (
    Dialect,
    Place,
    Reading,
    after_item,
    block_span,
    blocks_below,
    blocks_nested,
    code_span,
    fold,
    item_span,
    line_end,
    name_of,
    read_pieces,
)

NAME = "plan.md"
TITLE = "a numbered PRD with a checklist: .ralph/PRD-N/plan.md, prd.md, progress.md"
SPEAKS = frozenset({"id", "title", "description", "criteria", "depends_on", "state", "notes", "verify", "touches"})
STATES = frozenset({State.TODO, State.DONE})
TRAITS = Traits(
    naming=Naming.NUMBERED,
    claims=False,
    has_phases=True,
    templates=Templates("plan-prompt"),
    ignored=(
        *(".ralph/.checkpoint", ".ralph/.agent-lock", ".ralph/current-story", ".ralph/session.log"),
        *(".ralph/sessions.log", ".ralph/failure-context.log", ".ralph/failure-context.log.1", ".ralph/activity.log"),
        *(".ralph/PRD-*/runs/", ".ralph/locks/", ".ralph/worktrees/"),
    ),
)

_FILE = "plan.md"
ID = re.compile(r"US-[0-9]+")
IDS = re.compile(r"(?<![\w-])[Uu][Ss]-[\w-]*\w")
"""Finds IDs in a line, including invalid ones, which are then reported as unknown."""
_HEAD = re.compile(
    r"[ \t]*(?P<bold>\*\*|__)?(?P<id>US-[0-9]+)(?![^\W_]|-|_(?!_))"
    r"(?(bold)(?:(?P=bold)[ \t]*[:.–—-]?|[ \t]*[:.–—-](?P=bold)|(?P<all>[ \t]*[:.–—-]?))|[ \t]*[:.–—-]?)"
    r"[ \t]*(?P<title>[^\n]*)"
)
_ANYWHERE = re.compile(r"(?P<before>[^\n]*?)(?<![\w-])(?:\*\*|__)?(?P<id>US-[0-9]+)(?![\w-])(?P<after>[^\n]*)")
"""Seed 000 finds a story by `- [ ]` and an ID anywhere after it: `- [ ] (P1) US-006: Log in`."""
_AROUND_TITLE = " \t:.–—-*_()[]"
_LIKE_A_STORY = re.compile(r"[ \t]*(?:\*\*|__)?US-[^ \t\n]*", re.IGNORECASE)


class _Mark(Struct, frozen=True, gc=False):
    """A line that names a story: an item or a heading."""

    index: int
    id: str
    title: tuple[int, int]


class _Marks(Struct, frozen=True):
    """The lines of a plan that name a story, and the checkboxes that do not."""

    text: str
    blocks: list[Block]
    marks: list[_Mark]
    ends: list[int]
    """For each mark, the first block that no longer belongs to it."""
    unclear: list[int]
    """Checkboxes with an invalid ID."""
    unnamed: list[int]
    """Checkboxes without an ID that are not part of a story."""


def write(plan: Plan, phases: Mapping[str, str]) -> str:
    """A checklist, and one block per story. A phase is a heading in the checklist."""
    listed: list[str] = []
    blocks: list[str] = []
    phase = ""
    for story in plan.stories:
        if (now := phases.get(story.id, "")) != phase:
            phase = now
            listed += ["", f"### {heading_text(phase) or 'More'}", ""]
        listed.append(f"- {box(story)} {story.id}: {story.title}")
        blocks += ["", f"### {story.id}: {story.title}", *write_body(story, "", in_block=True)]
    lines = [*top_lines(plan), "## Stories", "", *listed, "", "## Details", *blocks]
    return joined_lines(lines)


def unnamed_boxes(source: bytes) -> list[tuple[int, str]]:
    """Line and text of each open checkbox that is neither a story nor part of one."""
    text = with_plain_line_ends(source.decode())
    marks = _find(text)
    blocks = [marks.blocks[at] for at in marks.unnamed]
    return [(block.line, text[block.box + 2 : block.end]) for block in blocks if text[block.box] == " "]


def story_block(source: bytes, story_id: str) -> str:
    """The text of one story as it is in the plan: its block, or else its item."""
    text = source.decode()
    reading = _read(with_plain_line_ends(text), _FILE)
    place = reading.places[position([place.story for place in reading.places], story_id)]
    start, end = block_span(reading, place) or item_span(reading, place) or (0, 0)
    return text[start:end].rstrip() + "\n"


def detect(root: Path) -> list[PlanRef]:
    base = root / ".ralph"
    if base.is_symlink() or not base.is_dir():
        return []
    with os.scandir(base) as entries:
        names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
    numbers = sorted(int(name[4:]) for name in names if re.fullmatch(r"PRD-[1-9][0-9]{0,8}", name))
    return [ref for ref in (refer(root, str(n)) for n in numbers) if os.path.lexists(ref.path)]


def refer(root: Path, name: str) -> PlanRef:
    number = prd_number(name.removeprefix("PRD-"))
    folder = root / ".ralph" / f"PRD-{number}"
    return PlanRef(NAME, root, folder, folder / _FILE, str(number))


def locations(ref: PlanRef) -> Locations:
    shared, own = ref.root / ".agents" / "ralph" / "PROMPT_simplified.md", ref.folder / "prompt.md"
    return Locations(
        plan=ref.path,
        archive=ref.root / ".ralph" / "archive",
        requirements=ref.folder / "prd.md",
        progress=ref.folder / "progress.md",
        prompt=shared if shared.is_file() else own,
        other_prompts=(shared, own),
    )


def scaffold(ref: PlanRef, facts: ProjectFacts) -> dict[str, str]:
    verify = ", ".join(code_span(command) for command in facts.verify)
    plan = f"""\
# {one_line(facts.name)}

## Stories

- [ ] US-001: {EXAMPLE_TITLE}

## Details

### US-001: {EXAMPLE_TITLE}

As a user, I want … so that …

**Acceptance Criteria:**

- [ ] One thing that can be checked, such as: `app --version` prints 1.0
"""
    if verify:
        plan += f"\nVerify: {verify}\n"
    folder = ref.folder.relative_to(ref.root)
    return {
        str(folder / _FILE): plan,
        str(folder / "progress.md"): f"# Progress: {one_line(facts.name)}\n\nStarted: {facts.date}\n",
    }


def _read(text: str, file: str) -> Reading:
    """Strict. `text` has plain line ends. Raises PlanError with every problem."""
    lines = _find(text)
    blocks, marks = lines.blocks, lines.marks
    wrong: list[Problem] = []
    headings: dict[str, int] = {}
    listed: set[str] = set()

    def report(code: str, message: str, line: int | None, hint: str, story: str = "") -> None:
        wrong.append(Problem(code, message, problems.Place(file, line), hint, story=story))

    for number, mark in enumerate(marks):
        block = blocks[mark.index]
        if block.kind is Kind.ITEM:
            listed.add(mark.id)
        elif mark.id in headings:
            first = blocks[marks[headings[mark.id]].index].line
            message = f"story {mark.id} has a second heading; the first is at line {first}"
            hint = "merge the two blocks, or give one of the stories another ID"
            report("duplicate-block", message, block.line, hint, mark.id)
        else:
            headings[mark.id] = number
    places: list[Place] = []
    for number, mark in enumerate(marks):
        block = blocks[mark.index]
        if block.kind is Kind.ITEM:
            places.append(_place(lines, number, headings.get(mark.id, -1), len(places) + 1))
        elif mark.id not in listed:
            if block.box >= 0:
                places.append(_place(lines, -1, number, len(places) + 1))
            elif headings[mark.id] == number:
                message = f"story {mark.id} has a heading but no checkbox, so it can never be marked as done"
                hint = f"add a line `- [ ] {mark.id}: title` to the list of stories"
                report("no-checkbox", message, block.line, hint, mark.id)
    for block in (blocks[at] for at in lines.unclear):
        written = text[block.box + 2 : line_end(text, block.text)].split()
        word = one_line(written[0].strip("*_:"), 40) if written else ""
        hint = "use US- and a number, e.g. `- [ ] US-001: Log in`"
        report("bad-id", f"{word} is not a valid story ID", block.line, hint, word)
    wrong += problems_of([place.story for place in places], file)
    if not places and not wrong:
        report("no-stories", "the plan has no stories", None, "a story is a line such as `- [ ] US-001: Log in`")
    if wrong:
        raise PlanError.of(sorted(wrong, key=lambda problem: problem.where.line or 0))
    return Reading(text, blocks, places, name_of(text, blocks))


def _find(text: str) -> _Marks:
    blocks = scan(text)
    marks, unclear, unnamed = _marks(text, blocks)
    ends = _ends(blocks, marks)
    others = _outside(unnamed, blocks, marks, ends)
    items = {mark.id for mark in marks if blocks[mark.index].box >= 0}
    loose: list[_Mark] = []
    for index in others:
        mark = _mark_anywhere(text, index, blocks[index])
        if mark is not None and mark.id not in items:  # `- [ ] Test US-001 again` is about a story and is none
            items.add(mark.id)
            loose.append(mark)
    if loose:
        marks = sorted([*marks, *loose], key=lambda mark: mark.index)
        ends = _ends(blocks, marks)
        others = _outside(unnamed, blocks, marks, ends)
        others = [index for index in others if not any(mark.index == index for mark in loose)]
    return _Marks(text, blocks, marks, ends, _outside(unclear, blocks, marks, ends), others)


def _mark_anywhere(text: str, index: int, block: Block) -> _Mark | None:
    """The title is the text after the ID, else the text before it."""
    found = _ANYWHERE.match(text, block.box + 2, block.end)
    if found is None:
        return None
    for name in ("after", "before"):
        part = found[name]
        left = len(part) - len(part.lstrip(_AROUND_TITLE if name == "after" else " \t"))
        right = len(part.rstrip(" \t" if name == "after" else _AROUND_TITLE))
        if right > left:
            return _Mark(index, found["id"], (found.start(name) + left, found.start(name) + right))
    return _Mark(index, found["id"], (found.end("id"), found.end("id")))


def _marks(text: str, blocks: list[Block]) -> tuple[list[_Mark], list[int], list[int]]:
    """The lines that start with a story's ID, those that nearly do, and the other checkboxes."""
    marks: list[_Mark] = []
    unclear: list[int] = []
    unnamed: list[int] = []
    match, heading = _HEAD.match, Kind.HEADING
    for index, block in enumerate(blocks):
        is_heading = block.kind is heading
        if block.box >= 0:
            at = block.box + 2
        elif is_heading:
            at = block.text
        else:
            continue
        if is_heading and block.depth:
            continue
        if found := match(text, at, block.end):
            start, end = found.span("title")
            if end > start and (found["all"] is not None or text[end - 1] in " \t"):
                title = found["title"].rstrip(" \t")
                title = title.removesuffix(found["bold"]) if found["all"] is not None else title
                end = start + len(title.rstrip(" \t"))
            marks.append(_Mark(index, found["id"], (start, end)))
        elif block.box >= 0:
            (unclear if _LIKE_A_STORY.match(text, at, block.end) else unnamed).append(index)
    return marks, unclear, unnamed


def _ends(blocks: list[Block], marks: list[_Mark]) -> list[int]:
    """For each mark, the index of the first block that no longer belongs to it."""
    ends = []
    for number, mark in enumerate(marks):
        block = blocks[mark.index]
        after = number + 1
        if block.kind is Kind.ITEM:
            limit = marks[after].index if after < len(marks) else len(blocks)
            ends.append(after_item(blocks, mark.index, limit))
            continue
        while after < len(marks) and marks[after].id == mark.id and blocks[marks[after].index].kind is Kind.ITEM:
            after += 1
        limit = marks[after].index if after < len(marks) else len(blocks)
        at = mark.index + 1
        while at < limit and not (blocks[at].kind is Kind.HEADING and blocks[at].level <= block.level):
            at += 1
        ends.append(at)
    return ends


def _place(lines: _Marks, item: int, heading: int, number: int) -> Place:
    """The place of a story, and the story. `item` and `heading` are its marks."""
    text, blocks, marks = lines.text, lines.blocks, lines.marks
    at, at_end = (marks[item].index, lines.ends[item]) if item >= 0 else (-1, -1)
    under, under_end = (marks[heading].index, lines.ends[heading]) if heading >= 0 else (-1, -1)
    titles = tuple([marks[n].title for n in (item, heading) if n >= 0])
    body = blocks_below(blocks, under, under_end, at, at_end) if heading >= 0 else []
    in_block = heading >= 0
    if not body and item >= 0:
        body = blocks_nested(text, blocks, at, at_end)
        in_block = in_block and not body
    mark = marks[item if item >= 0 else heading]
    block = blocks[mark.index]
    story = Story(
        id=mark.id,
        title=next((text[start:end] for start, end in titles if end > start), ""),
        priority=number,
        state=State.TODO if text[block.box] == " " else State.DONE,
        line=block.line,
        **fold(read_pieces(text, body, 0 if in_block else blocks[at].depth + 1, IDS)),
    )
    return Place(story, at, at_end, under, under_end, in_block, titles)


def _outside(indexes: list[int], blocks: list[Block], marks: list[_Mark], ends: list[int]) -> list[int]:
    """The blocks that belong to no story. A checkbox inside a story is a criterion."""
    reach: list[int] = []
    for number, mark in enumerate(marks):
        is_own_item = number and blocks[mark.index].kind is Kind.ITEM and marks[number - 1].id == mark.id
        reach.append(max(ends[number], reach[-1]) if is_own_item else ends[number])
    outside = []
    for index in indexes:
        number = bisect_left(marks, index, key=lambda mark: mark.index) - 1
        if number < 0 or index >= reach[number]:
            outside.append(index)
    return outside


def _write_head(story: Story, like: str) -> str:
    if not ID.fullmatch(story.id):
        raise IllegalChange(
            f"{one_line(story.id, 60)} is not a valid story ID in {NAME}", hint="use US- and a number, e.g. US-001"
        )
    bold = like.strip()[:2]
    name = f"{bold}{story.id}{bold}" if bold in ("**", "__") else story.id
    return f"{name}: {story.title}"


_DIALECT = Dialect(NAME, SPEAKS, STATES, IDS, _read, _write_head)
parse = partial(markdown_edit.parse, dialect=_DIALECT)
edit = partial(markdown_edit.edit, dialect=_DIALECT)
salvage = partial(markdown_edit.salvage, dialect=_DIALECT)
