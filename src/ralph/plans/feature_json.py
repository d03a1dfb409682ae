"""`.ralph/<feature>/prd.json`: user stories that pass or do not.

    state DONE     "passes": true
    state TODO     "passes": false

The other states, and reviews, have no field and are kept in the state folder. `dependsOn`, `verify`, `touches` and
the document's `verifyCommands` are our additions to the original format; they are written only when used.
"""

from __future__ import annotations

from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import UNSET, Struct, UnsetType

from ralph.core.plan import Plan, Story
from ralph.core.ports import Locations, PlanRef, ProjectFacts, Templates, Traits
from ralph.plans import json_edit
from ralph.plans.json_plan import (
    COMMON_FIELDS,
    PASSES_OR_NOT,
    Fault,
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

NAME = "feature"
TITLE = "a folder for each feature: .ralph/<feature>/prd.json, progress.txt, specs/"
SPEAKS = COMMON_FIELDS
STATES = PASSES_OR_NOT
TRAITS = Traits(
    folder_is_name=True,
    promises_all=True,
    needs_criteria=True,
    templates=Templates("feature-prompt", tdd="feature-prompt-tdd"),
    attaches_files=True,
    reads=("plan", "progress", "specs"),
)

_FILE = "prd.json"


class _Document(Struct, rename="camel"):
    feature: str
    branch_name: str
    description: str
    created_at: str
    verify_commands: Lines | UnsetType = UNSET


def _read_document(wire: _Document, stories: tuple[Story, ...], extra: dict[str, Any]) -> Plan:
    try:
        datetime.fromisoformat(wire.created_at)
    except ValueError:
        hint = 'use a time such as "2026-01-31T09:30:00Z"'
        raise Fault("bad-date", "createdAt", "createdAt is not an ISO 8601 time", hint) from None
    return Plan(
        name=wire.feature,
        stories=stories,
        description=wire.description,
        branch=wire.branch_name,
        verify=commands(wire.verify_commands, "verifyCommands"),
        extra={"createdAt": wire.created_at, **extra},
    )


def _write_story(story: Story) -> dict[str, Any]:
    return write_user_story(story, NAME, {})


_FORMAT = Format(NAME, SPEAKS, "userStories", _Document, UserStory, _read_document, read_user_story, _write_story)
parse = partial(read, form=_FORMAT)
edit = partial(json_edit.edit, form=_FORMAT)
salvage = partial(json_edit.salvage, form=_FORMAT)


def detect(root: Path) -> list[PlanRef]:
    return [refer(root, name) for name in features_with(root, _FILE)]


def refer(root: Path, name: str) -> PlanRef:
    folder = root / ".ralph" / feature_name(name)
    return PlanRef(NAME, root, folder, folder / _FILE, name)


def locations(ref: PlanRef) -> Locations:
    pages = (ref.folder / "specs" / name for name in ("prd.md", "requirements.md"))
    return Locations(
        plan=ref.path,
        archive=ref.root / ".ralph" / "archive",
        requirements=next((page for page in pages if page.is_file()), None),  # `ralph plan` writes one
        progress=ref.folder / "progress.txt",
        prompt=ref.folder / "prompt.md",
        specs=ref.folder / "specs",
    )


def scaffold(ref: PlanRef, facts: ProjectFacts) -> dict[str, str]:
    plan: dict[str, Any] = {
        "feature": ref.name,
        "branchName": facts.branch or f"feature/{ref.name}",
        "description": "",
        "createdAt": facts.date,
    }
    if facts.verify:
        plan["verifyCommands"] = list(facts.verify)
    story = _write_story(example("STORY-001"))
    plan["userStories"] = [{key: story[key] for key in story if key not in ("dependsOn", "verify", "touches")}]
    folder = ref.folder.relative_to(ref.root)
    return {
        (folder / _FILE).as_posix(): dump(plan, Style()).decode() + "\n",
        (folder / "progress.txt").as_posix(): f"# Progress Log: {ref.name}\n# Started: {facts.date}\n",
        (folder / "specs" / ".gitkeep").as_posix(): "",
    }
