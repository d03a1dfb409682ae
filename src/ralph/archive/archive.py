"""Archive a plan. The copy is complete and on disk before anything is removed.

A plan with its own folder (`.ralph/<feature>`, `.ralph/PRD-N`) is archived as a whole; its folder is removed, or with
`keep` recreated. Where the folder is shared (`ralph/`, `.ralph/spec.md`, `.ralph/prd.json`) the plan, its requirements,
log and specs are archived and replaced with fresh ones. Prompts, readme and learnings are copied and stay.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from msgspec import Struct

from ralph.core.errors import BadData, SetupError, UsageError
from ralph.core.events import IterationEnded, Record, RunStarted
from ralph.core.names import safe_name
from ralph.core.plan import Mode, Plan, State, Story
from ralph.core.ports import Locations, Naming, PlanRef
from ralph.core.text import one_line
from ralph.host.files import make_folder, sync_folder, write_bytes
from ralph.journal.records import read
from ralph.plans.registry import traits
from ralph.setup.project_files import RealTree
from ralph.setup.scaffold import Request, folder_name, fresh_files, trust_own
from ralph.setup.toolchain import find
from ralph.setup.write_files import Existing, NewFile, check_inside, place
from ralph.state import names
from ralph.state.locks import claim
from ralph.state.places import as_text, plan_state, workspace_state
from ralph.state.runs import journal_path, list_runs
from ralph.workspace.archives import MANIFEST, SIDECAR, Manifest, archive_name, archives, free_name
from ralph.workspace.find import OpenPlan
from ralph.workspace.trust import refuse_inside_loop


class Dates(Struct, frozen=True):
    """ISO 8601; empty if unknown."""

    first: str = ""
    last: str = ""
    archived: str = ""


def attempts_in(records: Iterable[Record], plan: str, since: float = 0) -> dict[str, int]:
    """Attempts per story in these runs. The plan itself does not keep the attempts of a done story."""
    counted: dict[str, int] = {}
    is_ours = False
    for record in records:
        match event := record.event:
            case RunStarted():
                is_ours = event.plan == plan
            case IterationEnded(story=story, mode=mode, kind=kind) if is_ours and story and record.t >= since:
                if mode not in (Mode.REVIEW, Mode.ACCEPTANCE) and kind.uses_attempt:
                    counted[story] = counted.get(story, 0) + 1
    return counted


def summary(plan: Plan, layout: str, dates: Dates, attempts: Mapping[str, int] | None = None) -> str:
    done = plan.count(State.DONE)
    reviews = [story.review.count for story in plan.stories]
    counted = {story.id: max(story.attempts, (attempts or {}).get(story.id, 0)) for story in plan.stories}
    tried = list(counted.values())
    facts = [
        ("Stories done", f"{done} of {len(plan.stories)}"),
        *((f"Stories {state.value.replace('_', ' ')}", str(n)) for state in _UNDONE if (n := plan.count(state))),
        ("Layout", layout),
        ("Branch", f"`{plan.branch}`" if plan.branch else ""),
        ("Started", dates.first),
        ("Last change", dates.last),
        ("Archived", dates.archived),
        ("Attempts", f"{sum(tried)} total, up to {max(tried)} for one story" if any(tried) else ""),
        ("Reviews", f"{sum(reviews)} total, up to {max(reviews)} for one story" if any(reviews) else ""),
    ]
    lines = [f"# {one_line(plan.name) or 'Plan'}", ""]
    if plan.description.strip():
        lines += [one_line(plan.description), ""]
    lines += [f"- {name}: {one_line(value)}" for name, value in facts if value]
    lines += ["", "| Story | Title | State | Reviews | Attempts |", "|---|---|---|---|---|"]
    lines += [_row(story, counted[story.id]) for story in plan.stories]
    remarks = [f"- {one_line(s.id)}: {one_line(s.review.feedback)}" for s in plan.stories if s.review.feedback.strip()]
    if remarks:
        lines += ["", "## Review feedback", "", *remarks]
    return "\n".join(lines) + "\n"


_UNDONE = (State.IN_PROGRESS, State.TODO, State.FAILED, State.BLOCKED)


def _row(story: Story, attempts: int) -> str:
    cells = [story.id, story.title, story.state.value.replace("_", " "), str(story.review.count), str(attempts)]
    return "| " + " | ".join(one_line(cell).replace("|", "\\|") for cell in cells) + " |"


Look = tuple[int, int]
"""A file's modification time and size."""


class Item(Struct, frozen=True):
    """A file or folder of a plan: its path in the workspace and its name in an archive."""

    source: Path
    inside: str
    stays: bool = False
    """It is copied, not moved."""


class Archived(Struct, frozen=True):
    path: Path
    manifest: Manifest
    moved: tuple[Path, ...]
    copied: tuple[Path, ...] = ()
    fresh: tuple[str, ...] = ()
    """Fresh files in the plan's place, relative to the workspace."""
    left: tuple[Path, ...] = ()
    """Files that changed while they were copied, and were therefore not removed."""


