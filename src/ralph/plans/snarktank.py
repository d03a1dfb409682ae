"""`prd.json` of snarktank/ralph, where that tool keeps it: beside `ralph.sh`, usually in `scripts/ralph/`.

    state DONE     "passes": true
    state TODO     "passes": false

That tool needs only `id`, `title` and `passes` of a story, so nothing else is required here. `dependsOn`, `verify`,
`touches` and `verifyCommands` are our additions, written only when used. Its `prompt.md` and `CLAUDE.md` tell agents to
commit and to mark stories, which the loop does here, so sessions are not given them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import UNSET, Struct, UnsetType

from ralph.core.names import safe_name
from ralph.core.plan import Plan, State, Story
from ralph.core.ports import Locations, Naming, PlanRef, ProjectFacts, Traits
from ralph.plans import json_edit
from ralph.plans.json_plan import (
    COMMON_FIELDS,
    PASSES_OR_NOT,
    Commands,
    Format,
    Lines,
    Number,
    Words,
    commands,
    example,
    read,
    refuse_blank,
    write_user_story,
)
from ralph.plans.json_text import Style, dump

NAME = "snarktank"
TITLE = "prd.json of snarktank/ralph, in place: scripts/ralph/prd.json"
SPEAKS = COMMON_FIELDS
STATES = PASSES_OR_NOT
TRAITS = Traits(naming=Naming.SINGLE, promises_all=True, reads=("plan", "progress"))

_FILE = "prd.json"
_FOLDERS = ("scripts/ralph", "ralph", ".")
_SCRIPT = "ralph.sh"
_ADDED = ("dependsOn", "verify", "touches")


class _Document(Struct, rename="camel"):
    project: str | UnsetType | None = UNSET
    branch_name: str | UnsetType | None = UNSET
    description: str | UnsetType | None = UNSET
    verify_commands: Lines | UnsetType = UNSET


class _Story(Struct, rename="camel", kw_only=True):
    id: Words
    title: str
    passes: bool
    description: str | UnsetType | None = UNSET
    acceptance_criteria: Lines | UnsetType = UNSET
    priority: Number | UnsetType = UNSET
    notes: str | UnsetType | None = UNSET
    depends_on: Lines | UnsetType = UNSET
    verify: Commands | UnsetType = UNSET
    touches: Lines | UnsetType = UNSET


def _read_document(wire: _Document, stories: tuple[Story, ...], extra: dict[str, Any]) -> Plan:
    return Plan(
        name=wire.project or "",
        stories=stories,
        description=wire.description or "",
        branch=wire.branch_name or "",
        verify=commands(wire.verify_commands, "verifyCommands"),
        extra=extra,
    )


def _read_story(wire: _Story, number: int, extra: dict[str, Any]) -> Story:
    criteria = wire.acceptance_criteria or ()
    refuse_blank("acceptanceCriteria", criteria)
    return Story(
        id=wire.id,
        title=wire.title,
        description=wire.description or "",
        criteria=criteria,
        priority=number if wire.priority is UNSET else wire.priority,
        depends_on=wire.depends_on or (),
        state=State.DONE if wire.passes else State.TODO,
        notes=wire.notes or "",
        verify=commands(wire.verify),
        touches=commands(wire.touches, "touches"),
        extra=extra,
    )


def _write_story(story: Story) -> dict[str, Any]:
    return write_user_story(story, NAME, {})


_FORMAT = Format(NAME, SPEAKS, "userStories", _Document, _Story, _read_document, _read_story, _write_story)
parse = partial(read, form=_FORMAT)
edit = partial(json_edit.edit, form=_FORMAT)
salvage = partial(json_edit.salvage, form=_FORMAT)


def detect(root: Path) -> list[PlanRef]:
    return [_in_folder(root, folder) for folder in _places(root)][:1]


def _places(root: Path) -> Iterator[Path]:
    """The folders with a plan. In the root only beside the script: any project can have a `prd.json`."""
    for name in _FOLDERS:
        folder = root / name
        is_linked = any(
            part.is_symlink() for part in (folder, folder.parent) if part.is_relative_to(root) and part != root
        )
        if os.path.lexists(folder / _FILE) and not is_linked and (name != "." or (root / _SCRIPT).is_file()):
            yield folder


def refer(root: Path, name: str) -> PlanRef:
    """There is one plan, whatever the project's name."""
    if name:
        safe_name(name)
    return _in_folder(root, next(_places(root), root / _FOLDERS[0]))


def _in_folder(root: Path, folder: Path) -> PlanRef:
    return PlanRef(NAME, root, folder, folder / _FILE, "")


def locations(ref: PlanRef) -> Locations:
    return Locations(
        plan=ref.path,
        archive=ref.root / ".ralph" / "archive",
        progress=ref.folder / "progress.txt",
        prompt=ref.root / ".ralph" / "prompt.md",
    )


def scaffold(ref: PlanRef, facts: ProjectFacts) -> dict[str, str]:
    plan: dict[str, Any] = {
        "project": facts.name,
        "branchName": facts.branch or f"ralph/{facts.name}",
        "description": "",
    }
    if facts.verify:
        plan["verifyCommands"] = list(facts.verify)
    story = _write_story(example("US-001"))
    plan["userStories"] = [{key: value for key, value in story.items() if key not in _ADDED}]
    folder = ref.folder.relative_to(ref.root)
    return {
        (folder / _FILE).as_posix(): dump(plan, Style()).decode() + "\n",
        (folder / "progress.txt").as_posix(): f"# Ralph Progress Log\nStarted: {facts.date}\n---\n",
    }
