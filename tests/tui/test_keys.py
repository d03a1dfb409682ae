"""Every key of `ralph ui`, pressed on real runs: what it shows, and what it does to the run."""

from __future__ import annotations

import importlib
import pkgutil
import re
import runpy
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from textual.dom import DOMNode

import ralph.tui
from ralph.core.control import Verb
from ralph.core.events import AgentStarted, Asked, FindingDecided, Guided, RunEnded, StorySetAside
from ralph.core.exit_codes import ExitCode
from ralph.core.moves import Reason
from ralph.tui.app import RalphUi
from ralph.tui.dialogs import Ask, Dialog, Show, Write
from ralph.tui.keys import KEYS, TABS, sign
from ralph.tui.page import Page
from support.loops import LoopProject, finish, run_ralph, start_ralph
from support.processes import wait_for
from support.ui_runs import TESTED, Hand, drive, gated, let_go, own_keys, presses, ui

ROOT = Path(__file__).resolve().parents[2]


@contextmanager
def running(made: LoopProject, code: ExitCode = ExitCode.UNFINISHED) -> Iterator[None]:
    """By default it stops as it is asked to."""
    process = start_ralph(made, "run", "--quiet")
    try:
        wait_for(lambda: any(isinstance(event, AgentStarted) for event in made.events()))
        yield
        let_go(made)
        done = finish(process)
        assert done.code == code, done
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()


def test_the_page_lists_every_key() -> None:
    page = (ROOT / "docs" / "ui.md").read_text()
    assert runpy.run_path(str(ROOT / "scripts" / "write_docs.py"))["keys_page"](page) == page, (
        "run scripts/write_docs.py"
    )
    assert [sign(key) for key in KEYS if f"| `{sign(key)}` | {key.meaning} |" not in page] == []


def test_pictures_load_nothing_from_another_host() -> None:
    pictures = sorted((ROOT / "docs").glob("ui-*.svg"))
    assert {path.name for path in pictures} == set(
        re.findall(r"\]\((ui-[^)]+)\)", (ROOT / "docs" / "ui.md").read_text())
    )
    for path in pictures:
        text = path.read_text()
        assert not re.search(r"url\(\s*[\"']?http|@import|href=|<script", text), path.name


def is_shown(app: RalphUi, tab: str = "", story: str = "") -> bool:
    seen = app.seen
    return seen is not None and seen.wanted.tab == (tab or seen.wanted.tab) and seen.story == (story or seen.story)


def test_every_key_has_a_test() -> None:
    import tui.test_editor
    import tui.test_terminal  # noqa: F401

    modules = [importlib.import_module(f"ralph.tui.{each.name}") for each in pkgutil.iter_modules(ralph.tui.__path__)]
    owners = {
        each
        for module in modules
        for each in vars(module).values()
        if isinstance(each, type) and issubclass(each, DOMNode) and each.__module__ == module.__name__
    }
    bound = {owner: keys for owner in owners if (keys := own_keys(owner))}
    assert {owner.__name__: sorted(keys - TESTED.get(owner, set())) for owner, keys in bound.items()} == {
        owner.__name__: [] for owner in bound
    }
    assert all(TESTED[owner] <= own_keys(owner) for owner in TESTED)


@presses(RalphUi, "p", "r", "s", "n", "x")
@presses(Ask, "left", "right")
@presses(Dialog, "escape")
@presses(Write, "ctrl+s")
def test_a_run_under_way_is_noted_paused_resumed_and_stopped(tmp_path: Path) -> None:
    made = gated(tmp_path / "made")

    async def play(hand: Hand) -> None:
        await hand.until("I begin.")
        await hand.until("▶ implement US-001 agent: Bash")
        assert "in progress · 1×" in hand.text
        await hand.until(lambda: re.search(r"limit: \d+ of \d+ \w", hand.text))
        await hand.press("n")
        await hand.until("A note for the next session of the agent")
        await hand.type("never mind")
        await hand.press("escape")
        await hand.is_gone("A note for")
        await hand.press("n")
        await hand.type("Mind the gap")
        await hand.press("ctrl+s")
        await hand.until("saved for the next iteration of run")
        assert "q quit" in hand.text, "a message covers no key"
        assert re.search(r"limit: \d+ of", hand.text)
        await hand.press("p")
        await hand.until("pauses after this iteration")
        assert run_ralph(made, "status", "--json").json["running"]["pending"] == "pause"
        await hand.until("r resume")
        await hand.press("r")
        await hand.until("p pause")
        assert run_ralph(made, "status", "--json").json["running"]["pending"] != "pause"

        await hand.press("down")
        await hand.until("nothing has been done for this story yet")
        await hand.press("x")
        await hand.until("Skip US-002?")
        await hand.press("enter")  # the cursor is on "Cancel"
        await hand.is_gone("Skip US-002?")
        assert not list(made.state.glob("*/plans/*/skips/*"))
        await hand.press("x", "left", "enter")
        await hand.until("US-002 will be skipped between two iterations")
        assert list(made.state.glob("*/plans/*/skips/*"))

        await hand.press("s")
        await hand.until("Stop now")
        await hand.press("left", "left", "right", "left", "enter")  # the first of the buttons
        await hand.until("stops after this iteration")
        let_go(made)
        await hand.until("ended: ")
        await hand.press("s")
        await hand.until("the run has ended")

    with running(made):
        drive(ui(made), play)
    asked = [event.verb for event in made.events() if isinstance(event, Asked)]
    assert asked == [Verb.PAUSE, Verb.RESUME, Verb.STOP]
    assert [event.reason for event in made.events() if isinstance(event, RunEnded)] == [Reason.ON_REQUEST]
    assert list(made.state.glob("*/plans/*/notes/*")), "for the next session"
    assert not any(isinstance(event, Guided) for event in made.events())
    done = run_ralph(made)
    assert [event.text for event in made.events() if isinstance(event, Guided)] == ["Mind the gap"], done
    assert [event.story for event in made.events() if isinstance(event, StorySetAside)] == ["US-002"], done


