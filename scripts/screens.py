"""Makes the pictures of docs/ui.md: `ralph ui` on the run of `scripts/demo`, while it works and after it."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import demo_loop
from picture import RUN
from textual.pilot import Pilot

from ralph.core.plan import Mode
from ralph.tui.app import RalphUi
from ralph.tui.source import LocalFiles

DOCS = Path(__file__).resolve().parent.parent / "docs"
SMALL, LARGE = (80, 24), (160, 48)
PATIENCE = 240
_FONTS = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
_FOLDER = re.compile(r"/tmp/ralph-screens-\w{8}")
_NAMES = re.compile(r"terminal-\d+-")


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="ralph-screens-") as name:
        folder = Path(name)
        env = demo_loop.environment(folder)
        project = folder / "textkit"
        shutil.copytree(demo_loop.EXAMPLE, project)
        script = project / "script.yaml"
        script.write_text(script.read_text().replace("pace: 0.2", "pace: 0.8"))
        for command in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-qm", "A text kit with one function"]):
            subprocess.run(["git", *command], cwd=project, env=env, check=True)
        command = [sys.executable, "-m", "ralph", "run", "--trust", "--plain"]
        with subprocess.Popen(command, cwd=project, env=env, stdout=subprocess.DEVNULL) as run:
            while not (journals := list(folder.glob("state/*/runs/*/events.jsonl"))):
                time.sleep(0.1)
            asyncio.run(under_way(journals[0], env))
        if run.returncode:
            return run.returncode
        asyncio.run(afterwards(journals[0], env))
    return 0


async def under_way(journal: Path, env: Mapping[str, str]) -> None:
    app = RalphUi(LocalFiles(journal, env), None, env)

    def is_busy() -> bool:
        """In the second attempt at US-003, after a command."""
        attempts = list(app.source.view.attempts.by_iteration.values()) if app.source else []
        is_there = bool(attempts) and attempts[-1].story == "US-003" and attempts[-1].mode is Mode.IMPLEMENT
        return is_there and attempts[-1].number == 2 and "unittest -q ✓" in text(app)

    async with app.run_test(size=SMALL) as pilot:
        await until(pilot, is_busy)
        keep(app, "ui-live")


async def afterwards(journal: Path, env: Mapping[str, str]) -> None:
    app = RalphUi(LocalFiles(journal, env), None, env)
    async with app.run_test(size=LARGE) as pilot:
        await until(pilot, lambda: "ended: complete" in text(app))
        await pilot.press("home", "down", "down")
        await until(pilot, lambda: "US-003  iteration" in text(app))
        await pilot.press("3", "left_square_bracket", "left_square_bracket")
        await until(pilot, lambda: "✗ failed" in text(app))
        keep(app, "ui-checks")
        await pilot.press("5")
        await until(pilot, lambda: "Iterations" in text(app) and "Events" in text(app))
        keep(app, "ui-timeline")
        await pilot.press("tab", "home")
        await pilot.resize_terminal(*SMALL)
        await pilot.press("E")
        await until(pilot, lambda: "linter: " in text(app))
        await pilot.press("a")
        await until(pilot, lambda: "✗ error" in text(app))
        for field in ("Reverse a text", "reverse(text) reads it backwards.", "reverse('ab') is 'ba'"):
            await pilot.press(*field.replace(" ", "\0").replace("\0", " "))
            await pilot.press("tab")
        await until(pilot, lambda: "⚠" in text(app) or "✓ no findings" in text(app))
        keep(app, "ui-plan")
        await pilot.press("escape")


async def until(pilot: Pilot[None], is_true: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not is_true():
        if time.monotonic() > end:
            raise TimeoutError(text(pilot.app))
        await pilot.pause(0.05)
    await pilot.pause(0.5)


def text(app: object) -> str:
    assert isinstance(app, RalphUi)
    return "\n".join(strip.text for strip in app.screen._compositor.render_strips())


def keep(app: RalphUi, name: str) -> None:
    """Without fonts from another host, and without what differs each time."""
    svg = _FONTS.sub("", app.export_screenshot(title="ralph ui", simplify=True))
    svg = _FOLDER.sub("/tmp/ralph-screens-abcdefgh", _NAMES.sub("t-", svg))
    target = DOCS / f"{name}.svg"
    target.write_text(RUN[0].sub(RUN[1], svg))
    sys.stdout.write(f"{os.path.relpath(target)}\n")


if __name__ == "__main__":
    sys.exit(main())