def archive(opened: OpenPlan, dates: Dates, *, label: str, keep: bool, now: float, env: Mapping[str, str]) -> Archived:
    """Archive a plan for the user. Refused while a run works on it."""
    refuse_inside_loop(env, "archive its own plan")
    with claim(opened.ref, env, "archive"):
        return put_away(opened, dates, label=label, keep=keep, now=now, env=env)


class Shelved(Struct, frozen=True):
    """A complete copy of a plan. Nothing has been removed yet."""

    path: Path
    manifest: Manifest
    items: tuple[Item, ...]
    looks: dict[Path, Look]
    """Each file's modification time and size when it was copied."""

    @property
    def going(self) -> set[Path]:
        """The archived files to remove: those that have not changed since they were copied."""
        return {i.source for i in self.items if not i.stays and look(i.source) == self.looks[i.source]}


def put_away(opened: OpenPlan, dates: Dates, *, label: str, keep: bool, now: float, env: Mapping[str, str]) -> Archived:
    """Archive a plan whose lock the caller holds."""
    ref = opened.ref
    shelved = shelve(opened, dates, label=label, keep=keep, now=now, env=env)
    going = shelved.going
    fresh = _start_afresh(ref, going, now) if keep or not owns_its_folder(ref) else ()
    remove(ref, going - {ref.root / path for path in fresh})
    (plan_state(ref, env) / names.SIDECAR).unlink(missing_ok=True)
    if fresh:
        trust_own(ref, fresh, env)
    return Archived(
        path=shelved.path,
        manifest=shelved.manifest,
        moved=tuple(sorted(going)),
        copied=tuple(sorted(item.source for item in shelved.items if item.stays)),
        fresh=fresh,
        left=tuple(sorted({i.source for i in shelved.items if not i.stays} - going)),
    )


def shelve(opened: OpenPlan, dates: Dates, *, label: str, keep: bool, now: float, env: Mapping[str, str]) -> Shelved:
    """Copy the plan and everything that belongs to it, including its state beside the plan file, to the archive."""
    ref, where = opened.ref, opened.layout.locations(opened.ref)
    base = safe_name(label, "label") if label else _label(ref, opened.plan)
    check_inside(ref.root, where.archive.relative_to(ref.root).as_posix())
    items = list(collect(ref, where, keep=keep))
    manifest = Manifest(
        layout=ref.layout,
        name=ref.name,
        folder=ref.folder.relative_to(ref.root).as_posix(),
        created=datetime.fromtimestamp(now, UTC).isoformat(),  # to the microsecond: `_attempts` counts from here
        done=opened.plan.count(State.DONE),
        total=len(opened.plan.stories),
        summary=_free_summary(items),
    )
    sidecar = plan_state(ref, env) / names.SIDECAR
    text = summary(opened.plan, ref.layout, dates, _attempts(ref, manifest.folder, env))
    texts = {manifest.summary: text.encode(), MANIFEST: _encoded(manifest)}
    if sidecar.is_file():
        texts[SIDECAR] = sidecar.read_bytes()
    final, looks = _shelve(where.archive, archive_name(base, now), items, texts)
    return Shelved(final, manifest, tuple(items), looks)


def _attempts(ref: PlanRef, folder: str, env: Mapping[str, str]) -> dict[str, int]:
    """Attempts of each story, from the journals since the previous plan was archived from the same place."""
    earlier = [a.manifest.created for a in archives(ref.root, [ref]) if a.manifest and a.manifest.folder == folder]
    since = _seconds(max(earlier, default=""))
    state = workspace_state(ref.root, env)
    records = (record for run in list_runs(state) for record in read(journal_path(state, run)))
    return attempts_in(records, as_text(ref.path), since)


def _seconds(when: str) -> float:
    try:
        return datetime.fromisoformat(when).timestamp()
    except ValueError:
        return 0


def owns_its_folder(ref: PlanRef) -> bool:
    """Whether the plan has its folder to itself: `.ralph/<feature>`, `.ralph/PRD-N`."""
    return ref.folder.parent == ref.root / ".ralph"


def parts_of(ref: PlanRef, where: Locations) -> list[Item]:
    """The files and folders that make up a plan, existing or not."""
    also = [ref.folder / name for name in traits(ref.layout).leftovers]
    going = (where.plan, where.requirements, where.progress, where.specs, *also)
    staying = (where.prompt, where.readme, where.learnings)
    found = []
    for path, stays in (*((path, False) for path in going), *((path, True) for path in staying)):
        if path is not None:
            inside = path.relative_to(ref.folder) if path.is_relative_to(ref.folder) else Path(path.name)
            found.append(Item(path, inside.as_posix(), stays))
    return found


