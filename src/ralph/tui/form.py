"""The form for one story. While the user types, it shows what the linter would say."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.timer import Timer
from textual.widgets import Input, Static, TextArea

from ralph.core.changes import Change
from ralph.core.errors import PlanEdited, RalphError
from ralph.core.plan import Plan
from ralph.core.problems import Problem, Severity
from ralph.core.text import clean, one_line, plural
from ralph.tui.frame import frame
from ralph.tui.keys import FORM_KEYS, Bar, bindings, key_bar
from ralph.tui.plan import EditedPlan, changed, texts

_PAUSE = 0.25
"""Seconds without a key before the linter looks."""
_LABELS = {
    "title": "Title",
    "description": "Description",
    "criteria": "Criteria, one a line",
    "verify": "Verify: commands, one a line",
    "depends_on": "Depends on: IDs",
    "touches": "Touches: files and folders, one a line",
}
_ONE_LINE = ("title", "depends_on")
_MOST = 4

Make = Callable[[Plan], list[Change]]


class StoryForm(ModalScreen[bool]):
    """`make`: from the changed texts to an edit. True: it was written."""

    BINDINGS: ClassVar[list[BindingType]] = [*bindings(FORM_KEYS)]

    def __init__(
        self,
        plan: EditedPlan,
        title: str,
        shown: Mapping[str, str],
        make: Callable[[Mapping[str, str]], Make],
        story: str = "",
    ) -> None:
        super().__init__()
        self._plan, self._title, self._make, self._story = plan, title, make, story
        self._shown = {name: clean(text) for name, text in shown.items()}
        self._known = {each.id for each in plan.plan.stories}
        self._timer: Timer | None = None

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(Text(one_line(self._title, 100), "bold"), classes="bar")
            yield from self._field("title")
            with VerticalScroll(can_focus=False):
                for name in _LABELS:
                    if name != "title":
                        yield from self._field(name)
            yield Static("", id="form-lint", markup=False)
            yield Bar("form-keys")

    def _field(self, name: str) -> ComposeResult:
        yield Static(_LABELS[name], classes="label")
        text = self._shown.get(name, "")
        if name in _ONE_LINE:
            yield Input(text, id=f"field-{name}", compact=True, select_on_focus=False)
        else:
            yield TextArea(text, id=f"field-{name}", tab_behavior="focus", compact=True, soft_wrap=True)

    def on_mount(self) -> None:
        self.query_one("#field-title").focus()
        for field in self.query(TextArea):
            field.move_cursor(field.document.end)
        styles = frame(self).styles_by_name
        self.query_one("#form-keys", Bar).update(
            key_bar(FORM_KEYS, min(self.size.width, 100) - 2, styles, lambda _: True)
        )
        self._lint()

    @property
    def typed(self) -> dict[str, str]:
        found = {name: self.query_one(f"#field-{name}") for name in _LABELS}
        return {
            name: field.text if isinstance(field, TextArea) else field.value if isinstance(field, Input) else ""
            for name, field in found.items()
        }

    @property
    def changes(self) -> dict[str, str]:
        return changed(self._shown, self.typed)

    @on(Input.Changed)
    @on(TextArea.Changed)
    def _typed(self) -> None:
        if self._timer is not None:
            self._timer.stop()
        self._timer = self.set_timer(_PAUSE, self._lint)

    @on(Input.Submitted)
    def _next(self) -> None:
        self.focus_next()

    def _lint(self) -> None:
        """What the linter says about this story as it would be written."""
        try:
            problems = self._plan.preview(self._make(self.changes))
        except RalphError as error:
            self._say([Problem("refused", error.message, hint=error.hint)], 0)
            return
        own = [each for each in problems if each.story == self._story or (each.story and each.story not in self._known)]
        self._say(own, len(problems) - len(own))

    def _say(self, problems: list[Problem], others: int) -> None:
        styles = frame(self).styles_by_name
        text = Text(no_wrap=True, overflow="ellipsis")
        for problem in problems[:_MOST]:
            is_error = problem.severity is Severity.ERROR
            sign, style = ("✗ error: ", "bad") if is_error else ("⚠ warning: ", "warn")
            text.append(f"{sign}{one_line(problem.message, 300)}", styles[style])
            text.append(f"  {one_line(problem.hint, 200)}\n", "dim")
        if not problems:
            text.append("✓ no findings in this story\n", styles["good"])
        more = len(problems) - _MOST
        rest = [f"{more} more"] if more > 0 else []
        rest += [f"{plural(others, 'finding')} elsewhere in the plan"] if others else []
        text.append("; ".join(rest), "dim")
        self.query_one("#form-lint", Static).update(text)

    def action_next(self) -> None:
        self.focus_next()

    def action_save(self) -> None:
        if not self.changes and self._story:
            self.dismiss(False)
            return
        try:
            self._plan.write(self._make(self.changes))
        except PlanEdited as error:
            self._catch_up(error)
        except RalphError as error:
            frame(self).refused(error)
        else:
            self.dismiss(True)

    def _catch_up(self, error: PlanEdited) -> None:
        """Fields that the user has not touched show what the plan says now; the others keep what was typed."""
        self._known = {each.id for each in self._plan.plan.stories}
        story = self._plan.plan.story(self._story)
        if story is None and self._story:
            frame(self).tell(f"{self._story} was removed from the plan meanwhile", is_error=True)
            return
        now = {name: clean(text) for name, text in texts(story).items()} if story is not None else {}
        mine = self.changes
        both = [_LABELS[name].partition(":")[0] for name in mine if now.get(name, "") != self._shown.get(name, "")]
        for name, text in now.items():
            if name not in mine:
                self._fill(name, text)
        self._shown = now
        if both and story is not None:
            error = PlanEdited(f"{error.message}, also here: {', '.join(both)}", hint="saving again replaces that")
        frame(self).refused(error)

    def _fill(self, name: str, text: str) -> None:
        field = self.query_one(f"#field-{name}")
        if isinstance(field, TextArea):
            field.text = text
        elif isinstance(field, Input):
            field.value = text

    def action_close(self) -> None:
        if not self.changes:
            self.dismiss(False)
            return
        question = "Close the form without saving? What you typed is lost."
        frame(self).ask(question, [("close", "Close")], lambda _: self.dismiss(False))
