"""Real runs of the scripted agent for `ralph ui`, and a pilot for its screen."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable
from functools import wraps
from pathlib import Path
from typing import Any

from textual.app import App
from textual.pilot import Pilot
from textual.screen import Screen

from ralph.core.exit_codes import ExitCode
from ralph.tui.app import RalphUi
from ralph.tui.page import Page
from ralph.tui.source import LocalFiles
from support.loops import LoopProject, Scenario, run_ralph

PATIENCE = 60.0
Test = Callable[..., None]
_PRESSED: set[tuple[type, str]] = set()
MARKUP = "[red]Loud[/red] \x1b[31m\u202eand late"
FLOOD = "head -c 10000000 /dev/zero | tr '\\0' 'x' | sed 's/xxxx/\\x1b[31mxx\\x07/g' | fold -w 4000"
WORK = [{"run": "echo fine > src/$RALPH_STORY.txt"}, "claim"]
WEAKENED = [
    {"write": {"path": "check.sh", "text": "exit 0\n"}},
    {"write": {"path": "src/two.txt", "text": "BROKEN\n"}},
    WORK[0],
    "claim",
]
FOUND = [{"text": "the word is shouted", "place": "src/US-001.txt:1", "severity": "major"}, {"text": "no final stop"}]
SHOWCASE = {
    "US-001": [
        {
            "implement": [
                {"say": "I write [bold]one[/bold] file.\x1b[2J"},
                {"run": "exit 3"},
                *WORK,
                {"cost": {"usd": 0.25, "input": 1000, "output": 20}},
            ],
            "review": [{"verdict": {"what": "changes_requested", "findings": FOUND}}],
            "fix": [
                {"run": "echo finer >> src/US-001.txt"},
                {"fixes": [{"id": "F1", "fate": "fixed"}, {"id": "F2", "fate": "rejected", "reason": "it is a word"}]},
                "claim",
            ],
        },
        {"review": [{"verdict": "approved"}]},
    ],
    "US-002": [{"implement": WEAKENED}, {"implement": WORK, "review": [{"verdict": "approved"}]}],
    "US-003": [{"implement": ["lie"]}],
    "US-004": [{"implement": [{"ask": "Which [b]colour[/b]?"}]}],
    "US-005": [
        {
            "implement": [{"run": FLOOD}, *WORK],
            "review": [{"verdict": {"what": "changes_requested", "findings": FOUND}}],
            "fix": [{"ask": "Is F1 worth it?"}],
        }
    ],
}
TITLES = {"US-001": "Say one", "US-002": "Say two", "US-003": MARKUP, "US-004": "Paint it", "US-005": "Say a lot"}
PROVING = {"RALPH_PROOF_MINIMUM": "reviewed", "RALPH_PROOF_WHERE": "checkout"}


def project(folder: Path, titles: dict[str, str], play: dict[str, Any], **settings: Any) -> LoopProject:
    """Stories with a check each, in a project with another one."""
    config = {
        "agent": {"name": "scripted", "script": ".ralph/script.yaml"},
        "archive": {"on_complete": False},
        "checks": [{"name": "words", "command": "sh check.sh"}],
    }
    scenario = Scenario("tasks.json", titles, json.dumps({"stories": play}), [], config=json.dumps(config | settings))
    made = LoopProject.make(folder, scenario)
    plan = json.loads(made.plan.read_text())
    for story in plan["userStories"]:
        story["verify"] = f"grep -q fine src/{story['id']}.txt"
    made.plan.write_text(json.dumps(plan, indent=2) + "\n")
    made.git("commit", "-qam", "how to verify the stories")
    return made


def showcase(folder: Path) -> LoopProject:
    """A run that has ended with everything that can come of a story."""
    made = project(folder, TITLES, SHOWCASE, max_loops_per_task=2, circuit_breaker={"retry_rounds": 0})
    done = run_ralph(made, "run", "--plain", **PROVING)
    assert done.code == ExitCode.WAITING, done.out + done.err
    return made


def gated(folder: Path, titles: dict[str, str] | None = None) -> LoopProject:
    """The agent of the first story waits for a file named `go`."""
    wait = {"run": "while [ ! -e ../go ]; do sleep 0.05; done"}
    play = {"US-001": [{"implement": [{"say": "I begin."}, wait, *WORK]}], "*": [{"implement": WORK}]}
    return project(
        folder,
        titles or {"US-001": "Say one", "US-002": "Say two", "US-003": "Say three"},
        play,
        review={"enabled": False},
    )


def let_go(made: LoopProject) -> None:
    (made.folder / "go").touch()


TESTED: dict[type, set[str]] = {}
"""Class with keys → those that a test presses."""


def presses(owner: type, *keys: str, is_checked: bool = True) -> Callable[[Test], Test]:
    """A test of these keys. It fails if it has not pressed them."""
    TESTED.setdefault(owner, set()).update(keys)

    def wrap(test: Test) -> Test:
        @wraps(test)
        def wrapped(*args: Any, **kwargs: Any) -> None:
            _PRESSED.clear()
            test(*args, **kwargs)
            left = [key for key in keys if not any(issubclass(kind, owner) and key == each for kind, each in _PRESSED)]
            assert not left or not is_checked, f"not pressed: {left}; pressed: {_PRESSED}"

        return wrapped

    return wrap


def own_keys(owner: type) -> set[str]:
    """What a class binds itself."""
    bound = vars(owner).get("BINDINGS", ())
    names = [each[0] if isinstance(each, tuple) else each.key for each in bound]
    methods = [name.removeprefix("key_") for name in vars(owner) if name.startswith("key_")]
    return {key for name in names for key in name.split(",")} | set(methods)


class Hand:
    """What a user does to a screen, and sees."""

    def __init__(self, pilot: Pilot[Any]) -> None:
        self.pilot = pilot
        self.app: App[Any] = pilot.app

    async def press(self, *keys: str) -> None:
        for key in keys:
            _PRESSED.update((type(place), key) for place in (self.app, self.app.screen, self.app.focused))
            await self.pilot.press(key)
            await self.pilot.pause()

    async def type(self, text: str) -> None:
        for letter in text:
            await self.pilot.press({" ": "space", "\n": "enter"}.get(letter, letter))
        await self.pilot.pause()

    async def until(self, wanted: str | Callable[[], object], seconds: float = PATIENCE) -> None:
        """A text on the screen, or whatever is true sooner or later."""
        until = time.monotonic() + seconds
        while not (wanted in self.text if isinstance(wanted, str) else wanted()):
            assert time.monotonic() < until, f"{wanted}\n{self.text}"
            await self.pilot.pause(0.02)

    async def is_gone(self, words: str) -> None:
        """A dialog is closed."""
        await self.until(lambda: words not in self.text and len(self.app.screen_stack) == 1)

    @property
    def lines(self) -> list[str]:
        screen: Screen[Any] = self.app.screen
        return [strip.text.rstrip() for strip in screen._compositor.render_strips()]

    @property
    def text(self) -> str:
        """Of the whole screen, with what is below a dialog."""
        return "\n".join(self.lines)

    @property
    def page(self) -> Page:
        assert isinstance(self.app.focused, Page), self.app.focused
        return self.app.focused

    @property
    def current(self) -> str:
        """The row on which the cursor is."""
        return self.page.current.text


def drive(app: App[Any], play: Callable[[Hand], Awaitable[None]], columns: int = 80, rows: int = 24) -> None:
    async def run() -> None:
        async with app.run_test(size=(columns, rows), notifications=True) as pilot:
            await play(Hand(pilot))

    asyncio.run(run())


def ui(made: LoopProject, journal: Path | None = None) -> RalphUi:
    return RalphUi(LocalFiles(journal or made.journals()[-1], made.env), None, made.env)
