"""Steps `prd.json`: `.ralph/prd.json` with tasks that are todo, in_progress, done or failed.

The tool this format comes from never documented all of it, so parsing is lenient: a few keys have more than one
spelling, an optional value may be null, an ID may be a number, and the priority of a task without one is its number in
the file. An edit keeps the spelling of the file.

The blocked state, and reviews, have no field and are kept in the state folder.
"""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from ralph.core.names import safe_name
from ralph.core.plan import EXAMPLE_TITLE, Plan, State, Story
from ralph.core.ports import Locations, Naming, PlanRef, ProjectFacts, Templates, Traits
from ralph.host.files import read_state
from ralph.plans import json_edit
from ralph.plans.json_plan import (
    COMMON_FIELDS,
    EXPECTED,
    LINES,
    Commands,
    Count,
    Expected,
    Fault,
    Format,
    Lines,
    Number,
    Peers,
    Words,
    commands,
    plain_number,
    read,
    refuse_blank,
    refuse_unsayable,
)
from ralph.plans.json_text import Style, decode_object, dump

NAME = "steps"
TITLE = "tasks for a pipeline of steps: .ralph/prd.json with prompts/ and configs/"
SPEAKS = COMMON_FIELDS | {"attempts"}
STATES = frozenset({State.TODO, State.IN_PROGRESS, State.DONE, State.FAILED})
TRAITS = Traits(
    naming=Naming.SINGLE,
    has_pipeline=True,
    archives_done=True,
    templates=Templates("steps-loop", requirements="requirements"),
    story_in_system=True,
    reads=("plan", "learnings"),
    ignored=(
        ".ralph/logs/",
        ".ralph/run_state.json",
        ".ralph/aggregate.json",
        ".ralph/.ralph_lock",
        ".ralph/.setup_done",
    ),
    leftovers=("aggregate.json", "run_state.json", "prd_archive.json"),
)

_FILE = "prd.json"
_SPELLINGS = {
    "title": ("title", "name"),
    "acceptanceCriteria": ("acceptanceCriteria", "acceptance_criteria", "criteria"),
    "dependsOn": ("dependsOn", "depends_on", "dependencies"),
}

_EXPECTED = MappingProxyType(
    {**EXPECTED}
    | {"id": Expected("a string or a whole number", '"task-1"')}
    | dict.fromkeys(_SPELLINGS["acceptanceCriteria"], LINES)
    | dict.fromkeys(_SPELLINGS["dependsOn"], Expected("a list of task IDs", '["task-1"]'))
)

_WholeNumber = Annotated[int, Meta(ge=0, le=2**53)]
_Text = str | None | UnsetType
_Lines = Lines | None | UnsetType
_Ids = tuple[_WholeNumber | Words, ...] | None | UnsetType


class _Document(Struct):
    project: _Text = UNSET
    name: _Text = UNSET
    feature: _Text = UNSET
    description: _Text = UNSET
    branchName: _Text = UNSET
    verifyCommands: _Lines = UNSET


class _Task(Struct):
    id: _WholeNumber | str
    status: Literal["todo", "in_progress", "done", "failed"]
    title: str | UnsetType = UNSET
    name: str | UnsetType = UNSET
    description: _Text = UNSET
    acceptanceCriteria: _Lines = UNSET
    acceptance_criteria: _Lines = UNSET
    criteria: _Lines = UNSET
    priority: Number | UnsetType | None = UNSET
    dependsOn: _Ids = UNSET
    depends_on: _Ids = UNSET
    dependencies: _Ids = UNSET
    attempts: Count | UnsetType | None = UNSET
    notes: _Text = UNSET
    verify: Commands | UnsetType | None = UNSET
    touches: _Lines = UNSET


def _read_document(wire: _Document, stories: tuple[Story, ...], extra: dict[str, Any]) -> Plan:
    return Plan(
        name=wire.project or wire.name or wire.feature or "",
        stories=stories,
        description=wire.description or "",
        branch=wire.branchName or "",
        verify=commands(wire.verifyCommands, "verifyCommands"),
        extra=extra,
    )


def _read_task(wire: _Task, number: int, extra: dict[str, Any]) -> Story:
    title = _one_of("title", wire.title, wire.name)
    if title is UNSET:
        raise Fault("missing-field", "id", "title is missing", 'add "title": "…"')
    criteria = _one_of("acceptanceCriteria", wire.acceptanceCriteria, wire.acceptance_criteria, wire.criteria) or ()
    refuse_blank("acceptanceCriteria", criteria)
    depends_on = _one_of("dependsOn", wire.dependsOn, wire.depends_on, wire.dependencies)
    return Story(
        id=wire.id if isinstance(wire.id, str) else str(wire.id),
        title=title,
        description=wire.description or "",
        criteria=criteria,
        priority=number if wire.priority is UNSET or wire.priority is None else wire.priority,
        depends_on=tuple(map(str, depends_on)) if depends_on else (),
        state=_STATE[wire.status],
        notes=wire.notes or "",
        verify=() if wire.verify is UNSET else commands(wire.verify),
        touches=() if wire.touches is UNSET else commands(wire.touches, "touches"),
        attempts=wire.attempts or 0,
        extra=extra,
    )


_STATE = {state.value: state for state in STATES}


def _one_of(key: str, usual: Any, second: Any, third: Any = UNSET) -> Any:
    """The value of the spelling that is used."""
    if second is UNSET and third is UNSET:
        return usual
    names = [n for n, value in zip(_SPELLINGS[key], (usual, second, third), strict=False) if value is not UNSET]
    if len(names) > 1:
        message = f"{' and '.join(names)} are two spellings of the same key"
        raise Fault("ambiguous-key", names[1], message, "keep one of them")
    return third if second is UNSET else second


