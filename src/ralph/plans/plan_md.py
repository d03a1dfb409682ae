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
from collections.abc import Sequence
from pathlib import Path

from ralph.core.changes import Change, position
from ralph.core.errors import IllegalChange
from ralph.core.names import prd_number
from ralph.core.plan import Order, Plan, State, Story
from ralph.core.ports import Locations, Naming, PlanRef, ProjectFacts, Templates, Traits
from ralph.core.text import one_line
from ralph.plans import story_edit, story_text, us_stories
from ralph.plans.collector import collector_paused
from ralph.plans.integrity import decode_utf8, problems_of
from ralph.plans.markdown import with_plain_line_ends
from ralph.plans.salvage import from_markdown
from ralph.plans.story_place import Dialect, block_span, item_span

NAME = "plan.md"
TITLE = "a numbered PRD with a checklist: .ralph/PRD-N/plan.md, prd.md, progress.md"
SPEAKS = frozenset({"id", "title", "description", "criteria", "depends_on", "state", "notes", "verify"})
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


def parse(source: bytes, file: str) -> Plan:
    text = decode_utf8(source, file)
    with collector_paused():
        name, stories = us_stories.quickly(text) or ("", [])
    if not stories or problems_of(stories, file):
        reading = us_stories.read(with_plain_line_ends(text), file)
        name, stories = reading.name, [place.story for place in reading.places]
    return Plan(name=name, stories=tuple(stories), order=Order.FILE)


def edit(source: bytes, changes: Sequence[Change]) -> bytes:
    return story_edit.edit(source, changes, _DIALECT)


def unnamed_boxes(source: bytes) -> list[tuple[int, str]]:
    """Line and text of each open checkbox that is neither a story nor part of one."""
    return us_stories.unnamed(with_plain_line_ends(source.decode()))


def story_block(source: bytes, story_id: str) -> str:
    """The text of one story as it is in the plan: its block, or else its item."""
    text = source.decode()
    reading = us_stories.read(with_plain_line_ends(text), _FILE)
    place = reading.places[position([place.story for place in reading.places], story_id)]
    start, end = block_span(reading, place) or item_span(reading, place) or (0, 0)
    return text[start:end].rstrip() + "\n"


def _write_head(story: Story, like: str) -> str:
    if not us_stories.ID.fullmatch(story.id):
        raise IllegalChange(
            f"{one_line(story.id, 60)} is not a valid story ID in {NAME}", hint="use US- and a number, e.g. US-001"
        )
    bold = like.strip()[:2]
    name = f"{bold}{story.id}{bold}" if bold in ("**", "__") else story.id
    return f"{name}: {story.title}"


_DIALECT = Dialect(NAME, SPEAKS, STATES, us_stories.IDS, us_stories.SHAPE, us_stories.read, _write_head)


def salvage(source: bytes, before: bytes) -> bytes | None:
    return from_markdown(source, before, parse(before, _FILE), _DIALECT)


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
    verify = ", ".join(story_text.code_span(command) for command in facts.verify)
    plan = f"""\
# {one_line(facts.name)}

## Stories

- [ ] US-001: Replace this example with your first story

## Details

### US-001: Replace this example with your first story

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
