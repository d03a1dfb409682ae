"""What every screen may ask of the application: colours, dialogs, messages, and the terminal for another program."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

from rich.style import Style
from textual.app import App, SuspendNotSupported
from textual.screen import Screen
from textual.widgets._toast import ToastRack

from ralph.core.errors import RalphError
from ralph.core.exit_codes import ExitCode
from ralph.core.ports import PlanRef
from ralph.core.text import one_line
from ralph.host.process.programs import edit, run_here
from ralph.state.clones import users_own
from ralph.tui.dialogs import Ask, Choice, Write
from ralph.tui.keys import Bar
from ralph.tui.theme import PLAIN, THEMES, palette
from ralph.workspace.find import plan_options

_LEAVE = "Ctrl-C returns to `ralph ui`.\n"
_BACK = "\nPress Enter to return to `ralph ui`. "


class Frame(App[None]):
    CSS_PATH = "app.tcss"
    ENABLE_COMMAND_PALETTE = False
    TITLE = "ralph ui"
    env: Mapping[str, str]
    styles_by_name: ClassVar[dict[str, Style]] = {}

    def recolour(self) -> None:
        found = palette(self.theme_variables, is_plain=self.no_color, is_ansi=self.native_ansi_color)
        self.styles_by_name.clear()
        self.styles_by_name.update(found)
        self.refresh(layout=True)

    def start_theme(self) -> None:
        self.theme = PLAIN if self.no_color else THEMES[0]

    def action_theme(self) -> None:
        if self.no_color:
            self.tell("NO_COLOR is set")
            return
        self.theme = THEMES[(THEMES.index(self.theme) + 1) % len(THEMES)]

    def tell(self, text: str, *, is_error: bool = False) -> None:
        """From any thread. What is told may quote an agent, so it is never markup. Only the last message is shown."""
        told = one_line(text, 500)

        def show() -> None:
            self.clear_notifications()
            self._lift_toasts()
            self.notify(told, severity="error" if is_error else "information", markup=False)

        self.call_next(show)

    def _lift_toasts(self) -> None:
        """A message is shown above what the lines at the bottom say."""
        half = self.size.height // 2
        tops = [bar.region.y for screen in self.screen_stack for bar in screen.query(Bar) if bar.region.y > half]
        for screen in self.screen_stack:
            for rack in screen.query(ToastRack):
                rack.styles.margin = (0, 0, self.size.height - min(tops, default=self.size.height), 0)

    def refused(self, error: RalphError) -> None:
        self.tell(f"{error.message}{f' ({error.hint})' if error.hint else ''}", is_error=True)

    # --- dialogs ------------------------------------------------------------------------------------------------------

    def ask(self, question: str, choices: Sequence[Choice], then: Callable[[str], object]) -> None:
        def done(chosen: str | None) -> None:
            if chosen:
                then(chosen)

        self.clear_notifications()
        self.push_screen(Ask(question, choices), done)

    def write(
        self,
        question: str,
        then: Callable[[str, str], object],
        text: str = "",
        *,
        choices: Sequence[Choice] = (),
        lines: bool = True,
    ) -> None:
        """`then` gets the choice and the text."""

        def done(answer: str | None) -> None:
            if answer is not None:
                which, _, written = answer.partition("\n")
                then(which, written)

        self.clear_notifications()
        known = choices or [("send", "Send (Ctrl-S)" if lines else "OK (Enter)")]
        self.push_screen(Write(question, text, choices=known, lines=lines), done)

    # --- other programs -----------------------------------------------------------------------------------------------

    def edit_file(self, path: Path) -> bool:
        """In $EDITOR, with the terminal. Whether it was closed well."""
        return self._lend(lambda: edit(path, self.env))

    def plan_with_agent(self, ref: PlanRef) -> bool:
        """The dialogue of `ralph plan`, with the terminal."""
        own = users_own(ref, self.env)
        options = plan_options(own)
        flags = [word for name, value in options.items() for word in (f"--{name.replace('_', '-')}", value)]

        def talk() -> None:
            sys.stderr.write(_LEAVE)
            sys.stderr.flush()
            code = run_here([sys.executable, "-m", "ralph", "plan", "-d", str(own.root), *flags], self.env)
            if code == ExitCode.INTERRUPTED:
                self.tell("left `ralph plan`; nothing was changed")
                return
            sys.stderr.write(_BACK)
            sys.stderr.flush()
            sys.stdin.readline()

        return self._lend(talk)

    def _lend(self, work: Callable[[], object]) -> bool:
        try:
            with self.suspend(), _interrupts_for_others():
                work()
        except SuspendNotSupported:
            self.tell("this needs a terminal", is_error=True)
            return False
        except RalphError as error:
            self.refused(error)
            return False
        except OSError as error:
            self.tell(f"could not start it: {error.strerror}", is_error=True)
            return False
        self.refresh(layout=True)
        return True


@contextmanager
def _interrupts_for_others() -> Iterator[None]:
    """Ctrl-C is for the program that has the terminal. It gets the usual handler: this one is not inherited."""
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def frame(screen: Screen[Any]) -> Frame:
    found = screen.app
    assert isinstance(found, Frame)
    return found
