"""One plan on disk: read strictly, changed losslessly, never written after a failed read.

Values that the format has no field for (attempts, a failed state, a review) are in the sidecar, in the state folder.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from ralph.core.changes import AddStory, Change, RemoveStory, SetFields, apply
from ralph.core.errors import BadData, IllegalChange, PlanEdited, PlanError, SetupError
from ralph.core.plan import Plan, State, Story
from ralph.core.ports import Layout, PlanRef
from ralph.core.review import NO_REVIEW, Ledger, Review
from ralph.host.files import keep_aside, make_folder, read_bytes, write_bytes
from ralph.host.redaction import redact
from ralph.plans.integrity import prove_written


class Beside(Struct, frozen=True, omit_defaults=True):
    """The values of one story that its format has no field for."""

    state: State | None = None
    review: Review | None = None
    ledger: Ledger | None = None
    attempts: int | None = None
    grade: str | None = None
    notes: str | None = None
    verify: tuple[str, ...] | None = None
    touches: tuple[str, ...] | None = None
    description: str | None = None
    criteria: tuple[str, ...] | None = None
    depends_on: tuple[str, ...] | None = None
    priority: float | None = None
    why: str | None = None
    """Why the story failed or is blocked, in one sentence."""
    key: str | None = None
    """The story's content when this was written: the values belong to that content, not to the ID alone."""
    settings: str | None = None
    """The checks and settings it was tried with."""


NOT_OF_STORY = frozenset({"why", "key", "settings"})


class Sidecar(Struct, frozen=True):
    """The values of one plan, by story ID."""

    version: int = 1
    stories: dict[str, Beside] = {}

    def get(self, story_id: str) -> Beside:
        return self.stories.get(story_id, Beside())

    def with_fields(self, story_id: str, fields: dict[str, Any]) -> Sidecar:
        """Set fields; None removes a field."""
        entry = msgspec.structs.replace(self.get(story_id), **fields)
        stories = {key: value for key, value in self.stories.items() if key != story_id}
        if entry != Beside():
            stories[story_id] = entry
        return Sidecar(self.version, stories)

    def without(self, story_id: str) -> Sidecar:
        return Sidecar(self.version, {key: value for key, value in self.stories.items() if key != story_id})


def merge(plan: Plan, sidecar: Sidecar) -> Plan:
    """The plan as readers see it. The file takes precedence: a story it marks as done is done."""
    if not sidecar.stories:
        return plan
    return plan.with_stories(_merge_one(story, sidecar.stories.get(story.id)) for story in plan.stories)


def _merge_one(story: Story, beside: Beside | None) -> Story:
    if beside is None:
        return story
    values = msgspec.structs.asdict(beside)
    fields = {name: value for name, value in values.items() if value is not None and name not in NOT_OF_STORY}
    if story.is_done:
        fields.pop("state", None)
    return msgspec.structs.replace(story, **fields)


def read_sidecar(path: Path) -> tuple[Sidecar, str]:
    """The sidecar, and a notice if a damaged one was moved out of the way. A missing file is empty."""
    if not path.exists():
        return Sidecar(), ""
    try:
        sidecar = msgspec.json.decode(read_bytes(path), type=Sidecar)
        if sidecar.version < 1:
            raise msgspec.ValidationError(f"unknown version {sidecar.version}")
        if sidecar.version == 1:
            return sidecar, ""
        newer = sidecar.version
    except msgspec.DecodeError as error:
        newer = _version(path)
        if newer <= 1:
            aside = keep_aside(path)
            return Sidecar(), f"{path.name} was damaged ({error}); it was moved to {aside}"
    raise SetupError(
        f"{path} was written by a newer version of Ralph (format {newer}; this one reads 1)",
        hint="use that version, or move the file away: failed stories and attempts are then forgotten",
    )


def _version(path: Path) -> int:
    """Of a file whose other values cannot be read."""
    try:
        document = msgspec.json.decode(read_bytes(path))
    except msgspec.DecodeError:
        return 0
    version = document.get("version") if isinstance(document, dict) else 0
    return version if isinstance(version, int) else 0


def write_sidecar(path: Path, sidecar: Sidecar) -> None:
    make_folder(path.parent, private=True)
    write_bytes(path, msgspec.json.format(redact(msgspec.json.encode(sidecar)), indent=1) + b"\n")


_EMPTY = Story(id="", title="")
_KEPT_BY_LOOP = frozenset({"state", "attempts", "review", "ledger"})


class Loaded(Struct, frozen=True):
    """A plan as it was read. `plan` is the merged plan; `in_file` is what the file alone holds."""

    plan: Plan
    in_file: Plan
    source: bytes
    sidecar: Sidecar
    notices: tuple[str, ...] = ()
    home: str = ""
    """The real path of the file: the user may have linked it."""

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.source).hexdigest()


