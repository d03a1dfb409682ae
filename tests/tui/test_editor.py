"""The story editor and its form, on a real plan: every edit is in the plan file, and the linter looks at it first."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ralph.core.ports import PlanRef
from ralph.tui.app import RalphUi
from ralph.tui.editor import StoryEditor
from ralph.tui.form import StoryForm
from support.loops import LoopProject, run_ralph
from support.ui_runs import Hand, drive, gated, presses

TITLES = {"US-001": "Say [b]one[/b]", "US-002": "Say two", "US-003": "Say three"}


@pytest.fixture
def made(tmp_path: Path) -> LoopProject:
    return gated(tmp_path / "made", TITLES)


def editor(made: LoopProject) -> RalphUi:
    """What `ralph ui` opens where there is a plan and no run."""
    return RalphUi(None, PlanRef("tasks.json", made.root, made.plan.parent, made.plan, "words"), made.env)


def stories(made: LoopProject) -> dict[str, Any]:
    """In the order in which they are worked on."""
    listed = json.loads(made.plan.read_text())["userStories"]
    return {story["id"]: story for story in sorted(listed, key=lambda each: each["priority"])}


@presses(StoryEditor, "enter", "tab", "escape")
@presses(StoryForm, "ctrl+s", "tab", "escape")
def test_a_story_is_changed_while_the_linter_looks(made: LoopProject) -> None:
    async def play(hand: Hand) -> None:
        await hand.until("Say [b]one[/b]")
        await hand.until("linter: ")
        await hand.press("tab")
        assert hand.page.id == "plan-story"
        await hand.press("tab", "down", "enter")
        await hand.until("Edit US-002")
        await hand.type(" and a half")
        await hand.press("tab")
        await hand.type("\nHalf a word.")
        await hand.press("tab", "tab", "tab")
        await hand.type("US-009")
        await hand.until("✗ error: no story 'US-009' in the plan")
        await hand.press("ctrl+s")
        await hand.until("Edit US-002")
        assert stories(made)["US-002"]["title"] == "Say two", "what is refused is not written"
        await hand.press(*["backspace"] * 6)
        await hand.type("US-001")
        await hand.until("✓ no findings in this story")
        await hand.press("ctrl+s")
        await hand.until(lambda: len(hand.app.screen_stack) == 2)
        await hand.until("Say two and a half")
        await hand.press("enter")
        await hand.until("Edit US-002")
        await hand.type("never mind")
        await hand.press("escape")
        await hand.until("Close the form without saving?")
        await hand.press("left", "enter")
        await hand.until(lambda: len(hand.app.screen_stack) == 2)
        await hand.press("escape")
        await hand.until(lambda: not hand.app.is_running)

    drive(editor(made), play)
    changed = stories(made)["US-002"]
    assert changed["title"] == "Say two and a half"
    assert changed["description"].endswith("Half a word.")
    assert changed["dependsOn"] == ["US-001"]
    assert changed["verify"] == "grep -q fine src/US-002.txt", "the rest is as it was"
    assert run_ralph(made, "check").code in (0, 1)


@presses(StoryEditor, "a", "s", "u", "d")
def test_stories_are_added_split_and_moved(made: LoopProject) -> None:
    async def play(hand: Hand) -> None:
        await hand.until("Say [b]one[/b]")
        await hand.press("a")
        await hand.until("A new story after US-001")
        await hand.until("✗ error: ")
        await hand.type("Say nothing")
        await hand.press("tab", "tab")
        await hand.type("it is quiet\nand stays so")
        await hand.press("ctrl+s")
        await hand.until(lambda: len(hand.app.screen_stack) == 2)
        await hand.until("US-004 Say nothing")
        assert list(stories(made)) == ["US-001", "US-004", "US-002", "US-003"]
        await hand.press("end")
        await hand.until("US-003  Say three")
        await hand.press("u")
        await hand.until(lambda: list(stories(made)) == ["US-001", "US-004", "US-003", "US-002"])
        assert hand.page.current.key == "US-003", "the cursor stays with it"
        await hand.press("d", "d")
        await hand.until("US-003 is already the last story")
        assert list(stories(made)) == ["US-001", "US-004", "US-002", "US-003"]
        await hand.press("s")
        await hand.until("Split US-003")
        await hand.type("\nSay it louder")
        await hand.press("ctrl+s")
        await hand.until("Say it louder")

    drive(editor(made), play)
    found = stories(made)
    assert [story["title"] for story in found.values()][-2:] == ["Say three", "Say it louder"]
    assert found["US-004"]["acceptanceCriteria"] == ["it is quiet", "and stays so"]


def test_an_edit_made_elsewhere_is_read_and_never_overwritten(made: LoopProject) -> None:
    async def play(hand: Hand) -> None:
        await hand.until("Say [b]one[/b]")
        await hand.press("enter")
        await hand.until("Edit US-001")
        await hand.type("!")
        assert run_ralph(made, "task", "set", "US-001", "--description", "Another text.").code == 0
        await hand.press("ctrl+s")
        await hand.until("the plan has changed meanwhile")
        await hand.press("ctrl+s")
        await hand.until(lambda: len(hand.app.screen_stack) == 2)
        made.plan.write_text(made.plan.read_text().replace("Say two", "Say it twice"))
        await hand.until("the plan was changed elsewhere; it was read again")
        await hand.until("Say it twice")
        made.plan.write_text("{")
        await hand.until("✗ the plan cannot be read")

    text = made.plan.read_text()
    drive(editor(made), play)
    assert made.plan.read_text() == "{"
    made.plan.write_text(text)


def test_a_title_that_could_change_the_screen_is_shown_as_text(made: LoopProject) -> None:
    made.plan.write_text(made.plan.read_text().replace("Say two", "\\u001b[2J[red]two[/red]\\u0007"))

    async def play(hand: Hand) -> None:
        await hand.until("[red]two[/red]")
        await hand.press("down", "enter")
        await hand.until("Edit US-002")
        assert "\x1b" not in hand.text
        await hand.press("escape")

    drive(editor(made), play, 160, 48)
