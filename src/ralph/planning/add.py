"""Adds new stories to an existing plan: at once, or, while a run is active, by the run, between iterations.

A change of the plan during an iteration counts as the agent's and is reverted with its work. So what the user adds
during a run waits in the state folder, which agents do not touch, until the run picks it up. Stories get IDs of the
plan's kind. Finished tasks of the layout `steps` move to `.ralph/prd_archive.json`.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from ralph.config.trust import Status, check_trust, commands_of_plan
from ralph.core.changes import Change, RemoveStory, SetFields, apply
from ralph.core.errors import BadData, LockHeld, NotTrusted, RalphError
from ralph.core.plan import Order, Plan, Story
from ralph.core.ports import PlanRef
from ralph.core.problems import Place
from ralph.host.files import keep_aside, make_folder, read_bytes, write_bytes
from ralph.host.git.repo import identify
from ralph.host.locks import Lock
from ralph.planning.answer import DraftStory
from ralph.planning.waiting import TAKEN, inbox
from ralph.plans.lint import is_example
from ralph.plans.plan_edits import has_review_id, insert, move_first, next_id
from ralph.plans.registry import traits
from ralph.state.locks import describe, is_at_work, turn
from ralph.state.names import GIT_LOCK
from ralph.state.places import plan_state
from ralph.workspace.find import repository_of, store_for
from ralph.workspace.trust import read_record, write_trust


class Composed(Struct, frozen=True):
    changes: tuple[Change, ...]
    ids: dict[str, str]
    """Label of each new story → its id in the plan."""

    @property
    def new(self) -> tuple[str, ...]:
        return tuple(self.ids.values())


def is_untouched(plan: Plan) -> bool:
    """Only the examples of a new plan, so nothing can be lost."""
    return any(map(is_example, plan.stories)) and all(s.is_review_step or is_example(s) for s in plan.stories)


def compose(plan: Plan, stories: Sequence[DraftStory], *, taken: Iterable[str] = (), first: bool = False) -> Composed:
    """The changes that add these stories, in the given order. Examples are replaced.

    `taken`: ids that are no longer in the plan but must not be reused. `first`: before every other story.
    """
    examples = [story.id for story in plan.stories if is_example(story)]
    now, changes, ids = plan, list[Change](), dict[str, str]()
    used = [*taken]
    for number, draft in enumerate(stories, 1):
        fields = _fields(draft, ids, plan, number)
        if examples:
            ids[draft.id] = examples.pop(0)
            change: Change = SetFields(ids[draft.id], fields)
        else:
            ids[draft.id] = _fresh_id(now, used)
            fresh = is_untouched(plan)
            story = Story(id=ids[draft.id], **fields)
            if not fresh:  # beside existing stories, a new one gets the lowest priority
                story = msgspec.structs.replace(story, priority=0)
            change = insert(now, story)
        now = apply(now, [change])
        changes.append(change)
    changes += [RemoveStory(example) for example in examples]
    if first:
        for story_id in reversed(ids.values()):
            moves = move_first(now, story_id)
            now = apply(now, moves)
            changes += moves
    return Composed(tuple(changes), ids)


def _fields(draft: DraftStory, ids: dict[str, str], plan: Plan, number: int) -> dict[str, Any]:
    """Labels of earlier stories become ids; ids in the plan stay. A dependency on an archived story is dropped."""
    known = {story.id for story in plan.stories}
    waits = [ids.get(label, label if label in known else "") for label in draft.depends_on]
    fields: dict[str, Any] = {
        "title": draft.title.strip(),
        "description": _prose(draft.description),
        "criteria": tuple(line.strip() for line in draft.acceptance_criteria),
        "depends_on": tuple(dict.fromkeys(filter(None, waits))),
        "verify": tuple(line.strip() for line in draft.verify),
        "touches": tuple(filter(None, (line.strip() for line in draft.touches))),
    }
    return fields | ({"priority": number} if plan.order is Order.PRIORITY else {})


def _prose(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.replace("\r\n", "\n").strip().split("\n"))


def _fresh_id(plan: Plan, taken: Sequence[str]) -> str:
    own = [story.id for story in plan.stories if not has_review_id(story)]
    return next_id([*taken, *own], like=own[-1] if own else "")


FILE = "prd_archive.json"


def archive_path(ref: PlanRef) -> Path:
    return ref.folder / FILE


def to_archive(plan: Plan, wanted: Iterable[str]) -> list[str]:
    """The wanted tasks that are done and that no remaining task depends on."""
    going = {story.id for story in plan.stories if story.is_done} & set(wanted)
    while kept := going & {need for story in plan.stories if story.id not in going for need in story.depends_on}:
        going -= kept
    return [story.id for story in plan.stories if story.id in going]


def archived_ids(ref: PlanRef) -> tuple[str, ...]:
    if not traits(ref.layout).archives_done:
        return ()
    return tuple(str(task.get("id", "")) for task in _read(ref)["tasks"] if isinstance(task, dict))


def put_into_archive(ref: PlanRef, source: bytes, ids: Iterable[str], now: float) -> None:
    """Their text as it is in the plan, with the time. A task that is already archived is not written twice."""
    document = _read(ref)
    there = {str(task.get("id", "")) for task in document["tasks"] if isinstance(task, dict)}
    wanted = set(ids) - there
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now))
    tasks = msgspec.json.decode(source)["tasks"]
    document["tasks"] += [task | {"archivedAt": at} for task in tasks if str(task["id"]) in wanted]
    write_bytes(archive_path(ref), msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n")


def _read(ref: PlanRef) -> dict[str, Any]:
    """Read strictly: nothing is added to a damaged archive, so that nothing in it is lost."""
    path = archive_path(ref)
    if not path.exists():
        return {"tasks": []}
    try:
        document = msgspec.json.decode(read_bytes(path, within=ref.root))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadData(
            f"it is not valid JSON: {error}", where=Place(str(path)), hint="fix it, or move it away"
        ) from None
    if not isinstance(document, dict) or not isinstance(document.get("tasks"), list):
        raise BadData('it has no list of "tasks"', where=Place(str(path)), hint="fix it, or move it away")
    return document


class Addition(Struct, frozen=True):
    stories: tuple[DraftStory, ...]
    archive: tuple[str, ...] = ()
    """Finished tasks to archive, in layouts that have an archive, unless other tasks depend on them."""
    first: bool = False
    """Before every other story."""
    agreed: bool = False
    """The user has seen its commands."""


class Added(Struct, frozen=True):
    composed: Composed
    plan: Plan
    """The current plan; if a run has to add the stories, the plan as it will be."""
    archived: tuple[str, ...] = ()
    waits: bool = False
    """A run is active and adds them before its next iteration."""
    trusted: bool = True
    notices: tuple[str, ...] = ()


def add(ref: PlanRef, addition: Addition, env: Mapping[str, str]) -> Added:
    """Write the stories, or leave them for the active run."""
    state = plan_state(ref, env)
    if not is_at_work(state):
        earlier = take_in(ref, env)  # left for a run that ended before it read them
        return msgspec.structs.replace(_write(ref, addition, env), notices=tuple(earlier))
    if not addition.agreed and any(story.verify for story in addition.stories):
        raise NotTrusted(
            "a run is active and would run the commands of these stories, which are not trusted",
            hint="pass --trust to trust them, or wait until the run ends",
        )
    name = f"{time.time_ns()}.json"
    folder = make_folder(inbox(ref, env), private=True)
    write_bytes(folder / name, msgspec.json.encode(addition) + b"\n", mode=0o600)
    if not is_at_work(state) and (mine := _claim(folder / name)):  # the run ended meanwhile
        added = _write(ref, addition, env)
        mine.unlink(missing_ok=True)
        return added
    plan = _with_waiting(ref, folder, name, env)
    composed = compose(plan, addition.stories, taken=archived_ids(ref), first=addition.first)
    return Added(composed, apply(plan, composed.changes), waits=True)


def _with_waiting(ref: PlanRef, folder: Path, name: str, env: Mapping[str, str]) -> Plan:
    """The plan after the run has added what was queued earlier: it assigns IDs in that order."""
    plan = store_for(ref, env).load().plan
    for path in sorted(path for path in folder.glob("*.json") if path.name < name):
        with contextlib.suppress(msgspec.DecodeError, RalphError):
            earlier = msgspec.json.decode(read_bytes(path), type=Addition)
            changes = compose(plan, earlier.stories, taken=archived_ids(ref), first=earlier.first).changes
            plan = apply(plan, changes)
    return plan


def refuse_busy_tree(ref: PlanRef, env: Mapping[str, str]) -> None:
    """A run on another plan in the same tree would mistake what is written here for its own agent's work."""
    found = repository_of(ref.root, env)
    if found is None or is_at_work(plan_state(ref, env)):
        return
    lock = Lock(identify(found).git_dir / GIT_LOCK)
    if lock.is_held():
        raise LockHeld(
            f"{describe(lock.owner())} is running in this working tree, on another plan",
            hint="when it has ended, try again with --resume-draft: the draft is kept",
        )


