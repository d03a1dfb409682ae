"""Tasks of other tools, the stories made from them, and the record of which story came from where."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from ralph.core.errors import BadData, PlanError
from ralph.core.lazy_pattern import lazy_pattern
from ralph.core.plan import Order, Plan, State, Story
from ralph.core.ports import PlanRef
from ralph.core.problems import Place, Problem, Severity
from ralph.core.review import NO_REVIEW, Review, ReviewStatus
from ralph.core.text import one_line
from ralph.host.files import make_folder, read_bytes, write_bytes
from ralph.importing import wording
from ralph.plans.integrity import problems_of
from ralph.plans.registry import traits
from ralph.state.names import IMPORTS
from ralph.state.places import plan_state


class NoTasks(BadData):
    """The file can be read, and there is nothing in it to import."""


class Item(Struct, frozen=True, kw_only=True):
    key: str
    """Its permanent identity across imports of the same source, e.g. `github:acme/shop#12`."""
    title: str
    description: str = ""
    criteria: tuple[str, ...] = ()
    priority: float = 0
    """1 is the highest; 0: not specified by the source."""
    depends_on: tuple[str, ...] = ()
    """Keys."""
    state: State = State.TODO
    why: str = ""
    """Why it is blocked."""
    notes: str = ""
    verify: tuple[str, ...] = ()
    touches: tuple[str, ...] = ()
    phase: str = ""
    """The heading, milestone or epic it belongs to."""
    ref: str = ""
    line: int = 0
    id: str = ""
    """What the source calls it; the ID of the story where a new plan can have it."""


class Batch(Struct, frozen=True, kw_only=True):
    kind: str
    file: str
    items: tuple[Item, ...]
    name: str = ""
    """The title of the source."""
    verify: tuple[str, ...] = ()
    """Commands that verify all of it."""
    left: tuple[Problem, ...] = ()
    """What was not taken, with its place."""
    fields: dict[str, tuple[int, ...]] = {}
    """Fields of entries that stories do not have, with the lines of these entries."""


def remark(code: str, message: str, file: str, line: int, hint: str = "") -> Problem:
    return Problem(code, message, Place(file, line or None), hint, Severity.WARNING)


def text_key(kind: str, file: str, *words: str) -> str:
    """A key for a task without an ID: by its text and its position."""
    digest = hashlib.sha256("\0".join(words).encode(errors="replace")).hexdigest()[:10]
    return plain_key(f"{kind}:{file.rpartition('/')[2] or '-'}#{digest}")


def source_home(file: str) -> str:
    """Where the IDs of a file are unique: `001-photos/tasks.md`, from wherever it is named."""
    if file == "-":
        return "-"
    return "/".join(Path(os.path.normpath(Path(file).absolute())).parts[-2:])


def plain_key(text: str) -> str:
    """A key is one word, so that it can be found in a story's notes."""
    return "_".join(wording.visible(text).split())


def read_imports(ref: PlanRef, env: Mapping[str, str]) -> dict[str, str]:
    """Key → story of everything ever imported. A damaged record is ignored: the notes hold the same information."""
    path = plan_state(ref, env) / IMPORTS
    if not os.path.lexists(path):
        return {}
    try:
        return msgspec.json.decode(read_bytes(path), type=dict[str, str])
    except (BadData, msgspec.DecodeError):
        return {}


def write_imports(ref: PlanRef, env: Mapping[str, str], record: Mapping[str, str]) -> None:
    path = plan_state(ref, env) / IMPORTS
    make_folder(path.parent, private=True)
    write_bytes(path, msgspec.json.format(msgspec.json.encode(record), indent=1) + b"\n")


_SOURCE = lazy_pattern(r"(?:^|\s)Source: (\S+)")
_TRAILING = lazy_pattern(r"([0-9]+)\Z")
_MEDIUM = 3


class Made(Struct, frozen=True):
    stories: tuple[Story, ...]
    keys: dict[str, str]
    """Key → ID of the new stories."""
    why: dict[str, str]
    """Story → why it is blocked."""
    phases: dict[str, str]
    problems: tuple[Problem, ...]


def sources_in(plan: Plan) -> dict[str, str]:
    """Key → story, for the stories that name their origin."""
    return {key: story.id for story in plan.stories for key in _SOURCE.findall(story.notes)}


def first_ids(items: Sequence[Item], sample: Plan) -> list[str]:
    """IDs for a new plan, in the style of its layout. A spec numbers the steps of each phase."""
    like = sample.stories[0].id
    if sample.stories[0].id != "1.1":
        return [_counted(like, number) for number in range(1, len(items) + 1)]
    phases: dict[str, int] = {}
    counts: dict[int, int] = {}
    ids = []
    for item in items:
        phase = phases.setdefault(item.phase, len(phases) + 1)
        counts[phase] = counts.get(phase, 0) + 1
        ids.append(f"{phase}.{counts[phase]}")
    return ids


def more_ids(first: str, count: int, taken: Iterable[str]) -> list[str]:
    """`first`, and the free IDs that follow it."""
    used = set(taken)
    found = _TRAILING.search(first)
    number = int(found[1]) if found else 1
    ids: list[str] = []
    while len(ids) < count:
        candidate = _counted(first, number)
        number += 1
        if candidate not in used:
            ids.append(candidate)
    return ids


def _counted(like: str, number: int) -> str:
    found = _TRAILING.search(like)
    if not found:
        return f"{like}-{number}"
    return f"{like[: found.start()]}{number:0{len(found[1])}}"


