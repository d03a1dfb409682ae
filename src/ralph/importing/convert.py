"""`ralph plan export` and `ralph plan convert`: the same plan in another layout, and what gets lost.

A conversion archives the whole old plan, writes the new one in its place, and carries over the state kept beside it.
The archive is complete before anything is written, and the new plan exists before anything is removed.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

from ralph.archive.archive import Dates, Shelved, owns_its_folder, remove, shelve
from ralph.config.trust import Status, check_trust
from ralph.core.changes import AddStory
from ralph.core.errors import BadData, IllegalChange, UsageError
from ralph.core.plan import Plan
from ralph.core.ports import Layout, Naming, PlanRef, ProjectFacts
from ralph.host.files import read_bytes
from ralph.importing.stories import read_imports, write_imports
from ralph.planning.calls import naming
from ralph.plans.fresh import Composed, Loss, compose, kept_beside, losses
from ralph.plans.registry import layout, traits
from ralph.plans.store import Loaded, Sidecar, merge, split, write_sidecar
from ralph.setup.scaffold import (
    Request,
    folder_name,
    fresh_files,
    ignore_file,
    refer,
    refuse_two_plans_in_one_folder,
    trust_own,
)
from ralph.setup.toolchain import Toolchain
from ralph.setup.write_files import Existing, NewFile, Placed, place
from ralph.state.locks import claim
from ralph.state.names import SIDECAR
from ralph.state.places import plan_state
from ralph.workspace.find import OpenPlan
from ralph.workspace.trust import gather, is_inside_loop, read_record, refuse_inside_loop


class Exported(Struct, frozen=True):
    source: bytes
    losses: tuple[Loss, ...]
    ids: dict[str, str]
    ref: PlanRef | None = None
    """Where it was written; None: not written."""
    made: tuple[str, ...] = ()


class Converted(Struct, frozen=True):
    old: PlanRef
    new: PlanRef
    losses: tuple[Loss, ...]
    beside: tuple[Loss, ...]
    """What the new format has no place for and the state folder keeps."""
    composed: Composed
    sidecar: Sidecar
    archive: Path | None = None
    """None: a dry run."""
    placed: Placed = Placed()
    removed: tuple[Path, ...] = ()
    archived_only: tuple[Path, ...] = ()
    """Removed files whose text the new plan has no place for."""
    warnings: tuple[str, ...] = ()

    @property
    def ids(self) -> dict[str, str]:
        return self.composed.ids


def export_text(opened: OpenPlan, wanted: str, now: float) -> Exported:
    """Only the plan file, in another layout."""
    form = layout(wanted)
    ref = refer(Request(root=opened.root, layout=wanted, name=_name_for(opened, wanted)))
    composed = _composed(opened.plan, form, ref, now)
    return Exported(composed.source, tuple(losses(opened.plan, composed.in_file, composed.ids)), composed.ids)


def export_to(opened: OpenPlan, wanted: str, folder: Path, now: float) -> Exported:
    """Create a new workspace with this plan. An existing plan is never overwritten."""
    root = Path(os.path.realpath(folder))
    if root == opened.root:
        raise UsageError(f"{folder} is this workspace", hint=f"`ralph plan convert --layout {wanted}` does it in place")
    if os.path.lexists(root) and not root.is_dir():
        raise UsageError(f"{folder} is not a folder", hint="name a folder, or - for stdout")
    form = layout(wanted)
    request = Request(root=root, layout=wanted, name=_name_for(opened, wanted), now=now, plan=opened.plan, exact=True)
    ref = refer(request)
    if os.path.lexists(ref.path):
        raise UsageError(f"{ref.path} already exists", hint="name another folder; nothing was changed")
    refuse_two_plans_in_one_folder(ref)
    composed = _composed(opened.plan, form, ref, now)
    files = _carried(opened, ref, fresh_files(ref, request, Toolchain()))
    root.mkdir(parents=True, exist_ok=True)
    placed = place(root, files, now)
    lost = tuple(losses(opened.plan, composed.in_file, composed.ids))
    return Exported(composed.source, lost, composed.ids, ref, placed.made)


def propose(opened: OpenPlan, wanted: str, name: str, now: float, env: Mapping[str, str]) -> Converted:
    """What `convert` would do. Nothing is written."""
    refuse_inside_loop(env, "convert its own plan")
    old = opened.ref
    if wanted == old.layout:
        raise UsageError(f"{old.path} already has the layout {wanted}", hint="choose another layout")
    new = refer(Request(root=old.root, layout=wanted, name=name or _name_for(opened, wanted)))
    if os.path.lexists(new.path):
        raise UsageError(f"{new.path} already exists", hint="use another --name, or `ralph plan archive` it first")
    refuse_two_plans_in_one_folder(new, but=old.path)
    composed = _composed(opened.plan, layout(wanted), new, now)
    sidecar = _sidecar(opened, composed, layout(wanted))
    whole = merge(composed.in_file, sidecar)
    return Converted(
        old=old,
        new=new,
        losses=tuple(losses(opened.plan, whole, composed.ids)),
        beside=tuple(kept_beside(composed.in_file, whole, composed.ids)),
        composed=composed,
        sidecar=sidecar,
        warnings=tuple(_stale_settings(opened, new)),
    )


def convert(opened: OpenPlan, proposal: Converted, dates: Dates, now: float, env: Mapping[str, str]) -> Converted:
    """`dates`: for the archive's summary. Refused while a run works on the plan."""
    with claim(proposal.old, env, "convert"), claim(proposal.new, env, "convert"):
        return _convert(opened, proposal, dates, now, env)