class PlanStore:
    def __init__(self, ref: PlanRef, layout: Layout, sidecar_path: Path, settings: str = "") -> None:
        """`settings`: the identity of a run's settings, recorded with what the run writes about a story."""
        self.ref = ref
        self._settings = settings
        self.layout = layout
        self._sidecar_path = sidecar_path
        self.last = b""
        """The text that was written last."""

    def load(self) -> Loaded:
        source = self._read()
        in_file = self._parse(source)
        sidecar, notice = read_sidecar(self._sidecar_path)
        notices = (notice,) if notice else ()
        home = os.path.realpath(self.ref.path)
        return Loaded(merge(in_file, sidecar), in_file, source, sidecar, notices, home)

    def understood(self, before: Loaded) -> tuple[Loaded, str]:
        """The current plan. If it cannot be read: the intended edit of `before`, and the problem.

        Raises PlanError if the edit is not understandable.
        """
        try:
            return self.load(), ""
        except PlanError as error:
            salvage = getattr(self.layout, "salvage", None)  # optional for third-party layouts
            source = salvage(self._read(), before.source) if salvage else None
            if source is None:
                raise
            return self.rebuilt(before, source), str(error)

    def save(self, loaded: Loaded, changes: Sequence[Change], why: dict[str, str] | None = None) -> Loaded:
        """Write the changes to disk, unless the plan has changed in the meantime."""
        after = self.planned(loaded, changes, why or {})
        if self._read() != loaded.source:
            raise IllegalChange(f"{self.ref.path} has changed since it was read", hint="check it, then try again")
        if after.sidecar != loaded.sidecar:
            write_sidecar(self._sidecar_path, after.sidecar)
        if after.source != loaded.source:
            write_bytes(self.ref.path, after.source)
        return after

    def planned(self, reading: Loaded, changes: Sequence[Change], why: dict[str, str]) -> Loaded:
        """The plan with the changes, in the file as far as its format allows, else in the state folder.

        The new text is parsed again: a change that would not read back as intended is refused. Nothing is written.
        """
        in_file, sidecar = split(reading, changes, self.layout)
        for story_id, sentence in why.items():
            sidecar = sidecar.with_fields(story_id, {"why": sentence or None})
        source = self.layout.edit(reading.source, in_file) if in_file else reading.source
        after = self._parse(source) if in_file else reading.in_file
        names = self.layout.SPEAKS - {"priority"}  # it may follow from the order
        prove_written(apply(reading.in_file, in_file).stories, after.stories, names, self.layout.NAME)
        plan = merge(after, sidecar)
        return Loaded(plan, after, source, self._stamped(sidecar, plan, changes), home=reading.home)

    def in_progress(self, reading: Loaded, story: str) -> Loaded:
        """The same with the story marked as in progress, if the format supports it. Nothing is written."""
        current = reading.plan.story(story)
        if current is None or current.state is not State.TODO or State.IN_PROGRESS not in self.layout.STATES:
            return reading
        try:
            return self.planned(reading, [SetFields(story, {"state": State.IN_PROGRESS})], {})
        except IllegalChange:  # a file that cannot be marked can still be worked through
            return reading

    def stamp(self, plan: Plan) -> str:
        """The identity of everything besides the story itself that decides about it."""
        text = "\0".join((self._settings, *plan.verify))
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]

    def _stamped(self, sidecar: Sidecar, plan: Plan, changes: Sequence[Change]) -> Sidecar:
        """Stamp the stories for which this run keeps something with their content."""
        touched = {c.story for c in changes if isinstance(c, SetFields) and not _KEPT_BY_LOOP.isdisjoint(c.fields)}
        for story in plan.stories if touched else ():
            if story.id in touched:
                has_state = story.attempts or story.review != NO_REVIEW or not story.is_open
                is_kept = bool(self._settings and has_state and not story.is_done)
                stamps = {"key": story.content_key, "settings": self.stamp(plan)} if is_kept else {}
                sidecar = sidecar.with_fields(story.id, {"key": None, "settings": None} | stamps)
        return sidecar

    def misplaced(self, reading: Loaded) -> str:
        """What has replaced the plan's folder since it was read, as a sentence; empty if it is unchanged."""
        path = _obstacle(self.ref.path, self.ref.root, reading.home)
        if path is None:
            return ""
        what = "is now a link" if path.is_symlink() else "is no longer a folder"
        return f"{path.relative_to(self.ref.root)} {what}"

    def source(self) -> bytes | None:
        """The current text of the plan; None if there is none that can be read."""
        try:
            return self._read()
        except PlanError:
            return None

    def rebuilt(self, reading: Loaded, source: bytes) -> Loaded:
        """`reading` with another text. Raises PlanError."""
        return self._loaded(source, reading.sidecar, reading.home)

    def _loaded(self, source: bytes, sidecar: Sidecar, home: str, notices: tuple[str, ...] = ()) -> Loaded:
        in_file = self._parse(source)
        return Loaded(merge(in_file, sidecar), in_file, source, sidecar, notices, home)

    def write(self, reading: Loaded, over: Collection[bytes] | None = None) -> None:
        """Write exactly this to disk, whatever an agent has put there.

        With `over`, PlanEdited is raised if the text on disk is none of these, and nothing is written.
        """

        def refuse_edited() -> None:
            if over is not None and (now := self.source()) is not None and now not in (*over, reading.source):
                raise PlanEdited(f"{self.ref.path} was edited meanwhile")

        refuse_edited()
        _clear_the_way(self.ref.path, self.ref.root, reading.home)
        if self.source() != reading.source:
            write_bytes(self.ref.path, reading.source, check=refuse_edited)
        self.last = reading.source
        if read_sidecar(self._sidecar_path)[0] != reading.sidecar:
            write_sidecar(self._sidecar_path, reading.sidecar)

    def dump(self, reading: Loaded) -> bytes:
        return msgspec.msgpack.encode((reading.source, reading.sidecar, os.fsencode(reading.home)))

    def undump(self, data: bytes) -> Loaded:
        source, sidecar, home = msgspec.msgpack.decode(data, type=tuple[bytes, Sidecar, Any])
        return self._loaded(source, sidecar, os.fsdecode(home))

    def _read(self) -> bytes:
        try:
            return read_bytes(self.ref.path, within=self.ref.root)
        except BadData as error:
            raise PlanError(error.message, hint=error.hint, where=error.where) from None

    def _parse(self, source: bytes) -> Plan:
        return self.layout.parse(source, str(self.ref.path))