def in_order(items: Sequence[Item]) -> list[Item]:
    """By importance, where the source defines it; otherwise phases stay together."""
    if not any(item.priority for item in items):
        return list(items)
    return sorted(items, key=lambda item: item.priority or _MEDIUM)


class Target(Struct, frozen=True, kw_only=True):
    """The plan that stories are added to."""

    layout: str
    plan: Plan
    """For a new plan, a sample of its layout."""
    known: Mapping[str, str] = {}
    """Key → ID of existing stories."""
    settled: frozenset[str] = frozenset()
    """Keys of finished work that is left out, so that nothing waits for it."""
    has_phases: bool = False
    """Phases become headings and need not be repeated in each story."""


def make(items: Sequence[Item], ids: Sequence[str], file: str, target: Target) -> Made:
    form = traits(target.layout)
    keys = dict(zip((item.key for item in items), ids, strict=True))
    every = {**target.known, **keys}
    problems: list[Problem] = []
    stories = []
    has_priorities = any(item.priority for item in items)
    past: dict[str, list[str]] = {}
    """Dependencies that hold nothing up any more."""
    finished = {item.key for item in items if item.state is State.DONE}
    for number, (item, story_id) in enumerate(zip(items, ids, strict=True), 1):
        is_done = item.state is State.DONE
        depends_on = []
        for wanted in item.depends_on:
            name = one_line(wanted.partition(":")[2] or wanted, 60)
            if is_done and wanted not in finished:  # it did not have to wait, whatever it says
                past.setdefault("of finished stories on others", []).append(f"{story_id} on {name}")
                continue
            if wanted in every and every[wanted] != story_id:
                depends_on.append(every[wanted])
            elif wanted not in target.settled:
                message = f"{story_id} ({one_line(item.title, 40)}) depends on {name}, which is not imported"
                hint = f"import that as well, or add the dependency: `ralph task set {story_id} --depends-on ID`"
                problems.append(remark("unknown-dependency", message, file, item.line, hint))
            else:
                past.setdefault("on finished work that is not imported", []).append(f"{story_id} on {name}")
        if form.needs_criteria and not item.criteria:
            message = f"{story_id} has no criteria in its source; its title is used instead"
            hint = f"add one that can be checked: `ralph task set {story_id} --criterion '…'`"
            problems.append(remark("no-criteria", message, file, item.line, hint))
        rank = (item.priority or _MEDIUM) if has_priorities else float(number)
        part = f"Part of: {item.phase}" if item.phase and not target.has_phases else ""
        claim = "Done in its source; no check of this plan has proven it." if is_done else ""
        stories.append(
            Story(
                id=story_id,
                title=item.title,
                description="\n\n".join(filter(None, (item.description, part))),
                criteria=item.criteria or ((item.title,) if form.needs_criteria else ()),
                priority=rank if target.plan.order is Order.PRIORITY else 0,
                depends_on=tuple(dict.fromkeys(depends_on)),
                state=item.state if item.state in (State.DONE, State.BLOCKED) else State.TODO,
                review=Review(ReviewStatus.APPROVED) if target.plan.reviewed and is_done else NO_REVIEW,
                notes="\n".join(filter(None, (item.notes, claim, f"Source: {item.key}"))),
                verify=item.verify,
                touches=item.touches,
                ref=item.ref if form.has_tracker else "",
                line=item.line,
            )
        )
    problems += [
        remark("left-out", f"dependencies {what}: {', '.join(pairs)}", file, 0) for what, pairs in past.items()
    ]
    _refuse_circles(stories, items, file)
    return Made(
        stories=tuple(msgspec.structs.replace(story, line=0) for story in stories),
        keys=keys,
        why={keys[item.key]: item.why or "blocked in its source" for item in items if item.state is State.BLOCKED},
        phases={keys[item.key]: item.phase for item in items},
        problems=tuple(problems),
    )


def _refuse_circles(stories: Sequence[Story], items: Sequence[Item], file: str) -> None:
    """In the words of the source, because the new IDs are not known yet."""
    names = {story.id: _name(item) for story, item in zip(stories, items, strict=True)}
    if len(set(names.values())) < len(names):
        names = {story.id: f"{names[story.id]} (line {story.line})" for story in stories}
    alone = [
        Story(id=names[s.id], title="", depends_on=tuple(names[d] for d in s.depends_on if d in names), line=s.line)
        for s in stories
    ]
    cycles = [problem for problem in problems_of(alone, file) if problem.code == "dependency-cycle"]
    if cycles:
        raise PlanError.of(cycles)


def _name(item: Item) -> str:
    kind, _, own = item.key.partition(":")
    return one_line(own if kind in ("github", "beads", "plan") else item.title, 60)


def reworded(wanted: Iterable[Story], written: Plan, ids: Mapping[str, str]) -> Iterator[Problem]:
    """Texts that Markdown cannot represent word for word: a line that would become a heading, a dependency or a
    command.
    """
    now = {story.id: story for story in written.stories}
    for story in wanted:
        new = now[ids.get(story.id, story.id)]
        fields = ("title", "description", "criteria", "notes")
        other = [name for name in fields if (old := getattr(story, name)) and old != getattr(new, name)]
        if other:
            message = f"{new.id}: its {' and '.join(other)} cannot be represented word for word in this layout"
            hint = f"`ralph task show {new.id}` shows the closest version"
            yield Problem("reworded", message, hint=hint, severity=Severity.WARNING, story=new.id)
