"""Write a new plan in any layout, using the layout's `scaffold` and `edit`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from ralph.core.changes import AddStory, Change, RemoveStory
from ralph.core.errors import IllegalChange, PlanError
from ralph.core.plan import Plan, Story
from ralph.core.ports import Layout, PlanRef, ProjectFacts
from ralph.plans.fitting import fit, say_plainly
from ralph.plans.json_text import Style, dump

_KEYS = {"description": "description", "branch": "branchName", "verify": "verifyCommands"}
_AT_ONCE = 200
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
    scaffold = form.scaffold(ref, facts)[ref.path.relative_to(ref.root).as_posix()].encode()
    sample = form.parse(scaffold, str(ref.path))
    fitted, ids = fit(plan, form, sample)
    phases = {ids[story_id]: phase for story_id, phase in (phases or {}).items() if phase}
    if write := _writer(form):
        fitted = plainly(fitted, form)
        source = write(fitted, phases).encode()
    else:
        source = _edited(scaffold, sample, fitted, form, exact=exact)
    return Composed(source, _checked(source, fitted, form, ref), ids)


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
            found = form.parse(text, form.NAME).stories
        except (PlanError, UnicodeEncodeError):
            return None
        return found[0] if len(found) == 1 else None

    return plan.with_stories(say_plainly(story, read_back) for story in plan.stories)


def _edited(scaffold: bytes, sample: Plan, plan: Plan, form: Layout, *, exact: bool) -> bytes:
    """The scaffold, with these stories in place of its example."""
    document = _decoded(scaffold)
    key = next((key for key, value in document.items() if isinstance(value, list) and _is_stories(value, sample)), "")
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
        written += _decoded(form.edit(base, [*some, RemoveStory(_PLACEHOLDER)]))[key]
    return dump({**document, key: written}, Style()) + b"\n"


_TAKEN = frozenset(
    {"project", "feature", "name", "branchName", "description", "verifyCommands", "tasks", "userStories"}
)
"""Keys with a meaning in some JSON layout: an unrelated key must not acquire that meaning."""


def _decoded(source: bytes) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(source)
    except msgspec.DecodeError:
        return {}
    return found if isinstance(found, dict) else {}


def _is_stories(value: list[Any], sample: Plan) -> bool:
    return bool(value) and isinstance(value[0], dict) and str(value[0].get("id")) == sample.stories[0].id


def _bare(story: Story, form: Layout) -> Story:
    """Only the fields the format supports: `edit` refuses the rest."""
    said = {name: getattr(story, name) for name in form.SPEAKS}
    return msgspec.structs.replace(Story(id=story.id, title=story.title, extra=story.extra), **said)


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
