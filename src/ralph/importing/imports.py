"""`ralph plan import`: work recorded for other tools becomes stories of a plan, all of it or nothing.

A story's source is recorded in a line of its notes and in the state folder: an agent may rewrite notes. Items that were
imported before are not imported again.
"""

from __future__ import annotations

import os
import time
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

from ralph.config.layers import Settings, load
from ralph.core.changes import AddStory, Change
from ralph.core.errors import BadData, LockHeld, PlanError, SetupError, UsageError
from ralph.core.plan import Plan, State, Story
from ralph.core.ports import Layout, PlanRef, ProjectFacts
from ralph.core.problems import Place, Problem
from ralph.host.files import write_bytes
from ralph.importing.formats import task_plan
from ralph.importing.kinds import Done
from ralph.importing.sources import Source, read_sources
from ralph.importing.stories import (
    Batch,
    Item,
    Made,
    Target,
    first_ids,
    in_order,
    make,
    more_ids,
    read_imports,
    remark,
    reworded,
    sources_in,
    write_imports,
)
from ralph.plans.fresh import compose, new_plan, plainly
from ralph.plans.integrity import problems_of
from ralph.plans.lint import Places, lint
from ralph.plans.plan_edits import insert
from ralph.plans.registry import layout, traits
from ralph.plans.store import Loaded, Sidecar, merge, write_sidecar
from ralph.setup.project_files import RealTree
from ralph.setup.scaffold import DEFAULT_LAYOUT, Request, refer, refuse_two_plans_in_one_folder, start_plan
from ralph.setup.toolchain import find
from ralph.state.locks import is_at_work, turn
from ralph.state.names import SIDECAR
from ralph.state.places import plan_state
from ralph.workspace.find import Choice, find_plans, open_ref, store_for
from ralph.workspace.lint import has_checks
from ralph.workspace.trust import refuse_inside_loop

MOST = 1000
"""More stories than this are unmanageable, and a large Markdown plan is slow to write."""


class ImportRequest(Struct, frozen=True, kw_only=True):
    """What to import, and where to."""

    root: Path
    sources: tuple[Source, ...]
    layout: str = ""
    into: str = ""
    ralph_dir: str = ""
    append: bool = False
    done: Done = Done.KEEP
    again: bool = False
    """Also import what was imported before and is no longer in the plan."""
    dry: bool = False
    now: float = 0.0


class Known(Struct, frozen=True):
    """An item that was imported before."""

    key: str
    story: str
    is_there: bool
    """The story is still in the plan."""


class Imported(Struct, frozen=True):
    ref: PlanRef
    is_new: bool
    kinds: tuple[str, ...]
    stories: tuple[Story, ...]
    skipped: tuple[Known, ...] = ()
    done_left_out: int = 0
    problems: tuple[Problem, ...] = ()
    warnings: tuple[str, ...] = ()
    made: tuple[str, ...] = ()
    """Files of a new plan."""
    names_commands: bool = False
    """Stories came with commands that the user has to trust before a run."""


def import_stories(request: ImportRequest, env: Mapping[str, str]) -> Imported:
    refuse_inside_loop(env, "import stories")
    batches = [_near(batch, request.root) for batch in read_sources(request.sources)]
    target = _target(request, env)
    if target is None:
        return _start(request, batches, env)
    ref, settings = target
    if any(os.path.realpath(source.name) == os.path.realpath(ref.path) for source in request.sources):
        raise UsageError(f"{ref.path} is the plan itself", hint="name another plan with --into, or another file")
    if request.dry:
        return _append(request, batches, ref, settings, env)
    if is_at_work(plan_state(ref, env)):
        hint = "import them when it has ended; `ralph add` queues single stories"
        raise LockHeld(f"a run is active on {ref.path} and would mistake new stories for its agent's", hint=hint)
    with turn(ref, env):
        return _append(request, batches, ref, settings, env)


def _near(batch: Batch, root: Path) -> Batch:
    """The agent can read a source inside the project, so its stories need not repeat all of it."""
    path = Path(os.path.realpath(batch.file))
    if batch.kind != "plans" or not path.is_relative_to(root) or not path.is_file():
        return batch
    where = path.relative_to(root).as_posix()
    return msgspec.structs.replace(batch, items=tuple(task_plan.shortened(item, where) for item in batch.items))


def _target(request: ImportRequest, env: Mapping[str, str]) -> tuple[PlanRef, Settings] | None:
    """The existing plan to import into, or None to create a new one."""
    named = bool(request.layout or request.into or request.ralph_dir)
    if not named:
        config = load(root=request.root, layout="", name=None, env=env, flags={}).config
        has_folder = config.ralph_dir and (request.root / config.ralph_dir).is_dir()
        if not has_folder and not find_plans(request.root, Choice()):
            _refuse_to_append(request)
            return None
        unset = dict.fromkeys(("layout", "feature", "prd", "ralph_dir", "config"))
        return open_ref(Namespace(project_dir=str(request.root), **unset), env)
    refs = find_plans(request.root, Choice(layout=request.layout, ralph_dir=request.ralph_dir))
    if request.ralph_dir:
        refs = [ref for ref in refs if ref.path.exists()]
    elif request.into:
        refs = [ref for ref in refs if request.into in (ref.name, f"PRD-{ref.name}", ref.folder.name)]
    if len(refs) > 1:
        listed = ", ".join(str(ref.path.relative_to(request.root)) for ref in refs[:10])
        raise UsageError(f"several plans match: {listed}", hint="name one with --feature or --prd, and --layout")
    if not refs:
        _refuse_to_append(request)
        return None
    return refs[0], load(root=request.root, layout=refs[0].layout, name=None, env=env, flags={})