def _clear_the_way(path: Path, root: Path, home: str) -> None:
    """Clear the path of a plan. What was there when it was read stays, including the user's links."""
    while (obstacle := _obstacle(path, root, home)) is not None:
        _remove(obstacle)
    if path.is_symlink() and os.path.realpath(path) != home:
        path.unlink()
    make_folder(path.parent)
    if path.exists() and not path.is_file():
        _remove(path)


def _obstacle(path: Path, root: Path, home: str) -> Path | None:
    """The first folder from the workspace down to `path` that is not a folder, or is a link to a different one."""
    above = [folder for folder in path.parents if folder != root and folder.is_relative_to(root)]
    for folder in reversed(above):
        if folder.is_symlink() and os.path.realpath(path) != home:
            return folder
        if os.path.lexists(folder) and not folder.is_dir():
            return folder
    return None


def _remove(path: Path) -> None:
    """Remove what is in the way: empty things are deleted, files and folders are moved."""
    if path.is_symlink() or not (path.is_dir() or path.is_file()):
        path.unlink()
        return
    try:
        path.rmdir()
    except OSError:
        path.rename(path.with_name(f"{path.name}.moved-{time.time_ns()}"))


def split(loaded: Loaded, changes: Sequence[Change], layout: Layout) -> tuple[list[Change], Sidecar]:
    """The changes for the file, and the sidecar with the rest of them."""
    in_file: list[Change] = []
    sidecar = loaded.sidecar
    for change in changes:
        match change:
            case SetFields(story_id, fields):
                for_file, beside = _split_fields(fields, layout)
                if for_file:
                    in_file.append(SetFields(story_id, for_file))
                sidecar = sidecar.with_fields(story_id, beside) if beside else sidecar
            case AddStory(story, after):
                bare, beside = _split_story(story, layout)
                in_file.append(AddStory(bare, after))
                sidecar = sidecar.with_fields(story.id, beside) if beside else sidecar
            case RemoveStory(story_id):
                in_file.append(change)
                sidecar = sidecar.without(story_id)
            case _:
                in_file.append(change)
    return in_file, sidecar


def _split_fields(fields: dict[str, Any], layout: Layout) -> tuple[dict[str, Any], dict[str, Any]]:
    for_file: dict[str, Any] = {}
    beside: dict[str, Any] = {}
    for name, value in fields.items():
        if name == "state":
            sayable = value in layout.STATES
            for_file["state"] = value if sayable else State.TODO
            beside["state"] = None if sayable else value
        elif name in layout.SPEAKS:
            for_file[name] = value
        else:
            beside[name] = None if value == getattr(_EMPTY, name) else value
    return for_file, beside


def _split_story(story: Story, layout: Layout) -> tuple[Story, dict[str, Any]]:
    names = [f for f in Beside.__struct_fields__ if f not in NOT_OF_STORY]
    for_file, beside = _split_fields({name: getattr(story, name) for name in names}, layout)
    bare = Story(id=story.id, title=story.title, extra=story.extra, ref=story.ref)
    beside = {name: value for name, value in beside.items() if value is not None}
    return msgspec.structs.replace(bare, **for_file), beside
