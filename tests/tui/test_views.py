"""What `ralph ui` shows: of runs that are hostile, copied, far away, or done by several workers; on small screens."""

from __future__ import annotations

import os
import shutil
import signal
import time
import unicodedata
from pathlib import Path

import pytest

from ralph.core.errors import UsageError
from ralph.tui.app import RalphUi
from ralph.tui.keys import TABS
from ralph.tui.remote import Remote, Server, choose_run
from ralph.tui.source import LocalFiles
from support.hostile_runs import journal_of, tell_hostile, write_log
from support.loops import LoopProject, finish, run_ralph, start_ralph
from support.processes import wait_for
from support.ui_runs import Hand, drive, gated, let_go, project, ui
from support.web_server import served

HIDDEN = {"Cc", "Cf"}


def is_clean(hand: Hand) -> bool:
    return not [letter for line in hand.lines for letter in line if unicodedata.category(letter) in HIDDEN]


async def look_around(hand: Hand, **words: tuple[str, ...]) -> None:
    """Open every tab, and wait for these words in it."""
    app = hand.app
    assert isinstance(app, RalphUi)
    for number, tab in enumerate(TABS, 1):
        await hand.press(str(number))
        await hand.until(lambda: app.seen is not None and app.seen.wanted.tab == app.wanted.tab)
        for each in words.get(tab, ()):
            await hand.until(each)
        assert is_clean(hand), hand.text


async def open_weakened(hand: Hand) -> None:
    """The attempt that changes a check."""
    await hand.press("home", "down")
    await hand.until("review US-002")
    await hand.press("1", "left_square_bracket")
    await hand.until("implement US-002  iteration 5 · 1 of 2")


def test_every_tab_shows_the_evidence(ended: LoopProject) -> None:
    async def play(hand: Hand) -> None:
        await hand.until("ended: waiting")
        assert "✓ US-001 Say one" in hand.text
        assert "proven · 4× · $0.25" in hand.text
        await hand.until("✗ US-003 [red]Loud[/red] and late")  # no markup
        assert "asks you · 3× · 2 open" in hand.text
        await open_weakened(hand)
        await look_around(
            hand,
            Live=("for the reviewer to check",),
            Diff=("~ check.sh  changed  +1 -1", "-! grep -rq BROKEN src"),
            Checks=(
                "the agent claims: done",
                "✗ old tests fail with the tests as they were when the story began",
                "✓ witness grep -q fine src/US-002.txt",
            ),
            Review=("1 review", "approved"),
            Timeline=("✗   7 implement US-003", "Events"),
            Cost=("US-001 Say one", "By iteration"),
        )
        await hand.press("tab", "home", "4")
        await hand.until("F1 ✓ closed")
        assert "F2 – rejected" in hand.text or "F2 ✓ closed" in hand.text

    drive(ui(ended), play, 120, 40)


def test_ten_megabytes_of_escape_sequences_are_text(ended: LoopProject) -> None:
    async def play(hand: Hand) -> None:
        await hand.until("ended: waiting")
        await hand.press("1", "left_square_bracket", "left_square_bracket")
        await hand.until("▸ Bash head -c 10000000 /dev/zero")
        while "Bash head" not in hand.current:
            assert hand.page.cursor > 0
            await hand.press("up")
        begun = time.monotonic()
        await hand.press("enter")
        await hand.until("│ xx<U+0007>xx")
        assert is_clean(hand)
        assert time.monotonic() - begun < 20

    drive(ui(ended), play)


def test_a_hostile_run_of_another_machine(tmp_path: Path) -> None:
    told = tell_hostile(tmp_path)
    journal = journal_of(tmp_path)
    write_log(journal, ["\x1b[2J[bold]gone[/bold]\x1b]0;title\x07 \u202etxt.exe"])
    copied = tmp_path / "elsewhere" / "run"
    shutil.copytree(journal.parent, copied)
    assert told.records

    async def play(hand: Hand) -> None:
        await hand.until("ended: complete")
        await hand.press("1", "left_square_bracket")
        await hand.until("[bold]gone[/bold]")
        assert is_clean(hand)
        await look_around(hand)
        await hand.press("e")
        await hand.until("there is no file here that this machine has")
        await hand.press("E")
        await hand.until("the plan of this run is not on this machine")
        await hand.press("n")
        await hand.type("hello")
        await hand.press("ctrl+s")
        await hand.until("is no longer there")

    drive(RalphUi(LocalFiles(copied / journal.name, dict(os.environ)), None, dict(os.environ)), play)


