"""Small windows over the screen: a question, a text to write, the help. Escape closes each of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Button, Input, Static, TextArea

from ralph.core.text import clean
from ralph.tui.page import Page
from ralph.tui.rows import Row

Choice = tuple[str, str]
"""What is returned, and what the button says."""


class Dialog(ModalScreen[str | None]):
    """`None`: the user changed their mind."""

    DEFAULT_CSS = """
    Dialog { align: center middle; }
    Dialog > Vertical {
        width: 76; max-width: 96%; height: auto; max-height: 94%;
        border: round $primary; padding: 0 1; background: $surface;
    }
    Dialog VerticalScroll { height: auto; max-height: 12; }
    Dialog .said { width: 1fr; height: auto; margin-bottom: 1; }
    Dialog Horizontal { height: auto; }
    Dialog Button { margin-right: 1; min-width: 8; width: auto; }
    Dialog TextArea { height: 7; }
    Dialog TextArea, Dialog Input { background: $background; padding: 0; margin-bottom: 1; }
    Dialog TextArea .text-area--cursor-line { background: transparent; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [("escape", "cancel", "Cancel")]

    def action_cancel(self) -> None:
        self.dismiss(None)

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        self.answer((event.button.id or "").removeprefix("choice-"))

    def answer(self, chosen: str) -> None:
        self.dismiss(None if chosen == "cancel" else chosen)


def said(text: str) -> VerticalScroll:
    return VerticalScroll(Static(Text(clean(text)), classes="said"), can_focus=False)


def buttons(choices: Iterable[Choice], otherwise: str = "Cancel") -> Horizontal:
    return Horizontal(
        *(Button(Text(label), id=f"choice-{value}", compact=True) for value, label in choices),
        Button(f"{otherwise} (Esc)", id="choice-cancel", compact=True),
    )


class Ask(Dialog):
    """A question with answers. The cursor is on "cancel": Enter alone does nothing that cannot be undone."""

    BINDINGS: ClassVar[list[BindingType]] = [
        ("left", "app.focus_previous", "Previous answer"),
        ("right", "app.focus_next", "Next answer"),
    ]

    def __init__(self, question: str, choices: Sequence[Choice]) -> None:
        super().__init__()
        self._question, self._choices = question, choices

    def compose(self) -> ComposeResult:
        yield Vertical(said(self._question), buttons(self._choices))

    def on_mount(self) -> None:
        self.query_one("#choice-cancel").focus()


class Write(Dialog):
    """A text to write. What is returned begins with the name of the button and a line break."""

    BINDINGS: ClassVar[list[BindingType]] = [("ctrl+s", "send", "Send")]

    def __init__(
        self,
        question: str,
        text: str = "",
        *,
        choices: Sequence[Choice] = (("send", "Send (Ctrl-S)"),),
        lines: bool = True,
    ) -> None:
        super().__init__()
        self._question, self._text, self._choices, self._lines = question, text, choices, lines

    def compose(self) -> ComposeResult:
        field = (
            TextArea(self._text, tab_behavior="focus", compact=True) if self._lines else Input(self._text, compact=True)
        )
        yield Vertical(said(self._question), field, buttons(self._choices))

    def on_mount(self) -> None:
        self.query_one("TextArea" if self._lines else "Input").focus()
        for field in self.query(TextArea):
            field.move_cursor(field.document.end)

    @on(Input.Submitted)
    def action_send(self) -> None:
        self.answer(self._choices[0][0])

    def answer(self, chosen: str) -> None:
        text = self.query_one(TextArea).text if self._lines else self.query_one(Input).value
        self.dismiss(None if chosen == "cancel" else f"{chosen}\n{text}")


class Show(Dialog):
    """Rows to read."""

    BINDINGS: ClassVar[list[BindingType]] = [("q", "cancel", "Close")]

    DEFAULT_CSS = """
    Show > Vertical { height: 90%; }
    """

    def __init__(self, title: str, rows: Sequence[Row]) -> None:
        super().__init__()
        self._title, self._rows = title, rows

    def compose(self) -> ComposeResult:
        page = Page("shown")
        page.show(self._rows)
        yield Vertical(Static(Text(self._title, "bold")), page, buttons((), "Close"))

    def on_mount(self) -> None:
        self.query_one(Page).focus()
