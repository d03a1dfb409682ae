"""The keys: one table for what is bound, what the bottom line shows and what the help says."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from msgspec import Struct
from rich.style import Style
from rich.text import Text
from textual.binding import Binding
from textual.events import Click
from textual.widgets import Static

from ralph.views.acts import ActVerb


class Key(Struct, frozen=True):
    key: str
    action: str
    word: str
    """In the bottom line; empty: only in the help."""
    meaning: str
    verb: ActVerb | None = None
    """The act it stands for: dimmed while it is not possible."""
    is_on: bool = False


KEYS = (
    Key("p", "act('pause')", "pause", "pause the run after this iteration", ActVerb.PAUSE),
    Key("r", "act('resume')", "resume", "resume a paused run", ActVerb.RESUME),
    Key("s", "stop", "stop", "stop the run: after this iteration, or now", ActVerb.STOP_NOW),
    Key("n", "note", "note", "leave a note for the agent", ActVerb.NOTE),
    Key("a", "answer", "answer", "answer a question of an agent", ActVerb.ANSWER),
    Key("R", "act('retry')", "retry", "give the failed story another chance", ActVerb.RETRY),
    Key("x", "skip", "skip", "skip the story", ActVerb.SKIP),
    Key("c", "decide('confirm')", "", "confirm the selected finding (tab Review)", ActVerb.CONFIRM),
    Key("d", "decide('reject')", "", "reject the selected finding (tab Review)", ActVerb.REJECT),
    Key("e", "edit", "edit", "open the file of the diff, or the plan, in $EDITOR"),
    Key("E", "stories", "stories", "edit the stories, with the linter"),
    Key("P", "plan", "plan", "plan with an agent"),
    Key("y", "copy", "copy", "copy the command that shows this"),
    Key("slash", "search", "search", "search in the pane; . and , go to the next and previous place"),
    Key("full_stop", "found(1)", "", "the next place that was found"),
    Key("comma", "found(-1)", "", "the previous place that was found"),
    Key("f", "filter", "filter", "show only what contains a text; empty shows everything"),
    Key("escape", "unfilter", "", "clear the filter; in a dialog: close it"),
    Key("t", "theme", "theme", "another theme: dark, light, or the colours of the terminal"),
    Key("space", "follow", "follow", "follow what is being worked on"),
    Key("left_square_bracket", "attempt(-1)", "", "the attempt before this one"),
    Key("right_square_bracket", "attempt(1)", "", "the attempt after this one"),
    Key("tab", "pane", "pane", "the other pane; 1 to 6 open a tab"),
    Key("question_mark", "help", "help", "this help"),
    Key("q", "quit", "quit", "quit; the run continues"),
)
TABS = ("Live", "Diff", "Checks", "Review", "Timeline", "Cost")
SIGNS = {"slash": "/", "full_stop": ".", "comma": ",", "left_square_bracket": "[", "right_square_bracket": "]"}
SIGNS |= {"question_mark": "?", "space": "Space", "tab": "Tab", "enter": "Enter", "escape": "Esc", "ctrl+s": "Ctrl-S"}


EDITOR_KEYS = (
    Key("enter", "change", "edit", "change the story in a form"),
    Key("a", "add", "add", "add a story after this one"),
    Key("s", "split", "split", "split the story into several"),
    Key("u", "step(-1)", "up", "move the story up"),
    Key("d", "step(1)", "down", "move the story down"),
    Key("e", "edit", "$EDITOR", "open the plan in $EDITOR"),
    Key("P", "plan", "plan", "plan with an agent"),
    Key("tab", "pane", "pane", "the other pane"),
    Key("escape", "close", "back", "back to the run"),
)
FORM_KEYS = (
    Key("ctrl+s", "save", "save", "write the story to the plan"),
    Key("tab", "next", "next field", "the next field; Shift-Tab goes back"),
    Key("escape", "close", "cancel", "close the form; asks if you have changed something"),
)
MOVES = (
    ("1–6", "the tabs"),
    ("↑ ↓", "one line; PgUp, PgDn, Home and End go further"),
    ("Enter", "open, fold or unfold; on an iteration: show it"),
)


def bindings(keys: Iterable[Key]) -> list[Binding]:
    return [Binding(key.key, key.action, key.word or key.meaning, priority=key.key == "tab") for key in keys]


def tab_bindings() -> list[Binding]:
    return [Binding(str(number), f"tab('{name}')", name) for number, name in enumerate(TABS, 1)]


def sign(key: Key) -> str:
    return SIGNS.get(key.key, key.key)


def key_bar(keys: Iterable[Key], room: int, styles: Mapping[str, Style], is_possible: Callable[[Key], bool]) -> Text:
    """The keys as the bottom lines show them; a click on one does the same. What is not possible is dimmed."""
    text, left = Text(no_wrap=True), room
    for key in keys:
        if not key.word:
            continue
        click = Style(meta={ACTION: key.action})
        bright, plain = (styles["key"] + Style(bold=True), Style()) if is_possible(key) else (Style(dim=True),) * 2
        name = sign(key)
        width = len(name) + 1 + len(key.word)
        if width > left and left < room:
            text.append("\n")
            left = room
        text.append(name, bright + click)
        text.append(f" {key.word}", (styles["warn"] if key.is_on else plain) + click)
        text.append("  ")
        left -= width + 2
    return text


ACTION = "ralph-action"
"""In the style of a text: what a click on it does."""


class Bar(Static):
    """One or a few lines of text; parts of it can be clicked. No link: nothing is underlined or opened."""

    def __init__(self, name: str) -> None:
        super().__init__("", id=name, classes="bar", markup=False)

    async def on_click(self, event: Click) -> None:
        if action := event.style.meta.get(ACTION):
            event.stop()
            await self.run_action(
                f"app.{action}" if self.app.screen is self.app.screen_stack[0] else f"screen.{action}"
            )
