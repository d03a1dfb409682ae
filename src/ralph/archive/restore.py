"""Restores an archived plan to its place, if that is free or holds only unchanged templates.

The archive is kept. Its own claims are not trusted: where its files go follows from the layout.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from ralph.archive.archive import Item, copy, fresh_now, owns_its_folder, parts_of, walk
from ralph.core.errors import BadData, SetupError
from ralph.core.ports import PlanRef
from ralph.host.files import keep_aside, make_folder, read_bytes, sync_folder, write_bytes
from ralph.plans.registry import layout, plan_in, traits
from ralph.setup.write_files import Existing, NewFile, check_inside, place
from ralph.state import names
from ralph.state.locks import claim
from ralph.state.places import plan_state
from ralph.workspace.archives import MANIFEST, SIDECAR, Archive, Manifest
from ralph.workspace.trust import refuse_inside_loop

_DATES = re.compile(rb"\d{4}-\d\d-\d\d(T[\d:.]+(Z|[+-]\d\d:?\d\d)?)?")


class Restored(Struct, frozen=True):
    ref: PlanRef
    files: tuple[Path, ...]
    kept: tuple[Path, ...] = ()
    """Prompts and similar files that stayed in the workspace and now differ from the archive."""


def restore(root: Path, archive: Archive, now: float, env: Mapping[str, str]) -> Restored:
    if archive.manifest is None:
        raise BadData(
            f"{archive.path} does not say which plan it holds: {MANIFEST} is missing or damaged",
            hint="copy its files back by hand",
        )
    ref = _refer(root, archive.manifest)
    refuse_inside_loop(env, "restore a plan")
    with claim(ref, env, "archive restore"):
        return _bring_back(ref, archive.path, archive.manifest.summary, now, env)


def _bring_back(ref: PlanRef, archive: Path, summary: str, now: float, env: Mapping[str, str]) -> Restored:
    items = _items(ref, archive, summary)
    if not any(item.source == ref.path for item in items):
        raise BadData(f"{archive} does not contain {ref.path.name}", hint="copy its files back by hand")
    fresh = {ref.root / file.path: file.data for file in fresh_now(ref, now)}
    if owns_its_folder(ref):
        restored = _swap_folder(ref, archive, items, fresh)
    else:
        restored = _put_back(ref, archive, items, fresh, now)
    _restore_sidecar(archive / SIDECAR, plan_state(ref, env) / names.SIDECAR)
    return restored


def _refer(root: Path, manifest: Manifest) -> PlanRef:
    known = layout(manifest.layout)
    folder = check_inside(root, manifest.folder)
    if traits(manifest.layout).any_folder and folder.parent != root / ".ralph":
        return plan_in(root, folder)
    ref = known.refer(root, manifest.name)
    if ref.folder != folder:
        raise BadData(
            f"the archive says its plan was in {manifest.folder}, but {manifest.name} belongs in "
            f"{ref.folder.relative_to(root)}",
            hint="copy its files back by hand",
        )
    return ref


def _items(ref: PlanRef, archive: Path, summary: str) -> list[Item]:
    own = {MANIFEST, SIDECAR, summary}
    inside = [name for path in walk(archive) if (name := path.relative_to(archive).as_posix()) not in own]
    if owns_its_folder(ref):
        return [Item(ref.folder / name, name) for name in inside]
    items = []
    for part in parts_of(ref, layout(ref.layout).locations(ref)):
        for name in inside:
            if name == part.inside:
                items.append(Item(part.source, name, part.stays))
            elif name.startswith(f"{part.inside}/"):
                items.append(Item(part.source / name.removeprefix(f"{part.inside}/"), name, part.stays))
    return items


def _swap_folder(ref: PlanRef, archive: Path, items: Sequence[Item], fresh: Mapping[Path, bytes]) -> Restored:
    """The whole folder appears at once. One that holds only templates is replaced."""
    check_inside(ref.root, ref.folder.relative_to(ref.root).as_posix())
    if os.path.lexists(ref.folder):
        archived = {item.source: archive / item.inside for item in items}
        _refuse_if_edited([path for path in walk(ref.folder) if not _is_untouched(path, fresh, archived)], ref)
    make_folder(ref.folder.parent)
    stage = Path(tempfile.mkdtemp(prefix=".new-", dir=ref.folder.parent))
    try:
        new, old = stage / "new", stage / "old"
        new.mkdir()
        for item in items:
            copy(archive / item.inside, new / item.inside)
        if os.path.lexists(ref.folder):
            ref.folder.rename(old)
        new.rename(ref.folder)
    except OSError as error:
        if os.path.lexists(stage / "old") and not os.path.lexists(ref.folder):
            (stage / "old").rename(ref.folder)
        raise SetupError(f"{ref.folder} could not be written: {error.strerror}; nothing was changed") from None
    finally:
        shutil.rmtree(stage, ignore_errors=True)
    sync_folder(ref.folder.parent)
    return Restored(ref, tuple(item.source for item in items))


def _put_back(ref: PlanRef, archive: Path, items: Sequence[Item], fresh: Mapping[Path, bytes], now: float) -> Restored:
    """File by file, for a folder that holds other things too."""
    archived = {item.source: archive / item.inside for item in items}
    for item in items:
        check_inside(ref.root, item.source.relative_to(ref.root).as_posix())
    taken = [item.source for item in items if not item.stays and os.path.lexists(item.source)]
    _refuse_if_edited([path for path in taken if not _is_untouched(path, fresh, archived)], ref)
    files = [
        NewFile(
            item.source.relative_to(ref.root).as_posix(),
            read_bytes(archive / item.inside, within=archive),
            Existing.KEEP if item.stays else Existing.REPLACE,
        )
        for item in items
    ]
    placed = place(ref.root, files, now)
    done = {ref.root / path for path in (*placed.touched, *placed.same)}
    return Restored(ref, tuple(sorted(done)), tuple(ref.root / path for path in placed.kept))


def _is_untouched(path: Path, fresh: Mapping[Path, bytes], archived: Mapping[Path, Path]) -> bool:
    """An unedited template, whatever its date, or the same content as in the archive."""
    try:
        data = read_bytes(path, within=path.parent)
        if path in archived and data == read_bytes(archived[path], within=archived[path].parent):
            return True
    except BadData:
        return False
    return path in fresh and _DATES.sub(b"", data) == _DATES.sub(b"", fresh[path])


def _refuse_if_edited(edited: Sequence[Path], ref: PlanRef) -> None:
    if edited:
        names = ", ".join(str(path.relative_to(ref.root)) for path in edited[:5])
        more = f" and {len(edited) - 5} more" if len(edited) > 5 else ""
        raise SetupError(
            f"these files would be overwritten: {names}{more}",
            hint="archive the current plan first with `ralph plan archive`; nothing was changed",
        )


def _restore_sidecar(archived: Path, target: Path) -> None:
    """What the plan's format cannot hold. The sidecar of the replaced templates is kept aside."""
    if target.exists():
        keep_aside(target)
    if archived.is_file() and not archived.is_symlink():
        make_folder(target.parent, private=True)
        write_bytes(target, read_bytes(archived, within=archived.parent))