def _convert(opened: OpenPlan, proposal: Converted, dates: Dates, now: float, env: Mapping[str, str]) -> Converted:
    old, new = proposal.old, proposal.new
    if _read(old.path, old.root) != opened.source:
        raise IllegalChange(f"{old.path} changed in the meantime", hint="check it, then try again")
    was_trusted = _is_trusted(opened, env)
    shelved = shelve(opened, dates, label="", keep=False, now=now, env=env)
    request = Request(root=new.root, layout=new.layout, name=_title(opened), now=now)
    plan_file = new.path.relative_to(new.root).as_posix()
    files = [f for f in fresh_files(new, request, Toolchain()) if f.path != plan_file]
    ignore, _, warning = ignore_file(new, env)
    safe = {item.source for item in shelved.items}
    files = [_over(file, new.root, safe) for file in _carried(opened, new, files)]
    try:
        placed = place(new.root, [NewFile(plan_file, proposal.composed.source), *files, *ignore], now)
        if proposal.sidecar.stories:
            write_sidecar(plan_state(new, env) / SIDECAR, proposal.sidecar)
    except BaseException:
        shutil.rmtree(shelved.path, ignore_errors=True)
        raise
    if record := read_imports(old, env):
        write_imports(new, env, {key: proposal.ids.get(story, story) for key, story in record.items()})
    gone = _going(shelved, old, new)
    remove(old, gone)
    (plan_state(old, env) / SIDECAR).unlink(missing_ok=True)
    texts = {file.data for file in files}
    only = {i.source for i in shelved.items if i.source in gone and not _is_in(shelved.path / i.inside, texts)}
    warnings = [*proposal.warnings, *([warning] if warning else [])]
    if was_trusted and (why := trust_own(new, placed.touched, env)):
        warnings.append(why)
    return msgspec.structs.replace(
        proposal,
        archive=shelved.path,
        placed=placed,
        removed=tuple(sorted(gone)),
        archived_only=tuple(sorted(only - {old.path})),
        warnings=tuple(warnings),
    )


def _composed(plan: Plan, form: Layout, ref: PlanRef, now: float) -> Composed:
    date = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now))
    return compose(plan, form, ref, ProjectFacts(name=plan.name, date=date))


