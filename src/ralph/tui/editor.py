"""The story editor: the stories of a plan, what the linter says about each, and forms to change them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import ClassVar

from rich.style import Style
from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.screen import Screen

from ralph.core.errors import RalphError
from ralph.core.plan import Order, Story
from ralph.core.ports import PlanRef
from ralph.core.problems import Problem, Severity
from ralph.core.text import one_line, plural
from ralph.tui.form import Make, StoryForm
from ralph.tui.frame import frame
from ralph.tui.keys import EDITOR_KEYS, Bar, bindings, key_bar
from ralph.tui.page import Page
from ralph.tui.plan import EditedPlan, add, set_fields, split_up, step, texts
from ralph.tui.rows import BLANK, Row, row, wrapped
from ralph.tui.theme import STATES
from ralph.views.columns import fit

_LOOK = 1.0
"""Seconds between two looks at whether someone else has changed the plan."""


class StoryEditor(Screen[None]):
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(EDITOR_KEYS)]

    def __init__(self, ref: PlanRef, env: Mapping[str, str], story: str = "") -> None:
        super().__init__()
        self._ref, self._env = ref, env
        self._first = story
        self._plan: EditedPlan | None = None
        self._problems: list[Problem] = []
        self._broken: tuple[str, str] = "", ""
        """Why the plan cannot be read, and what to do about it."""

    def compose(self) -> ComposeResult:
        yield Bar("plan-title")
        with Horizontal():
            yield Page("plan-stories")
            yield Page("plan-story")
        yield Bar("plan-status")
        yield Bar("plan-keys")

    def on_mount(self) -> None:
        self.query_one("#plan-stories").focus()
        self.call_after_refresh(self._read)
        self.set_interval(_LOOK, self._look)

    @on(Page.Resized)
    def _fit(self) -> None:
        self.draw()

    # --- what is on the screen ----------------------------------------------------------------------------------------

    def _read(self) -> None:
        try:
            if self._plan is None:
                self._plan = EditedPlan(self._ref, self._env)
            else:
                self._plan.read()
            self._broken = "", ""
        except RalphError as error:
            self._broken = error.message, error.hint
        self._lint()
        if self._first:
            self._list.select(self._first)
            self._first = ""
            self.draw()

    def _look(self) -> None:
        """Not below a form: that finds out when it saves."""
        if self.app.screen is not self:
            return
        if self._plan is None or self._broken[0]:
            self._read()
        elif self._plan.has_changed():
            self._read()
            frame(self).tell("the plan was changed elsewhere; it was read again")

    def _lint(self) -> None:
        self._problems = self._plan.problems() if self._plan is not None and not self._broken[0] else []
        self.draw()

    @property
    def _list(self) -> Page:
        return self.query_one("#plan-stories", Page)

    @property
    def story(self) -> Story | None:
        return self._plan.plan.story(self._list.current.key) if self._plan else None

    def draw(self) -> None:
        if not self.is_mounted:
            return
        styles = frame(self).styles_by_name
        self._list.show(list(self._story_rows()), of="stories")
        story = self.story
        card = self.query_one("#plan-story", Page)
        card.show(list(self._card(story, max(card.size.width - 1, 20))), of=story.id if story else "")
        self.query_one("#plan-title", Bar).update(self._title(styles))
        self.query_one("#plan-status", Bar).update(self._summary(styles))
        self.query_one("#plan-keys", Bar).update(key_bar(EDITOR_KEYS, self.size.width - 2, styles, lambda _: True))

    def _title(self, styles: Mapping[str, Style]) -> Text:
        shown = (
            self._ref.path.relative_to(self._ref.root)
            if self._ref.path.is_relative_to(self._ref.root)
            else self._ref.path
        )
        text = Text(no_wrap=True, overflow="ellipsis")
        text.append(one_line(f"Stories of {self._ref.name}", 60), "bold")
        text.append(f"  {one_line(str(shown), 200)}", "dim")
        return text

    def _summary(self, styles: Mapping[str, Style]) -> Text:
        text = Text(no_wrap=True, overflow="ellipsis")
        if self._broken[0]:
            text.append("✗ the plan cannot be read", styles["bad"])
            return text
        counts = [
            (plural(count, word), style)
            for word, severity, style in (("error", Severity.ERROR, "bad"), ("warning", Severity.WARNING, "warn"))
            if (count := sum(problem.severity is severity for problem in self._problems))
        ]
        text.append("linter: ", "dim")
        for number, (words, style) in enumerate(counts or [("✓ no findings", "good")]):
            text.append(", " if number else "")
            text.append(words, styles[style])
        if self._plan is not None and self._plan.notices:
            text.append(f"  {one_line(self._plan.notices[0], 200)}", styles["warn"])
        return text

    def _story_rows(self) -> Iterator[Row]:
        if self._plan is None or self._broken[0]:
            return
        room = max(self._list.size.width - 1, 20)
        for story in self._plan.plan.stories:
            sign, style = STATES[{"todo": "open", "in_progress": "open"}.get(story.state.value, story.state.value)]
            own = [problem for problem in self._problems if problem.story == story.id]
            mark = ("✗" if any(each.severity is Severity.ERROR for each in own) else "⚠") if own else " "
            name = one_line(story.id, 16)
            title = fit(story.title, max(room - len(name) - 6, 6))
            yield row(
                (f"{sign} ", style),
                (f"{mark} ", "bad" if mark == "✗" else "warn"),
                (name, "bold"),
                f" {title}",
                key=story.id,
            )

    def _card(self, story: Story | None, room: int) -> Iterator[Row]:
        if self._broken[0]:
            yield from wrapped(self._broken[0], room, "bad")
            yield from wrapped(self._broken[1], room, "dim")
            return
        general = [problem for problem in self._problems if not problem.story]
        if story is None:
            yield row(("the plan has no stories; a adds one", "dim"))
            yield from self._found(general, room)
            return
        yield from wrapped(f"{story.id}  {story.title}", room, "bold")
        facts = [story.state.value.replace("_", " ")]
        assert self._plan is not None
        facts += [f"priority {story.priority:g}"] if self._plan.plan.order is Order.PRIORITY else []
        facts += [f"after {', '.join(story.depends_on)}"] if story.depends_on else []
        yield from wrapped(" · ".join(facts), room, "dim")
        own = [problem for problem in self._problems if problem.story == story.id]
        yield from self._found(own, room)
        if story.description:
            yield BLANK
            yield from wrapped(story.description, room)
        for name, lead, entries in (
            ("Criteria", "- ", story.criteria),
            ("Verify", "$ ", story.verify),
            ("Touches", "  ", story.touches),
        ):
            if entries:
                yield BLANK
                yield row((name, "bold"))
                for entry in entries:
                    yield from wrapped(entry, room, "key" if lead == "$ " else "", lead=lead)
        if general:
            yield BLANK
            yield row(("The plan", "bold"))
            yield from self._found(general, room)

    def _found(self, problems: list[Problem], room: int) -> Iterator[Row]:
        for problem in problems:
            yield from problem_rows(problem, room)

    @on(Page.Moved)
    def _moved(self, event: Page.Moved) -> None:
        if event.page.id == "plan-stories":
            self.draw()

    @on(Page.Chosen)
    def _chosen(self) -> None:
        self.action_change()

    # --- edits --------------------------------------------------------------------------------------------------------

    def action_close(self) -> None:
        self.dismiss()

    def action_pane(self) -> None:
        self.focus_next()

    def action_change(self) -> None:
        if self._plan is not None and (story := self.story) is not None:
            self._open(StoryForm(self._plan, f"Edit {story.id}", texts(story), partial(set_fields, story.id), story.id))

    def action_add(self) -> None:
        if self._plan is not None and not self._broken[0]:
            after = self._list.current.key
            make = partial(add, after=after, layout=self._ref.layout)
            self._open(StoryForm(self._plan, f"A new story after {after}" if after else "A new story", {}, make))

    def action_split(self) -> None:
        if self._plan is not None and (story := self.story) is not None:
            question = f"Split {story.id}: one title a line. The first part keeps the ID; each part keeps the criteria."
            frame(self).write(question, lambda _, titles: self._write(split_up(story.id, titles)), story.title)

    def action_step(self, by: int) -> None:
        if (story := self.story) is not None:
            self._write(step(story.id, by))

    def action_edit(self) -> None:
        if frame(self).edit_file(self._ref.path):
            self._read()

    def action_plan(self) -> None:
        frame(self).plan_with_agent(self._ref)
        self._read()

    def _open(self, form: StoryForm) -> None:
        self.app.push_screen(form, lambda _: self._lint())

    def _write(self, make: Make) -> None:
        if self._plan is None:
            return
        name = self._list.current.key
        try:
            self._plan.write(make)
        except RalphError as error:
            frame(self).refused(error)
        self._lint()
        self._list.select(name)


def problem_rows(problem: Problem, room: int) -> Iterator[Row]:
    is_error = problem.severity is Severity.ERROR
    style = "bad" if is_error else "warn"
    yield from wrapped(f"{'✗ error' if is_error else '⚠ warning'}: {problem.message}", room, style)
    if problem.hint:
        yield from wrapped(problem.hint, room, "dim", lead="  ")
