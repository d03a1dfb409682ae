"""The screen of `ralph ui`: stories on the left, tabs on the right, what is going on and the keys below."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import ClassVar

from msgspec.structs import replace
from rich.style import Style
from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical
from textual.css.query import NoMatches
from textual.events import Resize
from textual.message import Message
from textual.screen import Screen
from textual.widgets import ContentSwitcher

from ralph.core.errors import RalphError
from ralph.core.ports import PlanRef
from ralph.core.text import one_line
from ralph.tui.commands import command_for
from ralph.tui.dialogs import Show
from ralph.tui.editor import StoryEditor
from ralph.tui.frame import Frame
from ralph.tui.keys import ACTION, KEYS, MOVES, TABS, Bar, bindings, key_bar, sign, tab_bindings
from ralph.tui.page import Page
from ralph.tui.reader import Reader, Seen, Wanted
from ralph.tui.rows import Row, find, row
from ralph.tui.source import Source
from ralph.tui.tabs.diff import path_of
from ralph.tui.tabs.review import finding_of
from ralph.tui.tabs.timeline import iteration_of
from ralph.views.acts import KINDS, Act, ActVerb

_TIGHT = 88
"""Columns below which the names of the tabs stand closer together."""
_NARROW = 72
"""Columns below which one pane is shown at a time."""


def _is_iteration(shown: Row) -> bool:
    return bool(iteration_of(shown.key))


class Arrived(Message):
    def __init__(self, seen: Seen) -> None:
        super().__init__()
        self.seen = seen


class RalphUi(Frame):
    BINDINGS: ClassVar[list[BindingType]] = [*bindings(KEYS), *tab_bindings()]

    def __init__(self, source: Source | None, plan: PlanRef | None, env: Mapping[str, str]) -> None:
        """`plan`: shown where there is no run yet."""
        super().__init__(ansi_color=True if "NO_COLOR" in env else None)
        self.source = source
        self.env = env
        self._plan = plan
        self._above = os.getppid()
        self.wanted = Wanted()
        self.seen: Seen | None = None
        self._filters_of_tabs: dict[str, str] = {}
        self._reader = Reader(source, self._arrived) if source is not None else None

    # --- what is on the screen ----------------------------------------------------------------------------------------

    def compose(self) -> ComposeResult:
        yield Bar("title")
        with Horizontal(id="body"):
            yield Page("stories")
            with Vertical(id="right"):
                yield Bar("tabs")
                with ContentSwitcher(initial="Live"):
                    for name in TABS:
                        yield Page(name, follows=name == "Live", starts=_is_iteration if name == "Timeline" else None)
        yield Bar("status")
        yield Bar("keys")

    def on_mount(self) -> None:
        self.start_theme()
        self.theme_changed_signal.subscribe(self, lambda _: self._recolour())
        self._recolour()
        self.query_one("#stories").focus()
        self.set_interval(1, self._leave_with_parent)
        with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):  # Windows, or not the main thread
            for number in (signal.SIGTERM, signal.SIGHUP):
                asyncio.get_running_loop().add_signal_handler(number, self.exit)
        if self._reader is not None:
            self._reader.start()
            self.call_after_refresh(self._want)
        elif self._plan is not None:
            self.push_screen(StoryEditor(self._plan, self.env), lambda _: self.exit())

    def on_unmount(self) -> None:
        if self._reader is not None:
            self._reader.stop()

    def _leave_with_parent(self) -> None:
        """Over a run that was killed, the shell takes the terminal back."""
        if os.getppid() != self._above:
            self.exit()

    def _recolour(self) -> None:
        self.recolour()
        if self.is_running:
            self._draw_bars()
            if isinstance(self.screen, StoryEditor):
                self.screen.draw()

    def on_resize(self, event: Resize) -> None:
        self.set_class(event.size.width < _NARROW, "narrow")
        self.call_after_refresh(self._draw_bars)

    @on(Page.Resized)
    def _fit(self) -> None:
        self._want()

    def _want(self, **changes: object) -> None:
        """Tell the reader what to show, and how much room there is."""
        try:
            left, right = self.base.query_one("#stories", Page), self._tab_page()
        except NoMatches:  # on its way out
            return
        narrow = self.has_class("narrow")
        room = {
            "columns": max(self.size.width - 2, 20),
            "left": max((left.size.width or (self.size.width if narrow else 30)) - 1, 20),
            "room": max((right.size.width or self.size.width - (0 if narrow else 31)) - 1, 20),
        }
        self.wanted = replace(self.wanted, **room, **changes)
        if self._reader is not None:
            self._reader.want(self.wanted)

    def _arrived(self, seen: Seen) -> None:
        """Called by the reader's thread."""
        self.post_message(Arrived(seen))

    @on(Arrived)
    def _show(self, event: Arrived) -> None:
        seen = event.seen
        if seen.wanted.tab != self.wanted.tab or not self.is_running:
            return
        self.seen = seen
        stories = self.base.query_one("#stories", Page)
        stories.show(seen.stories, of=seen.wanted.story_words)
        if seen.wanted.story == self.wanted.story:
            stories.select(seen.story)
        self._tab_page().show(seen.rows, of=seen.of)
        self._draw_bars()

    def _draw_bars(self) -> None:
        if self.source is None or self.seen is None:
            return
        seen, base = self.seen, self.base
        base.query_one("#title", Bar).update(self._painted(seen.title))
        base.query_one("#status", Bar).update(self._painted(Row(seen.status)))
        base.query_one("#tabs", Bar).update(self._tab_bar())
        base.query_one("#keys", Bar).update(self._key_bar(seen))

    @property
    def base(self) -> Screen[object]:
        """The screen below all dialogs."""
        return self.screen_stack[0]

    def _painted(self, shown: Row) -> Text:
        text = Text(no_wrap=False, overflow="fold")
        for part, style in shown.parts:
            text.append(part, self.styles_by_name.get(style, Style()))
        return text

    def _tab_bar(self) -> Text:
        text = Text(no_wrap=True, overflow="ellipsis")
        is_tight = self.size.width < _TIGHT
        for number, name in enumerate(TABS, 1):
            style = self.styles_by_name["cursor"] if name == self.wanted.tab else Style()
            text.append(f" {number} {name} "[is_tight:], style + Style(meta={ACTION: f"tab('{name}')"}))
        return text

    def _key_bar(self, seen: Seen) -> Text:
        """Pause and resume are never possible at the same time."""
        hidden = ActVerb.PAUSE if ActVerb.RESUME in seen.acts else ActVerb.RESUME
        shown = [key for key in KEYS if key.verb is not hidden]
        words = self.wanted.story_words if self.page.id == "stories" else self.wanted.words
        if words:
            told = f"filter: {one_line(words, 20)}"
            shown = [replace(key, word=told, is_on=True) if key.action == "filter" else key for key in shown]
        return key_bar(
            shown, self.size.width - 2, self.styles_by_name, lambda key: key.verb is None or key.verb in seen.acts
        )

    # --- moving about -------------------------------------------------------------------------------------------------

    def _tab_page(self) -> Page:
        return self.base.query_one(f"#{self.wanted.tab}", Page)

    @property
    def page(self) -> Page:
        """The pane that keys are for."""
        return self.focused if isinstance(self.focused, Page) else self._tab_page()

    @on(Page.Moved)
    def _moved(self, event: Page.Moved) -> None:
        if event.page.id == "stories" and event.row.key:
            self._want(story=event.row.key, iteration=0, finding="")
        elif event.page.id == "Review":
            self._want(finding=finding_of(event.row.key))

    @on(Page.Chosen)
    def _chosen(self, event: Page.Chosen) -> None:
        current = event.row
        if event.page.id == "stories":
            self._want(story=current.key, iteration=0)
            self._focus_tab()
        elif current.folds:
            self._want(toggled=self.wanted.toggled ^ {current.key})
        elif (number := iteration_of(current.key)) and self.source is not None:
            attempt = self.source.view.attempts.by_iteration.get(number)
            self._want(story=attempt.story if attempt else "", iteration=number)
            self.action_tab("Live")

    def _focus_tab(self) -> None:
        self.base.set_class(True, "right")
        self._tab_page().focus()
        self.call_after_refresh(self._want)

    def action_tab(self, name: str) -> None:
        if self.source is None or len(self.screen_stack) > 1:
            return
        self._filters_of_tabs[self.wanted.tab] = self.wanted.words
        self.base.query_one(ContentSwitcher).current = name
        self._want(tab=name, words=self._filters_of_tabs.get(name, ""), finding="")
        self._focus_tab()

    def action_pane(self) -> None:
        if len(self.screen_stack) > 1:
            self.screen.focus_next()
            return
        is_left = self.focused is not None and self.focused.id == "stories"
        self.base.set_class(is_left, "right")
        (self._tab_page() if is_left else self.base.query_one("#stories")).focus()
        self.call_after_refresh(self._want)

    def action_follow(self) -> None:
        self._want(story="", iteration=0, finding="")
        self._tab_page().action_edge(1 if self.wanted.tab == "Live" else 0)

    def action_attempt(self, step: int) -> None:
        if self.seen is None or not self.seen.attempts:
            return
        known = self.seen.attempts
        at = known.index(self.seen.iteration) if self.seen.iteration in known else len(known) - 1
        chosen = known[max(min(at + step, len(known) - 1), 0)]
        self._want(story=self.seen.story, iteration=chosen)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Letters are for the dialog that is open, and without a run there is only the plan."""
        own = {key.action.partition("(")[0] for key in KEYS} | {"tab"}
        if action in own - {"pane", "quit", "theme"}:
            return len(self.screen_stack) == 1 and self.source is not None
        if action in ("quit", "theme"):
            return len(self.screen_stack) == 1
        return True

    # --- searching ----------------------------------------------------------------------------------------------------

    def action_search(self) -> None:
        page = self.page
        self.write("Search in this pane for:", partial(self._search, page), page.words, lines=False)

    def _search(self, page: Page, _: str, words: str) -> None:
        page.words = words.strip()
        page.refresh()
        self.action_found(1)

    def action_found(self, step: int) -> None:
        page = self.page
        if not page.words:
            return

        def look() -> None:
            at = find(page.rows, page.words, page.cursor, step)
            self.call_from_thread(page.go, at) if at >= 0 else self.tell(f"not found: {page.words}", is_error=True)

        self.run_worker(look, thread=True, exclusive=True, group="search")

    def action_filter(self) -> None:
        is_stories = self.page.id == "stories"
        known = self.wanted.story_words if is_stories else self.wanted.words
        name = "story_words" if is_stories else "words"
        what = "stories" if is_stories else self.wanted.tab
        self.write(
            f"Show only what contains (empty: everything), in {what}:",
            lambda _, words: self._want(**{name: words.strip()}),
            known,
            lines=False,
        )

    def action_unfilter(self) -> None:
        self._want(words="", story_words="")

    # --- acts ---------------------------------------------------------------------------------------------------------

    def action_act(self, verb: str) -> None:
        self._act(Act(verb=ActVerb(verb), story=self._story if ActVerb(verb) is ActVerb.RETRY else ""))

    @property
    def _story(self) -> str:
        return self.seen.story if self.seen else ""

    def _act(self, act: Act) -> None:
        assert self.source is not None
        source = self.source

        def perform() -> None:
            try:
                self.tell(source.act(act))
            except RalphError as error:
                self.refused(error)
            if self._reader is not None:
                self._reader.look()

        self.run_worker(perform, thread=True, group="acts")

    def action_stop(self) -> None:
        verbs = [verb for verb in (ActVerb.STOP, ActVerb.STOP_NOW) if self.seen and verb in self.seen.acts]
        if not verbs:
            self.tell("the run has ended", is_error=True)
            return
        question = "\n\n".join(KINDS[verb].question for verb in verbs)
        choices = [(verb.value, KINDS[verb].label) for verb in verbs]
        self.ask(question, choices, lambda chosen: self._act(Act(verb=ActVerb(chosen))))

    def action_note(self) -> None:
        story = self._story
        choices = [("all", "Send (Ctrl-S)"), *([("story", f"Only for {one_line(story, 20)}")] if story else [])]

        def send(which: str, text: str) -> None:
            self._act(Act(verb=ActVerb.NOTE, text=text, story=story if which == "story" else ""))

        self.write("A note for the next session of the agent:", send, choices=choices)

    def action_answer(self) -> None:
        asked = self.seen.questions if self.seen else {}
        story = self._story if self._story in asked else next(iter(asked), "")
        if not story:
            self.tell("no agent asks a question", is_error=True)
            return
        send = lambda _, text: self._act(Act(verb=ActVerb.ANSWER, story=story, text=text))  # noqa: E731
        self.write(f"{story} asks:\n{asked[story]}", send)

    def action_skip(self) -> None:
        story = self._story
        if self.seen is None or ActVerb.SKIP not in self.seen.acts:
            self.tell("there is nothing to skip", is_error=True)
            return
        question = KINDS[ActVerb.SKIP].question.format(story=one_line(story, 60))
        choices = [(ActVerb.SKIP.value, "Skip")]
        self.ask(question, choices, lambda _: self._act(Act(verb=ActVerb.SKIP, story=story)))

    def action_decide(self, word: str) -> None:
        verb, finding = ActVerb(word), finding_of(self._tab_page().current.key)
        if self.wanted.tab != "Review" or not finding:
            self.tell("select a finding in the tab Review first", is_error=True)
            return
        story, why = self._story, "" if verb is ActVerb.CONFIRM else " The next reviewer is told why:"
        send = lambda _, text: self._act(Act(verb=verb, story=story, finding=finding, text=text))  # noqa: E731
        self.write(f"{KINDS[verb].label} {finding} of {story}.{why}", send, choices=[("send", word.capitalize())])

    # --- other programs -----------------------------------------------------------------------------------------------

    def action_edit(self) -> None:
        path = self._path_to_edit()
        if path is None:
            self.tell("there is no file here that this machine has", is_error=True)
            return
        self.edit_file(path)

    def _path_to_edit(self) -> Path | None:
        """The file of the diff on which the cursor is, else the plan."""
        if self.source is None:
            return self._plan.path if self._plan else None
        if self.source.where:
            return None
        first, page = self.source.view.first, self._tab_page()
        keys = (page.rows[at].key for at in range(page.cursor, -1, -1)) if self.wanted.tab == "Diff" else iter(())
        name = next(filter(None, map(path_of, keys)), "")
        if name and first is not None:
            root = Path(first.checkout or first.workspace)
            path = (root / name).resolve()
            return path if path.is_file() and path.is_relative_to(root.resolve()) else None
        ref = self.source.plan()
        return ref.path if ref else None

    def action_copy(self) -> None:
        if self.seen is None or self.source is None:
            return
        attempt = self.source.view.attempts.by_iteration.get(self.seen.iteration)
        command = command_for(self.wanted.tab, self.source.view, attempt, self.seen.story)
        self.copy_to_clipboard(command)
        self.tell(f"copied: {command}")

    def action_help(self) -> None:
        rows = [row((f"{sign(key):>6}  ", "key"), key.meaning) for key in KEYS]
        rows += [row((f"{keys:>6}  ", "key"), meaning) for keys, meaning in MOVES]
        self.push_screen(Show("Keys", rows))

    # --- the plan -----------------------------------------------------------------------------------------------------

    def _plan_here(self) -> PlanRef | None:
        ref = self.source.plan() if self.source is not None else self._plan
        if ref is None:
            self.tell("the plan of this run is not on this machine", is_error=True)
        return ref

    def action_stories(self) -> None:
        if (ref := self._plan_here()) is not None:
            self.push_screen(StoryEditor(ref, self.env, self._story))

    def action_plan(self) -> None:
        if (ref := self._plan_here()) is not None:
            self.plan_with_agent(ref)