def _refuse_to_append(request: ImportRequest) -> None:
    if request.append:
        hint = "leave out --append to create one, or name it with --feature"
        raise UsageError(f"no plan to append to in {request.root}", hint=hint)


def _append(
    request: ImportRequest, batches: list[Batch], ref: PlanRef, settings: Settings, env: Mapping[str, str]
) -> Imported:
    store = store_for(ref, env)
    loaded = store.load()
    plan = loaded.plan
    if _is_untouched(loaded, ref):
        return _start(request, batches, env, instead=(ref, loaded))
    record = read_imports(ref, env)
    there = {**{key: s for key, s in record.items() if plan.story(s)}, **sources_in(plan)}
    items, skipped, settled = _chosen(request, batches, record, there)
    report = _report(ref, batches, skipped, len(settled))
    if not items:
        return report
    first = insert(plan, Story(id="", title="x"))
    ids = more_ids(first.story.id, len(items), (story.id for story in plan.stories))
    made = make(items, ids, batches[0].file, Target(layout=ref.layout, plan=plan, known=there, settled=settled))
    lowest = max((story.priority for story in plan.stories), default=0)
    common = _verify_of(batches)  # the plan has its own commands for all stories
    added = plan.with_stories(
        msgspec.structs.replace(
            story,
            priority=story.priority + lowest if story.priority else 0,
            verify=tuple(dict.fromkeys((*common, *story.verify))),
        )
        for story in made.stories
    )
    stories = plainly(added, store.layout).stories
    after = [first.after, *(story.id for story in stories)]
    changes: list[Change] = [AddStory(story, before) for story, before in zip(stories, after, strict=False)]
    if broken := problems_of((*plan.stories, *stories), str(ref.path)):
        raise PlanError.of(broken)
    planned = store.planned(loaded, changes, made.why)
    linted = _linted(planned, ref, settings, set(ids), dry=request.dry)
    report = msgspec.structs.replace(
        report,
        stories=tuple(story for story in planned.plan.stories if story.id in set(ids)),
        problems=(*report.problems, *made.problems, *reworded(made.stories, planned.plan, {}), *linted),
        names_commands=any(story.verify for story in stories),
    )
    if not request.dry:
        _written(lambda: store.save(loaded, changes, made.why), ref)
        write_imports(ref, env, record | made.keys)
    return report


def _is_untouched(loaded: Loaded, ref: PlanRef) -> bool:
    """Whether the plan contains only the examples of a new plan."""
    _, sample = new_plan(layout(ref.layout), ref, ProjectFacts(name="x", date="2026-01-01T00:00:00Z"))
    mine = [(story.id, story.title, story.criteria, story.state) for story in loaded.plan.stories]
    return mine == [(story.id, story.title, story.criteria, story.state) for story in sample.stories]


def _start(
    request: ImportRequest,
    batches: list[Batch],
    env: Mapping[str, str],
    *,
    instead: tuple[PlanRef, Loaded] | None = None,
) -> Imported:
    """A new plan, or one that replaces (`instead`) an existing plan with only examples in it."""
    name = instead[0].layout if instead else request.layout or DEFAULT_LAYOUT
    form = layout(name)
    scaffold = Request(root=request.root, layout=name, name=request.into, ralph_dir=request.ralph_dir, now=request.now)
    ref = instead[0] if instead else refer(scaffold)
    refuse_two_plans_in_one_folder(ref)
    date = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(request.now))
    facts = ProjectFacts(name=request.into or batches[0].name or ref.name or request.root.name, date=date)
    _, sample = new_plan(form, ref, facts)
    # A record of an earlier plan in this place is none of the new one's business.
    items, skipped, settled = _chosen(request, batches, {}, {})
    report = _report(ref, batches, skipped, len(settled))
    if not items:
        return report
    has_phases = traits(name).has_phases
    if has_phases and not any(item.priority for item in items):  # phases in the order in which they first appear
        phases = list(dict.fromkeys(item.phase for item in items))
        items.sort(key=lambda item: phases.index(item.phase))
    target = Target(layout=name, plan=sample, settled=settled, has_phases=has_phases)
    made = make(items, first_ids(items, sample), batches[0].file, target)
    verify = _verify_of(batches)
    plan = Plan(name=facts.name, stories=made.stories, verify=verify, order=sample.order, reviewed=sample.reviewed)
    if instead:
        old = instead[1].in_file
        plan = msgspec.structs.replace(old, stories=made.stories, verify=(*old.verify, *verify))
    composed = compose(plan, form, ref, facts, phases=made.phases, exact=bool(instead))
    loaded = Loaded(composed.in_file, composed.in_file, composed.source, _sidecar(made, form))
    settings = load(root=request.root, layout=name, name=None, env=env, flags={})
    known_checks = bool(find(RealTree(request.root)).checks)
    linted = _linted(loaded, ref, settings, None, dry=request.dry, known_checks=known_checks)
    names_commands = bool(verify) or any(story.verify for story in plan.stories)
    changed = reworded(made.stories, composed.in_file, composed.ids)
    report = msgspec.structs.replace(
        report,
        is_new=instead is None,
        stories=merge(composed.in_file, loaded.sidecar).stories,
        problems=(*report.problems, *made.problems, *changed, *linted),
        names_commands=names_commands,
    )
    if request.dry:
        return report
    if instead:
        _written(lambda: write_bytes(ref.path, composed.source), ref)
    else:
        scaffold = msgspec.structs.replace(scaffold, plan=plan, phases=made.phases, is_foreign=names_commands)
        started = start_plan(scaffold, env)
        report = msgspec.structs.replace(report, made=started.placed.touched, warnings=started.warnings)
    if loaded.sidecar.stories:
        write_sidecar(plan_state(ref, env) / SIDECAR, loaded.sidecar)
    write_imports(ref, env, made.keys)
    return report


