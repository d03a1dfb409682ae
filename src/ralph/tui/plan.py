"""The plan in the story editor: every edit is written at once, as by `ralph task`, and never over another one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ralph.config.layers import Settings, load
from ralph.core.changes import AddStory, Change, SetFields
from ralph.core.errors import IllegalChange, PlanEdited, RalphError, SetupError, UsageError
from ralph.core.plan import Plan, Story
from ralph.core.ports import PlanRef
from ralph.core.problems import Problem
from ralph.plans.lint import is_example
from ralph.plans.plan_edits import insert, move, split
from ralph.plans.registry import traits
from ralph.plans.store import Loaded
from ralph.state.clones import users_own
from ralph.state.locks import turn
from ralph.workspace.find import store_for
from ralph.workspace.lint import lint_loaded, lint_plan
from ralph.workspace.plan_edit import (
    change_fields,
    find_story,
    line,
    lines,
    prose,
    refuse_broken,
    waits_for_later,
)
from ralph.workspace.tracker import Tracking
from ralph.workspace.trust import refuse_inside_loop

FIELDS = ("title", "description", "criteria", "verify", "depends_on", "touches")
"""What the editor changes. Everything else of a story stays as it is, also fields that Ralph does not know."""
_FLAGS = {"criteria": "a criterion", "verify": "a command", "touches": "a path", "depends_on": "an ID"}


class EditedPlan:
    def __init__(self, ref: PlanRef, env: Mapping[str, str]) -> None:
        self.ref = ref
        self._env = env
        self._store = store_for(ref, env)
        self._settings = self._load_settings()
        self.loaded = self._store.load()
        self.notices: list[str] = list(self.loaded.notices)
        """What the user should know about the last edit."""

    def _load_settings(self) -> Settings | None:
        """Broken settings do not keep anyone from editing the plan; `ralph check` reports them."""
        root = users_own(self.ref, self._env).root
        try:
            return load(root=root, layout=self.ref.layout, name=None, env=self._env, flags={})
        except RalphError:
            return None

    @property
    def plan(self) -> Plan:
        return self.loaded.plan

    @property
    def path(self) -> Path:
        return self.ref.path

    def problems(self) -> list[Problem]:
        """What `ralph check` says about the plan on the disk."""
        return list(lint_plan(self.ref, self._settings, self._env).problems)

    def has_changed(self) -> bool:
        """Whether someone else has written the plan since it was read."""
        try:
            return self.path.read_bytes() != self.loaded.source
        except OSError:
            return True

    def read(self) -> None:
        """Again, from the disk."""
        self.loaded = self._store.load()

    def preview(self, make: Callable[[Plan], list[Change]]) -> list[Problem]:
        """What the linter would say about an edit. Raises RalphError if it is refused; nothing is written."""
        changes = make(self.plan)
        refuse_broken(self.plan, changes)
        after = self._store.planned(self.loaded, changes, {})
        return list(lint_loaded(self.ref, self._store.layout, after, self._settings).problems)

    def write(self, make: Callable[[Plan], list[Change]]) -> None:
        """Raises PlanEdited if the plan is not the one that was shown: it is read again, and not written."""
        refuse_inside_loop(self._env, "edit the plan in `ralph ui`")
        with turn(self.ref, self._env):
            found = self._store.load()
            if found.source != self.loaded.source:
                self.loaded = found
                raise PlanEdited(
                    "the plan has changed meanwhile", hint="it was read again: look at it, then save again"
                )
            before, changes = found.plan, make(found.plan)
            refuse_broken(before, changes)
            try:
                self.loaded = self._store.save(found, changes, {})
            except OSError as error:
                raise SetupError(
                    f"could not write {self.path}: {error.strerror}", hint="check the disk and the permissions"
                ) from None
        self.notices = [*self._follow(before, found), *self._order(changes)]

    def _follow(self, before: Plan, found: Loaded) -> list[str]:
        """Beads of steps that changed."""
        if self._settings is None or not traits(self.ref.layout).has_tracker or found.source == self.loaded.source:
            return []
        return [told.text for told in Tracking(self.ref, self._settings.config, self._env).follow(before, self.plan)]

    def _order(self, changes: Sequence[Change]) -> list[str]:
        names = dict.fromkeys(change.story.id if isinstance(change, AddStory) else change.story for change in changes)
        waiting = {name: waits_for_later(self.plan, name) for name in names if self.plan.story(name)}
        return [
            f"{name} still waits for {', '.join(later)}, which come later" for name, later in waiting.items() if later
        ]


def changed(shown: Mapping[str, str], typed: Mapping[str, str]) -> dict[str, str]:
    """The fields that the user has changed: a text that was only shown is never written back."""
    return {name: text for name, text in typed.items() if text.strip() != shown.get(name, "").strip()}


def set_fields(story: str, typed: Mapping[str, str]) -> Callable[[Plan], list[Change]]:
    def make(plan: Plan) -> list[Change]:
        find_story(plan, story)
        fields = _fields(plan, typed)
        return [change_fields(plan, story, fields)] if fields else []

    return make


def add(typed: Mapping[str, str], after: str, layout: str) -> Callable[[Plan], list[Change]]:
    def make(plan: Plan) -> list[Change]:
        fields = _fields(plan, {"title": ""} | dict(typed))
        if traits(layout).needs_criteria and not fields.get("criteria"):
            raise UsageError(f"a story in {layout} needs a criterion", hint="say how to verify it")
        example = next((story.id for story in plan.stories if is_example(story)), "")
        if example:  # the first story of a new plan
            blank: dict[str, Any] = {"description": "", "criteria": (), "depends_on": (), "verify": (), "touches": ()}
            return [SetFields(example, blank | fields)]
        return [insert(plan, Story(id="", **fields), after if plan.story(after) else None)]

    return make


def split_up(story: str, titles: str) -> Callable[[Plan], list[Change]]:
    found = [title for title in titles.splitlines() if title.strip()]
    return lambda plan: split(plan, find_story(plan, story).id, lines("a title", found))


def step(story: str, by: int) -> Callable[[Plan], list[Change]]:
    """One place up or down."""

    def make(plan: Plan) -> list[Change]:
        names = [each.id for each in plan.stories]
        at = names.index(find_story(plan, story).id)
        if not 0 <= at + by < len(names):
            raise IllegalChange(f"{story} is already the {'first' if by < 0 else 'last'} story")
        neighbour = names[at + by]
        return move(plan, story, neighbour) if by < 0 else move(plan, story, after=neighbour)

    return make


def _fields(plan: Plan, typed: Mapping[str, str]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for name, text in typed.items():
        if name == "title":
            fields[name] = line("the title", text)
        elif name == "description":
            fields[name] = prose("the description", text)
        elif name == "depends_on":
            wanted = text.replace(",", " ").split()
            fields[name] = tuple(dict.fromkeys(find_story(plan, each).id for each in wanted))
        else:
            fields[name] = lines(_FLAGS[name], [each for each in text.splitlines() if each.strip()])
    return fields


def texts(story: Story) -> dict[str, str]:
    """The fields of a story as the editor shows them: one criterion, command or path a line."""
    found = msgspec.structs.asdict(story)
    as_lines = {
        name: "\n".join(" ".join(each.split()) for each in found[name]) for name in ("criteria", "verify", "touches")
    }
    return {
        "title": story.title,
        "description": story.description,
        **as_lines,
        "depends_on": ", ".join(story.depends_on),
    }