def take_in(ref: PlanRef, env: Mapping[str, str]) -> list[str]:
    """Write the queued stories into the plan, between iterations of a run. Returns messages about them."""
    folder = inbox(ref, env)
    if not folder.is_dir():
        return []
    told = []
    for found in sorted(folder.iterdir()):
        path = _claim(found)
        if path is None:
            continue
        try:
            addition = msgspec.json.decode(read_bytes(path), type=Addition)
            if found == path and _is_in(ref, addition, env):  # a run was killed just after writing it
                path.unlink()
                continue
            added = _write(ref, addition, env)
        except (msgspec.DecodeError, RalphError) as error:
            aside = keep_aside(path)
            told.append(f"added stories could not be written to the plan: {error}; they are kept in {aside}")
            continue
        path.unlink(missing_ok=True)
        gone = f"; archived: {', '.join(added.archived)}" if added.archived else ""
        told.append(f"stories added by you: {', '.join(added.composed.new)}{gone}")
    return told


def _claim(path: Path) -> Path | None:
    """The process that renames the file is the only one that writes it to the plan."""
    if path.suffix == TAKEN:
        return path
    if path.suffix != ".json":
        return None
    try:
        return path.rename(path.with_suffix(TAKEN))
    except FileNotFoundError:
        return None


def _is_in(ref: PlanRef, addition: Addition, env: Mapping[str, str]) -> bool:
    there = {(story.title, story.criteria) for story in store_for(ref, env).load().plan.stories}
    return all((story.title.strip(), story.acceptance_criteria) in there for story in addition.stories)