def test_it_follows_what_is_worked_on(tmp_path: Path) -> None:
    made = gated(tmp_path / "made")

    async def play(hand: Hand) -> None:
        await hand.until("I begin.")
        await hand.pilot.resize_terminal(100, 30)
        let_go(made)
        await hand.until("iteration 3")
        assert hand.page.current.key == "US-003"
        await hand.until("ended: complete")

    with running(made, ExitCode.COMPLETE):
        drive(ui(made), play)


@presses(RalphUi, "a", "R", "x", "c", "d")
def test_a_run_that_has_ended_is_answered_retried_and_decided_about(ended: LoopProject) -> None:
    async def play(hand: Hand) -> None:
        await hand.until("ended: waiting")
        await hand.press("c")
        await hand.until("select a finding in the tab Review first")
        await hand.press("end", "4", "down")
        await hand.until("F1 ○ open [major]")
        assert hand.current.startswith("F1")
        await hand.press("d")
        await hand.until("Reject finding F1 of US-005")
        await hand.press("ctrl+s")
        await hand.until("reject needs a text")
        await hand.press("d")
        await hand.type("it is a quiet word")
        await hand.press("ctrl+s")
        await hand.until("rejected finding F1 of US-005")
        await hand.press("down", "c")
        await hand.until("Confirm finding F2 of US-005")
        await hand.press("ctrl+s")
        await hand.until("confirmed finding F2 of US-005")

        await hand.press("tab", "home")
        await hand.press("down", "down", "down")
        await hand.until("Findings of US-004")
        await hand.press("a")
        await hand.until("US-004 asks:")
        assert "Which [b]colour[/b]?" in hand.text, "no markup"
        await hand.type("Blue")
        await hand.press("ctrl+s")
        await hand.until("answered for US-004; `ralph run` continues")
        await hand.press("up", "R")
        await hand.until("reopened US-003")
        await hand.press("x")
        await hand.until("Skip US-003?")
        await hand.press("left", "enter")
        await hand.until("skipped US-003; `ralph retry US-003` brings it back")

    drive(ui(ended), play)
    status = {story["id"]: story for story in run_ralph(ended, "status", "--json").json["stories"]}
    assert {name: status[name]["state"] for name in ("US-003", "US-004")} == {"US-003": "failed", "US-004": "todo"}
    fates = [(event.finding, str(event.fate)) for event in ended.events() if isinstance(event, FindingDecided)]
    assert fates == []  # between runs it is the plan that changes
    shown = run_ralph(ended, "task", "show", "US-005").out
    assert "F2 no final stop" in shown
    assert "F1" not in shown


@presses(RalphUi, "1", "2", "3", "4", "5", "6", "space", "left_square_bracket", "right_square_bracket", "tab")
@presses(Page, "up", "down", "k", "j", "pageup", "pagedown", "home", "end", "g", "G", "enter")
def test_moving_about(ended: LoopProject) -> None:
    app = ui(ended)

    async def play(hand: Hand) -> None:
        await hand.until("iteration 12 · 3 of 3")
        assert hand.page.id == "stories"
        assert hand.page.current.key == "US-005", "what was worked on last"
        for key, name in enumerate(TABS, 1):
            await hand.press(str(key))
            await hand.until(partial(is_shown, app, tab=name))
            assert hand.page.id == name
        await hand.press("1", "left_square_bracket")
        await hand.until("iteration 11 · 2 of 3")
        await hand.press("left_square_bracket", "left_square_bracket")
        await hand.until("iteration 10 · 1 of 3")
        await hand.press("right_square_bracket")
        await hand.until("iteration 11 · 2 of 3")
        await hand.press("space")
        await hand.until("iteration 12 · 3 of 3")

        await hand.press("tab")
        assert hand.page.id == "stories"
        for keys, story in (
            (("home",), "US-001"),
            (("down",), "US-002"),
            (("j",), "US-003"),
            (("up",), "US-002"),
            (("k",), "US-001"),
            (("G",), "US-005"),
            (("g",), "US-001"),
            (("pagedown",), "US-005"),
            (("pageup",), "US-001"),
            (("end",), "US-005"),
            (("g",), "US-001"),
        ):
            await hand.press(*keys)
            await hand.until(partial(is_shown, app, story=story))
        await hand.press("enter")
        assert hand.page.id == "Live"
        await hand.press("5")
        await hand.until("Iterations")
        await hand.until(lambda: hand.page.current.key == "i1")
        await hand.press("G")
        await hand.until(lambda: "stopped: waiting" in hand.current)
        await hand.press("g")
        assert hand.page.current.key == "i1"
        await hand.press("up", *["down"] * 4)
        assert hand.page.current.key == "i5"
        await hand.press("enter")
        await hand.until("implement US-002  iteration 5 · 1 of 2")
        assert hand.page.id == "Live"

    drive(app, play)