def collect(ref: PlanRef, where: Locations, *, keep: bool) -> Iterator[Item]:
    """Every file to archive."""
    parts = parts_of(ref, where)
    if owns_its_folder(ref):
        staying = {part.source for part in parts if part.stays and keep}
        for path in walk(ref.folder):
            yield Item(path, path.relative_to(ref.folder).as_posix(), path in staying)
        return
    for part in parts:
        if part.source.is_dir() and not part.source.is_symlink():
            for path in walk(part.source):
                yield Item(path, f"{part.inside}/{path.relative_to(part.source).as_posix()}", part.stays)
        elif os.path.lexists(part.source):
            yield part


def walk(folder: Path) -> Iterator[Path]:
    """Files and links below a folder. Links are not followed."""
    for parent, folders, files in os.walk(folder, followlinks=False):
        folders.sort()
        links = [name for name in folders if (Path(parent) / name).is_symlink()]
        for name in sorted([*files, *links]):
            yield Path(parent) / name


def copy(source: Path, target: Path) -> Look:
    """Copy a file, or a link as a link, durably. Returns the source's time and size from before it was read."""
    seen = look(source)
    mode = source.lstat().st_mode
    target.parent.mkdir(parents=True, exist_ok=True)
    if stat.S_ISLNK(mode):
        target.symlink_to(source.readlink())
    elif stat.S_ISREG(mode):
        with source.open("rb") as reader, target.open("xb") as writer:
            shutil.copyfileobj(reader, writer, 1024 * 1024)
            writer.flush()
            os.fsync(writer.fileno())
        target.chmod(stat.S_IMODE(mode))
    else:
        raise BadData(f"{source} is neither a file nor a link and cannot be archived", hint="move it elsewhere")
    return seen


def look(path: Path) -> Look:
    try:
        found = path.lstat()
    except OSError:
        return 0, -1
    return found.st_mtime_ns, found.st_size


def fresh_now(ref: PlanRef, now: float) -> list[NewFile]:
    """What `ralph init` would write here today."""
    is_name = owns_its_folder(ref) and traits(ref.layout).naming is not Naming.NUMBERED
    name = ref.folder.name if is_name else ""
    return fresh_files(ref, Request(root=ref.root, layout=ref.layout, name=name, now=now), find(RealTree(ref.root)))


def _label(ref: PlanRef, plan: Plan) -> str:
    if owns_its_folder(ref):
        return ref.folder.name
    with contextlib.suppress(UsageError):
        return safe_name(plan.branch.rpartition("/")[2])
    return folder_name(ref.root)


def _free_summary(items: Sequence[Item]) -> str:
    taken = {item.inside for item in items}
    name, number = "summary.md", 1
    while name in taken:
        number += 1
        name = f"summary-{number}.md"
    return name


def _encoded(manifest: Manifest) -> bytes:
    return msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n"


def _shelve(shelf: Path, name: str, items: Sequence[Item], texts: Mapping[str, bytes]) -> tuple[Path, dict[Path, Look]]:
    """Make a complete and durable copy under an unused name. Also returns each source's time and size."""
    make_folder(shelf)
    new = Path(tempfile.mkdtemp(prefix=".new-", dir=shelf))
    try:
        new.chmod(0o755)
        looks = {item.source: copy(item.source, new / item.inside) for item in items}
        for inside, data in texts.items():
            write_bytes(new / inside, data)
        for parent, _, _ in os.walk(new):
            sync_folder(Path(parent))
        final = _take_name(new, shelf, name)
    except BaseException as error:
        shutil.rmtree(new, ignore_errors=True)
        if isinstance(error, OSError):
            raise SetupError(
                f"could not write the archive to {shelf}: {error.strerror}; nothing was changed",
                hint="check disk space and permissions there, then try again",
            ) from None
        raise
    sync_folder(shelf)
    return final, looks


def _take_name(new: Path, shelf: Path, name: str) -> Path:
    while True:
        final = shelf / free_name(shelf, name)
        try:
            return new.rename(final)
        except OSError:
            if not os.path.lexists(final):
                raise  # the name was not taken in the meantime


def _start_afresh(ref: PlanRef, going: set[Path], now: float) -> tuple[str, ...]:
    """Write fresh files in the plan's place. The old content of those they replace is already archived."""
    files = [
        msgspec.structs.replace(file, existing=Existing.REPLACE) if ref.root / file.path in going else file
        for file in fresh_now(ref, now)
    ]
    placed = place(ref.root, files, now)
    return (*placed.touched, *(path for path in placed.same if ref.root / path in going))


def remove(ref: PlanRef, sources: Iterable[Path]) -> None:
    """Remove what is in the archive, and folders that become empty."""
    folders = {ref.folder} if owns_its_folder(ref) else set()
    for source in sources:
        try:
            source.unlink(missing_ok=True)
        except OSError as error:
            raise SetupError(
                f"{source} is archived, but could not be removed: {error.strerror}",
                hint="remove it yourself; the archive is complete",
            ) from None
        folders |= {folder for folder in source.parents if folder.is_relative_to(ref.folder) and folder != ref.folder}
    for folder in sorted(folders, key=lambda path: len(path.parts), reverse=True):
        with contextlib.suppress(OSError):
            folder.rmdir()
