"""`.ralph/spec.md`: a short index of steps; the details of a step are in its bead, or nested below it.

    - [ ] **1.1** Title [TASK-abc]     state TODO, tracked as bead TASK-abc
    - [x] **1.2** Title                state DONE
    - [ ] **1.R** Review: …            a step that reviews the ones before it; so does one with `Mode: review` below it

The other states, attempts and reviews have no syntax and are kept in the state folder. Every session reads prompt,
readme and spec, so they have a token budget.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from msgspec import Struct

from ralph.core import problems
from ralph.core.errors import IllegalChange, PlanError
from ralph.core.names import safe_name
from ralph.core.plan import EXAMPLE_TITLE, Plan, State, Story
from ralph.core.ports import Locations, Naming, PlanRef, ProjectFacts, Templates, Traits
from ralph.core.problems import Problem
from ralph.core.text import estimate_tokens, one_line
from ralph.plans import markdown_edit
from ralph.plans.integrity import problems_of
from ralph.plans.markdown import Block, Kind, scan, with_plain_line_ends
from ralph.plans.markdown_edit import box, heading_text, joined_lines, top_lines, write_body
from ralph.plans.markdown_stories import (
    Dialect,
    Place,
    Reading,
    after_item,
    blocks_nested,
    code_span,
    fold,
    name_of,
    read_pieces,
)

NAME = "spec.md"
TITLE = "an index of steps, with beads: .ralph/spec.md, .ralph/readme.md, prompt.md"
SPEAKS = frozenset(
    {"id", "title", "description", "criteria", "depends_on", "state", "notes", "verify", "touches", "ref"}
)
STATES = frozenset({State.TODO, State.DONE})
BUDGETS = {"prompt": 450, "readme": 550, "spec": 4000}
TRAITS = Traits(
    naming=Naming.SINGLE,
    has_phases=True,
    has_tracker=True,
    waits_by_file=True,
    templates=Templates("spec-prompt"),
    reads=("plan", "readme"),
    budgets={"prompt": BUDGETS["prompt"], "readme": BUDGETS["readme"], "plan": BUDGETS["spec"]},
    ignored=(".ralph/COMPLETE",),
    leftovers=("COMPLETE", "WAITING"),
)

_FILE = "spec.md"
_STEP = r"[0-9]+(?:\.[0-9]+)*\.(?:[0-9]+|R[0-9]*)"
ID = re.compile(_STEP)
_IDS = re.compile(rf"(?<![\w.]){_STEP}(?![\w])(?!\.\w)")
_HEAD = re.compile(
    rf"[ \t]*(?P<bold>\*\*|__)(?P<id>{_STEP})(?:(?P=bold)[ \t]*:?|:(?P=bold))(?![^ \t\n])[ \t]*(?P<title>[^\n]*)"
)
_LIKE_A_STEP = re.compile(r"[ \t]*(?:(?:\*\*|__)[0-9][^ \t\n]*|[0-9]+\.[0-9A-Za-z][^ \t\n]*)")
_REF = re.compile(r"(?:^|[ \t]+)\[([A-Za-z][A-Za-z0-9_]*(?:-[A-Za-z0-9_]+)+(?:\.[0-9]+)*)\]\Z")
_REVIEW_TITLE = re.compile(r"(?:review|evidence)[ \t]*:", re.IGNORECASE)
_REVIEW_MODE = re.compile(
    r"^[*_]{0,2}mode[*_]{0,2}[ \t]*:[*_]{0,2}[ \t]*(?:review|evidence)\b", re.IGNORECASE | re.MULTILINE
)


class BudgetLine(Struct, frozen=True):
    name: str
    tokens: int
    budget: int
    over: bool


def token_budget(prompt: str, readme: str, spec: str) -> tuple[BudgetLine, ...]:
    """The estimated tokens of each file and its budget, and the totals."""
    tokens = {"prompt": estimate_tokens(prompt), "readme": estimate_tokens(readme), "spec": estimate_tokens(spec)}
    tokens["total"] = sum(tokens.values())
    budgets = BUDGETS | {"total": sum(BUDGETS.values())}
    return tuple(BudgetLine(name, count, budgets[name], count > budgets[name]) for name, count in tokens.items())


def write(plan: Plan, phases: Mapping[str, str]) -> str:
    """An index of steps, with their details nested below them."""
    lines = top_lines(plan)
    phase: str | None = None
    for story in plan.stories:
        if (now := phases.get(story.id, "")) != phase:
            phase = now
            lines += ["", f"## {heading_text(phase) or 'Steps'}", ""]
        ref = f" [{story.ref}]" if story.ref else ""
        lines.append(f"- {box(story)} **{story.id}** {story.title}{ref}")
        lines += write_body(story, "  ", in_block=False)
    return joined_lines(lines)


def unnamed_boxes(source: bytes) -> list[tuple[int, str]]:
    """Line and text of each open checkbox that is neither a step nor part of one."""
    reading = _read(with_plain_line_ends(source.decode()), _FILE)
    text = reading.text
    inside = {at for place in reading.places for at in range(place.item, place.item_end)}
    return [
        (block.line, text[block.box + 2 : block.end])
        for at, block in enumerate(reading.blocks)
        if block.box >= 0 and text[block.box] == " " and at not in inside
    ]


def _read(text: str, file: str) -> Reading:
    blocks = scan(text)
    heads: list[tuple[int, re.Match[str]]] = []
    unclear: list[tuple[int, str]] = []
    for index, block in enumerate(blocks):
        if block.box < 0 or block.kind is not Kind.ITEM:
            continue
        if head := _HEAD.match(text, block.box + 2, block.end):
            heads.append((index, head))
        elif like := _LIKE_A_STEP.match(text, block.box + 2, block.end):
            unclear.append((index, one_line(like[0].strip(" \t"), 40)))
    limits = [*(index for index, _ in heads[1:]), len(blocks)]
    places = [
        _place(text, blocks, after_item(blocks, index, limit), number, (index, head))
        for number, ((index, head), limit) in enumerate(zip(heads, limits, strict=False), 1)
    ]
    inside = {at for place in places if unclear for at in range(place.item, place.item_end)}
    wrong = problems_of([place.story for place in places], file)
    for at, word in unclear:
        if at not in inside:
            where = problems.Place(file, blocks[at].line)
            hint = "write it as `- [ ] **1.2** Title`, or `**1.R**` for a review"
            wrong.append(Problem("bad-id", f"{word} is not a valid step ID", where, hint, story=word.strip("*_:")))
    if not places and not wrong:
        hint = "a step is a line such as `- [ ] **1.1** Create the schema [TASK-abc]`"
        wrong.append(Problem("no-stories", "the spec has no steps", problems.Place(file), hint))
    if wrong:
        raise PlanError.of(sorted(wrong, key=lambda problem: problem.where.line or 0))
    return Reading(text, blocks, places, name_of(text, blocks))


def _place(text: str, blocks: list[Block], end: int, number: int, start: tuple[int, re.Match[str]]) -> Place:
    """`start`: the block of the step, and its ID and title. `end`: the first block that is not nested in it."""
    index, head = start
    block = blocks[index]
    fields = fold(read_pieces(text, blocks_nested(text, blocks, index, end), block.depth + 1, _IDS))
    title, ref = _split_title(head["title"].rstrip(" \t"))
    lines = (fields["description"], *fields["criteria"])
    story = Story(
        id=head["id"],
        title=title,
        priority=number,
        state=State.TODO if text[block.box] == " " else State.DONE,
        ref=ref,
        is_review_step=".R" in head["id"] or bool(_REVIEW_TITLE.match(title)) or any(map(_REVIEW_MODE.search, lines)),
        line=block.line,
        **fields,
    )
    at = head.start("title")
    return Place(story, index, end, -1, -1, False, ((at, at + len(title)),))


def _split_title(title: str) -> tuple[str, str]:
    """Title and bead: `Create the schema [TASK-abc]`."""
    if title.endswith("]") and (found := _REF.search(title, max(title.rfind("[") - 1, 0))):
        return title[: found.start()].rstrip(" \t"), found[1]
    return title, ""


def _write_head(story: Story, _like: str) -> str:
    if not ID.fullmatch(story.id):
        raise IllegalChange(
            f"{one_line(story.id, 60)} is not a valid step ID in {NAME}", hint="use e.g. 2.4, or 2.R for a review"
        )
    return f"**{story.id}** {story.title}" + (f" [{story.ref}]" if story.ref else "")


_DIALECT = Dialect(NAME, SPEAKS, STATES, _IDS, _read, _write_head)
parse = partial(markdown_edit.parse, dialect=_DIALECT)
edit = partial(markdown_edit.edit, dialect=_DIALECT)
salvage = partial(markdown_edit.salvage, dialect=_DIALECT)


def detect(root: Path) -> list[PlanRef]:
    base = root / ".ralph"
    if base.is_symlink() or not os.path.lexists(base / _FILE):
        return []
    return [refer(root, "")]


def refer(root: Path, name: str) -> PlanRef:
    """A workspace has one spec, so the name is only a label."""
    folder = root / ".ralph"
    return PlanRef(NAME, root, folder, folder / _FILE, safe_name(name) if name else "spec")


def locations(ref: PlanRef) -> Locations:
    page = ref.folder / "requirements.md"
    return Locations(
        plan=ref.path,
        archive=ref.folder / "archive",
        requirements=page if page.is_file() else None,  # the layout asks for none; `ralph plan` writes one
        progress=ref.folder / "progress.md",
        prompt=ref.root / "prompt.md",
        readme=ref.folder / "readme.md",
    )


def scaffold(ref: PlanRef, facts: ProjectFacts) -> dict[str, str]:
    verify = ", ".join(code_span(command) for command in facts.verify)
    check = f"  - Verify: {verify}\n" if verify else ""
    spec = f"""\
# {one_line(facts.name)}

## 1. First phase

- [ ] **1.1** {EXAMPLE_TITLE}
  - One thing that can be checked, such as: `app --version` prints 1.0
{check}- [ ] **1.2** And this one with the next; a bead's id can follow the title, as in [TASK-abc] at its end
- [ ] **1.R** Review: the checks pass, nothing is left half done
{check}"""
    readme = f"""\
# {one_line(facts.name)}: where to look

Read only what the step at hand needs.

| topic | file | look here for |
|---|---|---|
| the steps | `.ralph/spec.md` | what to do next: the first open step |
| example | `docs/architecture.md` | how the parts fit together |
"""
    folder = ref.folder.relative_to(ref.root)
    return {str(folder / _FILE): spec, str(folder / "readme.md"): readme}
