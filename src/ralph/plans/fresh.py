"""Write a new plan in any layout, adapted to what the layout can represent. `losses` reports what changed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from typing import Any

import msgspec
from msgspec import Struct

from ralph.core.changes import AddStory, Change, RemoveStory
from ralph.core.errors import IllegalChange, PlanError
from ralph.core.plan import Order, Plan, State, Story
from ralph.core.ports import Layout, PlanRef, ProjectFacts
from ralph.core.review import Review, ReviewStatus
from ralph.core.text import one_line
from ralph.plans.json_text import Style, decode_object, dump, key_of_list
from ralph.plans.registry import traits

_UNCOMPARED = ("id", "line")
_PLAN_FIELDS = ("name", "description", "branch", "verify", "extra")


class Fate(StrEnum):
    LOST = "lost"
    CHANGED = "changed"
    FILLED = "filled"
    """It was empty, and the format requires a value."""
    RENAMED = "renamed"
    BESIDE = "beside"
    """The format has no field for it; it is kept in the state folder."""


class Loss(Struct, frozen=True):
    """`story` is its previous ID; empty: it concerns the whole plan."""

    story: str
    field: str
    fate: Fate
    detail: str = ""


def losses(before: Plan, after: Plan, ids: Mapping[str, str]) -> list[Loss]:
    """`ids`: old ID → new ID, in the order of the new plan."""
    changes = list(_of_plan(before, after))
    if [ids[story.id] for story in before.stories] != [story.id for story in after.stories]:
        changes.append(Loss("", "order", Fate.CHANGED, "the stories are in order of priority"))
    now = {story.id: story for story in after.stories}
    moved = before.verify if not after.verify else ()
    for story in before.stories:
        changes += _of_story(story, now[ids[story.id]], ids, moved)
    return changes


def kept_beside(in_file: Plan, merged: Plan, ids: Mapping[str, str]) -> list[Loss]:
    """Values that are not in the file."""
    old = {new: story_id for story_id, new in ids.items()}
    kept = []
    for alone, whole in zip(in_file.stories, merged.stories, strict=True):
        for name in Story.__struct_fields__:
            if getattr(alone, name) != getattr(whole, name):
                kept.append(Loss(old[whole.id], name, Fate.BESIDE))
    return kept


def _of_plan(before: Plan, after: Plan) -> Iterator[Loss]:
    nothing = Plan(name="", stories=())
    for name in _PLAN_FIELDS:
        old, new = getattr(before, name), getattr(after, name)
        if name == "verify" and old and not new:
            yield Loss("", name, Fate.CHANGED, "now repeated as commands of each story")
        elif name == "extra":
            if gone := sorted(key for key in old if old[key] != new.get(key)):
                yield Loss("", name, Fate.LOST, ", ".join(gone))
        elif old != new:
            yield Loss("", name, _fate(old, new, getattr(nothing, name)), _short(new))


def _of_story(before: Story, after: Story, ids: Mapping[str, str], moved: tuple[str, ...]) -> Iterator[Loss]:
    """`moved`: the plan's commands that became each story's own, reported once for the plan."""
    if before.id != after.id:
        yield Loss(before.id, "id", Fate.RENAMED, after.id)
    nothing = Story(id="", title="")
    renamed = msgspec.structs.replace(before, depends_on=tuple(ids[d] for d in before.depends_on))
    for name in Story.__struct_fields__:
        if name in _UNCOMPARED:
            continue
        old, new = getattr(renamed, name), getattr(after, name)
        if name == "extra":
            if gone := sorted(key for key in old if key not in new or old[key] != new[key]):
                yield Loss(before.id, name, Fate.LOST, ", ".join(gone))
        elif old != new and not (name == "verify" and moved and new == tuple(dict.fromkeys((*moved, *old)))):
            yield Loss(before.id, name, _fate(old, new, getattr(nothing, name)), _detail(old, new))


def _fate(old: object, new: object, nothing: object) -> Fate:
    if new == nothing:
        return Fate.LOST
    return Fate.FILLED if old == nothing else Fate.CHANGED


def _detail(old: object, new: object) -> str:
    """The old and the new value, if short."""
    if isinstance(old, int | float) and isinstance(new, int | float) and not isinstance(old, bool):
        return f"{old:g} → {new:g}"
    return f"{old} → {new}" if isinstance(old, StrEnum) else ""


def _short(value: object) -> str:
    return one_line(value, 60) if isinstance(value, str) else ""


_KEYS = {"description": "description", "branch": "branchName", "verify": "verifyCommands"}
_AT_ONCE = 200
_DIGITS = re.compile(r"([0-9]+)\Z")


DONE_BEFORE = "Done before this plan was written; not proven by it."
_PLACEHOLDER = "a story that only lends its style"


class Composed(Struct, frozen=True):
    """A plan file that is not on disk yet."""

    source: bytes
    in_file: Plan
    """The plan as parsed back from the new file."""
    ids: dict[str, str]
    """Old ID → new ID, in file order."""


def compose(
    plan: Plan,
    form: Layout,
    ref: PlanRef,
    facts: ProjectFacts,
    *,
    phases: Mapping[str, str] | None = None,
    exact: bool = True,
) -> Composed:
    """`phases`: story → the part of the work it belongs to, for layouts that have headings.

    Not `exact`: fields the plan leaves empty keep the scaffold's values.
    """
    if not plan.stories:
        raise IllegalChange("no stories to write", hint="a plan needs at least one")
    scaffold, sample = new_plan(form, ref, facts)
    fitted, ids = _fit(plan, form, sample)
    phases = {ids[story_id]: phase for story_id, phase in (phases or {}).items() if phase}
    if write := _writer(form):
        fitted = plainly(fitted, form)
        source = write(fitted, phases).encode()
    else:
        source = _edited(scaffold, sample, fitted, form, exact=exact)
    return Composed(source, _checked(source, fitted, form, ref), ids)


def new_plan(form: Layout, ref: PlanRef, facts: ProjectFacts) -> tuple[bytes, Plan]:
    """The file of a new plan with its example stories, as text and as read."""
    source = form.scaffold(ref, facts)[ref.path.relative_to(ref.root).as_posix()].encode()
    return source, form.parse(source, str(ref.path))


def _writer(form: Layout) -> Callable[[Plan, Mapping[str, str]], str] | None:
    """The Markdown layouts write a new plan themselves."""
    return getattr(form, "write", None)


def plainly(plan: Plan, form: Layout) -> Plan:
    """The plan with texts that the layout can represent: Markdown cannot represent every text."""
    if (write := _writer(form)) is None:
        return plan

    def read_back(story: Story) -> Story | None:
        try:
            text = write(Plan(name="x", stories=(story,)), {}).encode()
            stories = form.parse(text, form.NAME).stories
        except (PlanError, UnicodeEncodeError):
            return None
        return stories[0] if len(stories) == 1 else None

    return plan.with_stories(_say_plainly(story, read_back) for story in plan.stories)


def _edited(scaffold: bytes, sample: Plan, plan: Plan, form: Layout, *, exact: bool) -> bytes:
    """The scaffold, with these stories in place of its example."""
    document = decode_object(scaffold) or {}
    key = key_of_list(document, [story.id for story in sample.stories])
    if not key:  # a third-party layout whose file is not JSON
        gone: list[Change] = [RemoveStory(story.id) for story in sample.stories]
        return form.edit(scaffold, [*(AddStory(_bare(story, form)) for story in plan.stories), *gone])
    for name, wanted in _KEYS.items():
        value = getattr(plan, name)
        if value or (exact and wanted in document):
            document[wanted] = value
    named = next((name for name in ("project", "feature", "name") if name in document), "")
    if named and (plan.name or exact):
        document[named] = plan.name
    if "createdAt" in document and isinstance(plan.extra.get("createdAt"), str):
        document["createdAt"] = plan.extra["createdAt"]
    sample_story = {**document.pop(key)[0], "id": _PLACEHOLDER}
    document |= {name: value for name, value in plan.extra.items() if name not in document and name not in _TAKEN}
    base = dump({**document, key: [sample_story]}, Style())
    written: list[Any] = []
    for start in range(0, len(plan.stories), _AT_ONCE):  # `edit` looks at all stories of a file for each new one
        some: list[Change] = [AddStory(_bare(story, form)) for story in plan.stories[start : start + _AT_ONCE]]
        written += msgspec.json.decode(form.edit(base, [*some, RemoveStory(_PLACEHOLDER)]))[key]
    return dump({**document, key: written}, Style()) + b"\n"


_TAKEN = frozenset(
    ["project", "feature", "name", "branchName", "description", "verifyCommands", "tasks", "userStories"]
)
"""Keys with a meaning in some JSON layout: an unrelated key must not acquire that meaning."""


def _bare(story: Story, form: Layout) -> Story:
    """Only the fields the format supports: `edit` refuses the rest."""
    fields = {name: getattr(story, name) for name in form.SPEAKS}
    return msgspec.structs.replace(Story(id=story.id, title=story.title, extra=story.extra), **fields)


def _checked(source: bytes, plan: Plan, form: Layout, ref: PlanRef) -> Plan:
    try:
        read = form.parse(source, str(ref.path))
    except PlanError as error:
        raise IllegalChange(f"{form.NAME} cannot represent this plan: {error.message}", hint=error.hint) from None
    if [story.id for story in read.stories] != [story.id for story in plan.stories]:
        raise IllegalChange(
            f"{form.NAME} cannot represent this plan: its stories would be read back differently",
            hint="look for text in a description or in notes that looks like a story",
        )
    return read


def _fit(plan: Plan, form: Layout, sample: Plan) -> tuple[Plan, dict[str, str]]:
    """The plan for another layout, and a map of old to new story IDs in the new order. `sample`: a new plan of it."""
    stories = list(plan.stories)
    if sample.order is Order.FILE and plan.order is Order.PRIORITY:
        stories.sort(key=lambda story: story.priority)
    ids = _new_ids(stories, getattr(form, "ID", None))
    fitted = [_fit_story(story, ids, plan, form, reviewed=sample.reviewed) for story in stories]
    return msgspec.structs.replace(plan, stories=tuple(fitted), order=sample.order, reviewed=sample.reviewed), ids


def _new_ids(stories: list[Story], valid: re.Pattern[str] | None) -> dict[str, str]:
    """A valid ID stays. Others get a valid one, with their own number if that is free."""
    if valid is None:
        return {story.id: story.id for story in stories}
    taken = {story.id for story in stories if valid.fullmatch(story.id)}
    is_step = not valid.fullmatch("US-001")
    ids: dict[str, str] = {}
    number = 0
    for story in stories:
        if valid.fullmatch(story.id):
            ids[story.id] = story.id
            continue
        own = _DIGITS.search(story.id)
        candidate = _numbered(int(own[1]), is_step) if own and len(own[1]) < 7 and int(own[1]) else ""
        while not candidate or candidate in taken:
            number += 1
            candidate = _numbered(number, is_step)
        taken.add(candidate)
        ids[story.id] = candidate
    return ids


def _numbered(number: int, is_step: bool) -> str:
    return f"1.{number}" if is_step else f"US-{number:03}"


def _fit_story(story: Story, ids: dict[str, str], plan: Plan, form: Layout, *, reviewed: bool) -> Story:
    notes, review, criteria = story.notes, story.review, story.criteria
    if traits(form.NAME).needs_criteria:
        criteria = tuple(text for text in criteria if text.strip()) or (story.title.strip() or story.id,)
    if reviewed and story.is_done:
        notes = notes if notes.strip() else DONE_BEFORE
        if review.status is not ReviewStatus.APPROVED:
            review = Review(ReviewStatus.APPROVED, review.count, review.feedback)
    # Markdown has no place for commands that verify every story.
    verify = tuple(dict.fromkeys((*plan.verify, *story.verify))) if hasattr(form, "write") else story.verify
    return msgspec.structs.replace(
        story,
        id=ids[story.id],
        criteria=criteria,
        depends_on=tuple(ids[d] for d in story.depends_on),
        state=story.state if story.state in form.STATES else State.TODO,
        notes=notes,
        review=review,
        verify=verify,
        line=0,
    )


def _say_plainly(story: Story, read_back: Callable[[Story], Story | None]) -> Story:
    """The story with texts that Markdown can represent, as close to the original as possible.

    `read_back` writes a story and parses it again; None if the result is not a valid plan.
    """
    alone = msgspec.structs.replace(story, depends_on=())
    if _says_the_same(alone, read_back(alone)):
        return story
    bare = Story(id=story.id, title="", state=story.state, ref=story.ref, priority=story.priority)
    for field, tries in _tries(alone).items():
        for value in tries:
            candidate = msgspec.structs.replace(bare, **{field: value})
            if _says_the_same(candidate, read_back(candidate)):
                bare = candidate
                break
    texts = {name: getattr(bare, name) for name in _TEXTS}
    return msgspec.structs.replace(story, **texts)


_TEXTS = ("title", "description", "criteria", "verify", "touches", "notes")


def _says_the_same(meant: Story, read: Story | None) -> bool:
    return read is not None and all(getattr(meant, name) == getattr(read, name) for name in ("id", *_TEXTS))


def _tries(story: Story) -> dict[str, list[object]]:
    """For each text, the ways to write it, most faithful first."""
    criteria = [one_line(text) for text in story.criteria]
    commands = tuple(text for text in story.verify if "\n" not in text and "\r" not in text)
    return {
        "title": [story.title, one_line(story.title), _words(story.title)],
        "description": _ways(story.description),
        "criteria": [
            story.criteria,
            tuple(text for text in criteria if text),
            tuple(words for text in criteria if (words := _words(text))),
        ],
        "verify": [story.verify, commands, tuple(command.strip() for command in commands if command.strip())],
        "touches": [story.touches, tuple(path for text in story.touches if (path := one_line(text)))],
        "notes": _ways(story.notes),
    }


def _ways(text: str) -> list[object]:
    lines = [one_line(line) for line in text.splitlines()]
    tidy = re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()
    return [text, tidy, tidy.replace("\n\n", "\n"), one_line(text), _words(text), f"Text: {_words(text)}"]


def _words(text: str) -> str:
    """Without anything that Markdown could interpret as markup."""
    return " ".join(re.sub(r"[*_`#\[\]<>|\\~]+", " ", one_line(text)).split()).lstrip("-+=. ")