def _write_task(story: Story) -> dict[str, Any]:
    refuse_unsayable(story, STATES, NAME)
    return {
        "id": story.id,
        "title": story.title,
        "description": story.description,
        "acceptanceCriteria": list(story.criteria),
        "priority": plain_number(story.priority),
        "dependsOn": list(story.depends_on),
        "status": story.state.value,
        "attempts": story.attempts,
        "notes": story.notes,
        "verify": list(story.verify),
        "touches": list(story.touches),
    }


def _respell(story: Story, keys: dict[str, Any], old: dict[str, Any], peers: Peers) -> dict[str, Any]:
    if not old and not peers.uses("priority") and not 0 < story.priority < len(peers.ids):
        keys.pop("priority", None)  # the tasks stand in their order, and the new one comes last anyway
    numbers = {str(raw): raw for raw in peers.ids if isinstance(raw, int)}
    if numbers and len(numbers) == len(peers.ids) and "id" in keys and str(keys["id"]).isdecimal():
        keys["id"] = int(keys["id"])
    if "dependsOn" in keys:
        keys["dependsOn"] = [numbers.get(wanted, wanted) for wanted in keys["dependsOn"]]
    return {_spelling(key, old, peers): value for key, value in keys.items()}


def _spelling(key: str, old: dict[str, Any], peers: Peers) -> str:
    names = _SPELLINGS.get(key, (key,))
    return next((n for n in names if n in old), next((n for n in names if peers.uses(n)), key))


_FORMAT = Format(NAME, SPEAKS, "tasks", _Document, _Task, _read_document, _read_task, _write_task, _respell, _EXPECTED)
parse = partial(read, form=_FORMAT)
edit = partial(json_edit.edit, form=_FORMAT)
salvage = partial(json_edit.salvage, form=_FORMAT)


def detect(root: Path) -> list[PlanRef]:
    ref = refer(root, "")
    return [ref] if not ref.folder.is_symlink() and os.path.lexists(ref.path) else []


def refer(root: Path, name: str) -> PlanRef:
    """There is one plan, whatever the project's name."""
    if name:
        safe_name(name)
    folder = root / ".ralph"
    named, usual = _prd_file(root), folder / _FILE
    return PlanRef(NAME, root, folder, named if named and (named.exists() or not usual.exists()) else usual, "")


def _prd_file(root: Path) -> Path | None:
    """The plan that the pipeline names (seed 002: `prd_file` of an agent step in `configs/default.json`)."""
    try:
        document = decode_object(read_state(root / ".ralph" / "configs" / "default.json"))
    except OSError:
        return None
    steps = document.get("steps") if document else None
    for step in steps if isinstance(steps, list) else ():
        config = step.get("config") if isinstance(step, dict) and step.get("enabled", True) else None
        named = config.get("prd_file") if isinstance(config, dict) else None
        if isinstance(named, str) and named.endswith(".json") and "${" not in named:
            path = Path(os.path.normpath(root / named))
            return path if path.is_relative_to(root) and path != root / ".ralph" / _FILE else None
    return None


def locations(ref: PlanRef) -> Locations:
    return Locations(
        plan=ref.path,
        archive=ref.folder / "archive",
        requirements=ref.folder / "requirements.md",
        prompt=ref.folder / "prompts" / "LOOP_PROMPT.md",
        learnings=ref.folder / "learnings.md",
    )


def scaffold(ref: PlanRef, facts: ProjectFacts) -> dict[str, str]:
    plan: dict[str, Any] = {"project": facts.name}
    if facts.branch:
        plan["branchName"] = facts.branch
    plan["description"] = ""
    if facts.verify:
        plan["verifyCommands"] = list(facts.verify)
    plan["tasks"] = [
        {
            "id": "task-1",
            "title": EXAMPLE_TITLE,
            "description": "What is to be built, in two or three sentences.",
            "acceptanceCriteria": ["One thing that can be checked, such as: `app --version` prints 1.0"],
            "priority": 1,
            "dependsOn": [],
            "status": "todo",
            "notes": "",
        }
    ]
    texts = {
        _FILE: dump(plan, Style()).decode() + "\n",
        "requirements.md": f"# {facts.name}: requirements\n\nWhat is wanted, and why. The tasks come from this page.\n",
        "learnings.md": "# Learnings\n\nWhat one iteration found out and the next ones should know.\n",
        "configs/default.json": dump(_pipeline(), Style()).decode() + "\n",
    }
    folder = ref.folder.relative_to(ref.root)
    return {(folder / name).as_posix(): text for name, text in texts.items()}


def _pipeline() -> dict[str, Any]:
    """The steps of one loop: a setup that runs once, the agent, the commit."""
    prd = f".ralph/{_FILE}"
    setup = {"prompt_file": ".ralph/prompts/SETUP_PROMPT.md", "prd_file": prd, "marker_file": ".ralph/.setup_done"}
    return {
        "name": "default",
        "max_loops_per_task": 10,
        "steps": [
            {"name": "setup", "type": "agent", "enabled": True, "config": setup},
            {
                "name": "run-claude",
                "type": "agent",
                "enabled": True,
                "timeout": "20m",
                "max_retries": 1,
                "retry_delay": "30s",
                "config": {"prompt_file": ".ralph/prompts/LOOP_PROMPT.md", "prd_file": prd},
            },
            {"name": "git-commit", "type": "git-commit", "enabled": True},
        ],
    }