def _write(ref: PlanRef, addition: Addition, env: Mapping[str, str]) -> Added:
    store = store_for(ref, env)
    with turn(ref, env):
        loaded = store.load()
        composed = compose(loaded.plan, addition.stories, taken=archived_ids(ref), first=addition.first)
        gone: list[str] = []
        if addition.archive and traits(ref.layout).archives_done:
            gone = to_archive(apply(loaded.plan, composed.changes), addition.archive)
        changes = [*composed.changes, *(RemoveStory(story) for story in gone)]
        store.planned(loaded, changes, {})  # before the archive is written: an error here changes nothing
        if gone:
            put_into_archive(ref, loaded.source, gone, time.time())
        after = store.save(loaded, changes)
    trusted = _trust(ref, loaded.plan, after.plan, env, agreed=addition.agreed)
    return Added(composed, after.plan, tuple(gone), trusted=trusted)


def _trust(ref: PlanRef, before: Plan, after: Plan, env: Mapping[str, str], *, agreed: bool) -> bool:
    """A plan that was trusted stays trusted, with the new commands if the user agreed to them."""
    name = ref.path.relative_to(ref.root).as_posix()
    old, new = commands_of_plan(before, name), commands_of_plan(after, name)
    if not new:
        return True
    try:
        record = read_record(ref.root, env)
    except BadData:
        return False
    if check_trust(record, old).status is not Status.TRUSTED or not (agreed or set(new) <= set(old)):
        return check_trust(record, new).status is Status.TRUSTED
    write_trust(ref.root, new, env)
    return True
