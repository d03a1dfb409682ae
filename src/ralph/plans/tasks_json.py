"""`tasks.json`: stories with review fields, in `ralph/` or in `.ralph/<feature>/`.

    state DONE     "passes": true; the Stop hook requires "notes" on what was done
    state TODO     "passes": false
    review         "reviewStatus", "reviewCount", "reviewFeedback"

State and review are independent here, so that each can be written without the other; that they belong together (passes
only when approved) is a rule of the loop, in `core.transitions`. A story under review is open: its state is TODO, and
its review fields show the progress. In progress, failed and blocked have no field and are kept in the state folder.
"""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import UNSET, Struct, UnsetType
from msgspec.structs import replace

from ralph.core.plan import Plan, Story
from ralph.core.ports import Locations, PlanRef, ProjectFacts, Templates, Traits
from ralph.core.review import Review, ReviewStatus
from ralph.plans import json_edit
from ralph.plans.json_plan import (
    COMMON_FIELDS,
    PASSES_OR_NOT,
    Count,
    Format,
    Lines,
    UserStory,
    commands,
    example,
    read,
    read_user_story,
    write_user_story,
)
from ralph.plans.json_text import Style, dump
from ralph.plans.registry import feature_name, features_with

NAME = "tasks.json"
TITLE = "stories with review fields, in .ralph/<feature>/tasks.json or ralph/tasks.json"
SPEAKS = COMMON_FIELDS | {"review"}
STATES = PASSES_OR_NOT
TRAITS = Traits(
    any_folder=True,
    promises_all=True,
    needs_criteria=True,
    keeps_checks=True,
    templates=Templates("tasks-prompt"),
    reviews_with_prompt=True,
    reads=("plan", "progress", "requirements"),
    ignored=(".ralph-active",),
)

_FILE = "tasks.json"


class _Document(Struct, rename="camel"):
    project: str
    branch_name: str
    description: str
    verify_commands: Lines | UnsetType = UNSET


class _Story(UserStory, rename="camel", kw_only=True):
    review_status: ReviewStatus | None
    review_count: Count
    review_feedback: str


def _read_document(wire: _Document, stories: tuple[Story, ...], extra: dict[str, Any]) -> Plan:
    return Plan(
        name=wire.project,
        stories=stories,
        description=wire.description,
        branch=wire.branch_name,
        verify=commands(wire.verify_commands, "verifyCommands"),
        reviewed=True,
        extra=extra,
    )


def _read_story(wire: _Story, number: int, extra: dict[str, Any]) -> Story:
    story = read_user_story(wire, number, extra)
    if not (wire.review_count or wire.review_status or wire.review_feedback):
        return story
    return replace(story, review=Review(wire.review_status, wire.review_count, wire.review_feedback))


def _write_story(story: Story) -> dict[str, Any]:
    review = {
        "reviewStatus": story.review.status.value if story.review.status else None,
        "reviewCount": story.review.count,
        "reviewFeedback": story.review.feedback,
    }
    return write_user_story(story, NAME, review)


_FORMAT = Format(NAME, SPEAKS, "userStories", _Document, _Story, _read_document, _read_story, _write_story)
parse = partial(read, form=_FORMAT)
edit = partial(json_edit.edit, form=_FORMAT)
salvage = partial(json_edit.salvage, form=_FORMAT)


def detect(root: Path) -> list[PlanRef]:
    refs = [refer(root, name) for name in features_with(root, _FILE)]
    own = root / "ralph"
    if not own.is_symlink() and os.path.lexists(own / _FILE):
        refs.insert(0, refer(root, ""))
    return refs


def refer(root: Path, name: str) -> PlanRef:
    """Without a name, the plan in `ralph/`."""
    folder = root / ".ralph" / feature_name(name) if name else root / "ralph"
    return PlanRef(NAME, root, folder, folder / _FILE, name or "ralph")


def locations(ref: PlanRef) -> Locations:
    is_feature = ref.folder.parent == ref.root / ".ralph"
    return Locations(
        plan=ref.path,
        archive=ref.root / ".ralph" / "archive" if is_feature else ref.root / "ralph-archive",
        requirements=ref.folder / "prd.md",
        progress=ref.folder / "progress.txt",
        prompt=ref.folder / "prompt.md",
    )


def scaffold(ref: PlanRef, facts: ProjectFacts) -> dict[str, str]:
    story = {key: value for key, value in _write_story(example("US-001")).items() if key not in ("verify", "touches")}
    plan = {
        "project": facts.name,
        "branchName": facts.branch or f"ralph/{facts.name}",
        "description": "",
        "verifyCommands": list(facts.verify),
        "userStories": [story],
    }
    progress = (
        f"# Ralph Progress Log\nStarted: {facts.date}\nPRD: {facts.name}\n\n"
        "## Codebase Patterns\n- (what the next iterations should know about this code base)\n\n---\n"
    )
    folder = ref.folder.relative_to(ref.root)
    return {
        (folder / _FILE).as_posix(): dump(plan, Style()).decode() + "\n",
        (folder / "progress.txt").as_posix(): progress,
    }