def test_a_run_on_another_machine_through_its_server(ended: LoopProject) -> None:
    run = ended.journals()[-1].parent.name
    with served(ended.state, env=ended.env) as there:
        with pytest.raises(UsageError, match="token"):
            choose_run(Server.of(there.url, "wrong"), "")
        server = Server.of(there.login, "")
        assert server.token == there.token
        assert choose_run(server, "") == choose_run(server, run[:12]) == run

        async def play(hand: Hand) -> None:
            await hand.until(f"run {run} on {there.host}")
            await hand.until("ended: waiting")
            await open_weakened(hand)
            await look_around(
                hand,
                Live=("Bash echo fine > src/$RALPH_STORY.txt",),
                Diff=("-! grep -rq BROKEN src",),
                Checks=("✓ witness grep -q fine src/US-002.txt",),
            )
            await hand.press("n")
            await hand.type("from afar")
            await hand.press("ctrl+s")
            await hand.until("saved for the next iteration")
            await hand.press("E")
            await hand.until("the plan of this run is not on this machine")
            os.kill(there.pid, signal.SIGTERM)
            await hand.until(f"{there.host} does not answer")
            there.process.wait(30)  # a second signal would be one too many

        drive(RalphUi(Remote(server, run), None, ended.env), play, 120, 40)
    notes = [path.read_text() for path in ended.state.glob("*/plans/*/notes/*")]
    assert any("from afar" in note for note in notes)


def test_each_of_several_workers_has_its_line(tmp_path: Path) -> None:
    wait = [{"run": "while [ ! -e ../../../../../../go ] && [ ! -e $GO ]; do sleep 0.05; done"}, "claim"]
    made = project(
        tmp_path / "made",
        {"US-001": "Say one", "US-002": "Say two"},
        {"*": [{"implement": wait}]},
        review={"enabled": False},
    )
    process = start_ralph(made, "run", "--parallel", "2", "--quiet", GO=str(made.folder / "go"))
    try:
        wait_for(lambda: bool(made.journals()), seconds=60)

        async def play(hand: Hand) -> None:
            await hand.until("▶ 2 at work")
            await hand.until("w1 US-00")
            await hand.until("w2 US-00")
            assert hand.text.count("in progress · 1×") == 2
            await hand.press("5")
            await hand.until("worker 2")

        drive(ui(made), play)
    finally:
        let_go(made)
        process.terminate()
        finish(process)


def test_a_narrow_screen_has_one_pane_and_the_mouse_works(ended: LoopProject) -> None:
    app = ui(ended)

    async def play(hand: Hand) -> None:
        await hand.until("ended: waiting")
        assert "Live" not in hand.text
        await hand.press("tab")
        await hand.until("1 Live")
        assert "Say two" not in hand.text
        await hand.pilot.resize_terminal(100, 30)
        await hand.until("Say two")
        row = next(number for number, line in enumerate(hand.lines) if "Say two" in line)
        await hand.pilot.click(offset=(5, row))
        await hand.until("review US-002")
        place = hand.lines[1].index("3 Checks")
        await hand.pilot.click(offset=(place, 1))
        await hand.until("✓ witness grep -q fine src/US-002.txt")
        row = next(number for number, line in enumerate(hand.lines) if "? help" in line)
        await hand.pilot.click(offset=(hand.lines[row].index("? help"), row))
        await hand.until("pause the run after this iteration")

    drive(app, play, 60, 20)


def test_what_happens_is_on_the_screen_within_half_a_second(tmp_path: Path) -> None:
    made = gated(tmp_path / "made")
    process = start_ralph(made, "run", "--quiet")
    try:
        wait_for(lambda: bool(list(made.state.glob("*/runs/*/raw/0001-*.log"))))

        async def play(hand: Hand) -> None:
            await hand.until("I begin.")
            raw = min(made.state.glob("*/runs/*/raw/0001-*.log"), key=lambda path: len(path.name))
            with raw.open("ab") as stream:
                stream.write(b'{"type":"assistant","message":{"content":[{"type":"text","text":"LATE NEWS"}]},')
                stream.write(b'"parent_tool_use_id":null}\n')
            await hand.until("LATE NEWS", seconds=1.5)
            run_ralph(made, "pause")
            await hand.until("pauses after this iteration", seconds=5)

        drive(ui(made), play)
    finally:
        let_go(made)
        process.terminate()
        finish(process)