def _sidecar(opened: OpenPlan, composed: Composed, form: Layout) -> Sidecar:
    """What the new format cannot store for each story, and why a story failed or is blocked."""
    nothing = Loaded(composed.in_file, composed.in_file, composed.source, Sidecar())
    stories = [
        msgspec.structs.replace(story, id=composed.ids[story.id], depends_on=()) for story in opened.plan.stories
    ]
    _, sidecar = split(nothing, [AddStory(story) for story in stories], form)
    in_file = {story.id: story for story in composed.in_file.stories}
    for story in stories:
        if sidecar.get(story.id).priority == in_file[story.id].priority:
            sidecar = sidecar.with_fields(story.id, {"priority": None})  # its place in the file says it
    for old_id, entry in opened.loaded.sidecar.stories.items():
        if entry.why and old_id in composed.ids:
            sidecar = sidecar.with_fields(composed.ids[old_id], {"why": entry.why})
    return sidecar


def _name_for(opened: OpenPlan, wanted: str) -> str:
    """The feature keeps its name. A PRD gets the next free number."""
    return "" if traits(wanted).naming is Naming.NUMBERED else _title(opened)


def _title(opened: OpenPlan) -> str:
    ref = opened.ref
    is_name = owns_its_folder(ref) and traits(ref.layout).naming is not Naming.NUMBERED
    return ref.folder.name if is_name else folder_name(ref.root)


def _carried(opened: OpenPlan, new: PlanRef, files: list[NewFile]) -> list[NewFile]:
    """Carry over requirements, specs and the progress log, if the new layout has a place for them."""
    old_places, new_places = opened.layout.locations(opened.ref), layout(new.layout).locations(new)
    texts: dict[Path, bytes] = {}
    wanted = old_places.requirements
    target = new_places.requirements or (new_places.specs or new.folder) / "requirements.md"
    for source, place_for in ((wanted, target), (old_places.progress, new_places.progress)):
        if source is not None and place_for is not None and (data := _read(source, opened.root)) is not None:
            texts[place_for] = data
    kept = [file for file in files if new.root / file.path not in texts]
    if new_places.readme is not None and target in texts:  # sessions look only where the table sends them
        page = target.relative_to(new.root).as_posix()
        for at, file in enumerate(kept):
            if new.root / file.path == new_places.readme:
                kept[at] = msgspec.structs.replace(file, data=naming(page, file.data))
    return [*kept, *(NewFile(path.relative_to(new.root).as_posix(), data) for path, data in texts.items())]


def _read(path: Path, root: Path) -> bytes | None:
    try:
        return read_bytes(path, within=root)
    except BadData:
        return None


def _over(file: NewFile, root: Path, safe: set[Path]) -> NewFile:
    """The new layout's own prompt replaces the old one, which is in the archive."""
    return msgspec.structs.replace(file, existing=Existing.REPLACE) if root / file.path in safe else file


def _going(shelved: Shelved, old: PlanRef, new: PlanRef) -> set[Path]:
    """In a folder that both plans share, only the old plan file is removed."""
    if owns_its_folder(old) and old.folder == new.folder:
        return {old.path} & shelved.going
    new_places = layout(new.layout).locations(new)
    stays = {new_places.requirements, new_places.progress, new_places.prompt}
    return {path for path in shelved.going if path not in stays}


def _is_in(path: Path, texts: set[bytes]) -> bool:
    data = _read(path, path.parent)
    return data is None or not data.strip() or data in texts


def _is_trusted(opened: OpenPlan, env: Mapping[str, str]) -> bool:
    if is_inside_loop(env):
        return False
    commands = gather(opened.root, opened.settings, [(opened.ref.path, opened.loaded.in_file)])
    return check_trust(read_record(opened.root, env), commands).status is Status.TRUSTED


def _stale_settings(opened: OpenPlan, new: PlanRef) -> list[str]:
    """Settings that still refer to the old plan."""
    config = opened.settings.config
    warnings = []
    if config.layout not in ("auto", new.layout):
        warnings.append(f"the setting `layout` is {config.layout}: `ralph config set layout {new.layout}`")
    if config.ralph_dir and not traits(new.layout).any_folder:
        warnings.append("the setting `ralph_dir` names the folder of a tasks.json: `ralph config unset ralph_dir`")
    return warnings