def _sidecar(made: Made, form: Layout) -> Sidecar:
    """Blocked stories, a state no format can store."""
    sidecar = Sidecar()
    for story in made.stories:
        if story.state not in form.STATES:
            sidecar = sidecar.with_fields(story.id, {"state": story.state})
    for story_id, why in made.why.items():
        sidecar = sidecar.with_fields(story_id, {"why": why})
    return sidecar


def _chosen(
    request: ImportRequest, batches: list[Batch], record: Mapping[str, str], there: Mapping[str, str]
) -> tuple[list[Item], tuple[Known, ...], frozenset[str]]:
    """What is new, what was imported before, and the keys of finished work that is skipped."""
    items: dict[str, Item] = {}
    skipped: list[Known] = []
    settled: set[str] = set()
    for item in in_order([item for batch in batches for item in batch.items]):
        if item.key in there:
            skipped.append(Known(item.key, there[item.key], is_there=True))
        elif item.key in record and not request.again:
            skipped.append(Known(item.key, record[item.key], is_there=False))
            settled.add(item.key)
        elif item.state is State.DONE and request.done is Done.SKIP:
            settled.add(item.key)
        elif item.state is State.DONE and request.done is Done.TODO:
            items[item.key] = msgspec.structs.replace(item, state=State.TODO)
        else:
            items[item.key] = item
    if len(items) > MOST:
        raise BadData(
            f"{len(items):,} stories are too many for one import; the limit is {MOST:,}",
            where=Place(batches[0].file),
            hint="split the source, or skip finished work with --done skip",
        )
    return list(items.values()), tuple(skipped), frozenset(settled - {known.key for known in skipped if known.is_there})


def _report(ref: PlanRef, batches: list[Batch], skipped: tuple[Known, ...], left_out: int) -> Imported:
    """What is reported if there is nothing new."""
    kinds = tuple(dict.fromkeys(batch.kind for batch in batches))
    problems = (*(problem for batch in batches for problem in batch.left), *_unplaced(batches))
    return Imported(ref, False, kinds, (), skipped, left_out, problems)


def _unplaced(batches: list[Batch]) -> Iterator[Problem]:
    """Once for all files: a folder of tasks has the same fields in each."""
    counts: dict[str, int] = {}
    for batch in batches:
        for name, lines in batch.fields.items():
            counts[name] = counts.get(name, 0) + len(lines)
    if counts:
        said = ", ".join(f"{name} ({count})" for name, count in counts.items())
        first = next(batch for batch in batches if batch.fields)
        line = min(lines[0] for lines in first.fields.values())
        yield remark("left-out", f"fields that stories do not have: {said}", first.file, line)


def _verify_of(batches: list[Batch]) -> tuple[str, ...]:
    """Commands that prove a whole source prove each of its stories."""
    return tuple(dict.fromkeys(command for batch in batches for command in batch.verify))


def _linted(
    loaded: Loaded, ref: PlanRef, settings: Settings, ids: set[str] | None, *, dry: bool, known_checks: bool = False
) -> list[Problem]:
    """What `ralph check` would report about these stories and the whole plan. `dry`: no file has their lines."""
    problems = lint(
        loaded.in_file,
        Places(loaded.in_file, loaded.source, str(ref.path)),
        has_checks=known_checks or has_checks(settings.config),
        review_cap=settings.config.review.cap,
    )
    kept = [p for p in problems if ids is None or not p.story or p.story in ids or p.code == "example"]
    return [msgspec.structs.replace(p, where=Place()) for p in kept] if dry else kept


def _written(write: Callable[[], object], ref: PlanRef) -> None:
    try:
        write()
    except OSError as error:
        raise SetupError(
            f"could not write {ref.path}: {error.strerror}; nothing was imported",
            hint="check disk space and the folder's permissions, then try again",
        ) from None