@presses(Page, "enter")
def test_what_folds_is_unfolded_and_folded(ended: LoopProject) -> None:
    async def play(hand: Hand) -> None:
        await hand.until("ended: waiting")
        await hand.press("home")
        await hand.until("iteration 4 · 4 of 4")
        await hand.press("1", *["left_square_bracket"] * 3)
        await hand.until("iteration 1 · 1 of 4")
        await hand.until("exit 3 ✗ failed")
        await hand.until("Bash echo fine > src/$RALPH_STORY.txt ✓")
        await hand.press("3")
        await hand.until("✓ witness grep -q fine src/US-001.txt")
        await hand.press("home", *["down"] * 4)
        assert hand.page.current.folds
        closed = len(hand.page.rows)
        await hand.press("enter")
        await hand.until("$ grep -q fine src/US-001.txt")
        await hand.press("enter")
        await hand.until(lambda: len(hand.page.rows) == closed)

    drive(ui(ended), play)


@presses(RalphUi, "slash", "full_stop", "comma", "f", "escape")
def test_search_and_filter(ended: LoopProject) -> None:
    async def play(hand: Hand) -> None:
        await hand.until("ended: waiting")
        await hand.press("5")
        await hand.until("Iterations")
        await hand.press("slash")
        await hand.until("Search in this pane for:")
        await hand.type("BLOCKED")
        await hand.press("enter")
        await hand.until(lambda: hand.page.current.key == "i9")
        await hand.press("full_stop")
        await hand.until(lambda: hand.page.current.key == "i12")
        await hand.press("comma")
        await hand.until(lambda: hand.page.current.key == "i9")
        await hand.press("slash")
        await hand.type("no such thing")
        await hand.press("enter")
        await hand.until("not found: no such thing")
        await hand.press("f")
        await hand.until("Show only what contains (empty: everything), in Timeline:")
        await hand.type("rejected")
        await hand.press("enter")
        await hand.until("filter: rejected")
        await hand.until(lambda: all("rejected" in each.text.lower() for each in list(hand.page.rows)))
        await hand.press("f", *["backspace"] * 8, "enter")
        await hand.is_gone("filter:")
        await hand.press("tab", "f")
        await hand.until("in stories:")
        await hand.type("loud")
        await hand.press("enter")
        await hand.until(lambda: {each.key for each in hand.page.rows} == {"US-003"})
        await hand.press("escape")
        await hand.until(lambda: len(hand.page.rows) == 10)

        for tab in ("5", "6"):
            await hand.press(tab, "f")
            await hand.type("kebab")
            await hand.press("enter")
            await hand.until("No line matches “kebab”; Esc")
            await hand.press("escape")
            await hand.until("teration")
        assert "US-005 Say a lot" not in hand.text.partition("By story")[2]
        await hand.press("f")
        await hand.type("say a LOT")
        await hand.press("enter")
        await hand.until(lambda: [each.text[:10] for each in hand.page.rows] == ["US-005 Say"])

    drive(ui(ended), play)


@presses(RalphUi, "t", "y", "question_mark", "q", "E")
@presses(Show, "q")
@presses(Dialog, "escape")
def test_theme_copy_help_and_quit(ended: LoopProject) -> None:
    app = ui(ended)

    async def play(hand: Hand) -> None:
        await hand.until("ended: waiting")
        seen = [app.theme]
        for _ in range(4):
            await hand.press("t")
            seen.append(app.theme)
        assert len(set(seen)) == 4
        assert seen[0] == seen[4]
        run = ended.journals()[-1].parent.name
        for tab, command in (
            ("1", f"ralph log {run} --agent 12"),
            ("4", "ralph log US-005"),
            ("6", "ralph runs cost"),
            ("5", f"ralph log {run}"),
        ):
            await hand.press(tab, "y")
            await hand.until(f"copied: {command}")
            assert app.clipboard == command
            assert run_ralph(ended, *command.split()[1:]).code == 0
        await hand.press("question_mark")
        await hand.until("pause the run after this iteration")
        await hand.press("q")
        await hand.is_gone("pause the run after this iteration")
        await hand.press("question_mark")
        await hand.until("pause the run after this iteration")
        await hand.press("escape")
        await hand.is_gone("pause the run after this iteration")
        await hand.press("E")
        await hand.until("Stories of words")
        await hand.press("escape")
        await hand.is_gone("Stories of words")
        await hand.press("q")
        await hand.until(lambda: not app.is_running)

    drive(app, play)
    assert app.return_code == 0
