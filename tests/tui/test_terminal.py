"""`ralph ui` as it is started, in a terminal of its own."""

from __future__ import annotations

import re

import pyte
import pytest

from ralph.core.exit_codes import ExitCode
from ralph.tui.app import RalphUi
from ralph.tui.editor import StoryEditor
from support.loops import LoopProject, run_ralph
from support.terminals import Terminal
from support.ui_runs import PATIENCE, gated, let_go, presses
from support.web_server import served

pytestmark = pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
COLOURS = re.compile(r"\x1b\[(?:\d+;)*(?:3[0-8]|4[0-8]|9[0-7]|10[0-7])(?:;\d+)*m")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> LoopProject:
    made = gated(tmp_path_factory.mktemp("ended") / "made")
    let_go(made)
    assert run_ralph(made).code == 0
    return made


@presses(RalphUi, "e", "P", is_checked=False)
@presses(StoryEditor, "e", "P", is_checked=False)
def test_other_programs_get_the_terminal_and_give_it_back(finished: LoopProject) -> None:
    """Ctrl-C is for them."""
    editor = finished.folder / "editor"
    editor.write_text('#!/bin/sh\necho "EDITING $1"; head -n 1 | sed s/^/TYPED:/; exit 0\n')
    editor.chmod(0o755)
    own = Terminal(finished, "ui", columns=80, rows=24, EDITOR=str(editor))
    own.until("ended: complete", PATIENCE)
    assert COLOURS.search(own.text)
    _edits(own, f"EDITING {finished.plan}")
    own.press(b"E")
    own.until("linter: ", PATIENCE)
    for number, leave in enumerate((b"\x03", b"\n")):  # in the editor, then over the run
        own.text = ""
        own.press(b"P")
        own.until("Ctrl-C returns to `ralph ui`.", PATIENCE)
        own.until("What should be built? (an empty line leaves)", PATIENCE)
        own.text = ""
        own.press(leave)
        own.until("Stories of words" if number == 0 else "ended: complete", PATIENCE)
        if number:
            own.until("nothing was changed", PATIENCE)
        if number == 0:
            _edits(own, f"EDITING {finished.plan}")
            own.text = ""
            own.press(b"\x1b")
            own.until("ended: complete", PATIENCE)
    own.press(b"q")
    assert own.end() == 0


def _edits(own: Terminal, words: str) -> None:
    own.text = ""
    own.press(b"e")
    own.until(words, PATIENCE)
    own.press(b"a line\n")
    own.until("TYPED:a line", PATIENCE)
    own.until("Esc back" if "Stories" in own.plain else "q quit", PATIENCE)


def test_no_color_is_without_colour_and_a_resized_terminal_without_leftovers(finished: LoopProject) -> None:
    own = Terminal(finished, "ui", columns=120, rows=40, NO_COLOR="1")
    own.until("ended: complete", PATIENCE)
    own.until("q quit", PATIENCE)
    first = own.text
    screen = pyte.Screen(120, 40)
    stream = pyte.Stream(screen)
    stream.feed(own.text)
    assert any("ended: complete" in line for line in screen.display)
    for columns, rows in ((60, 20), (160, 48), (80, 24)):
        own.text = ""
        screen.resize(rows, columns)
        own.resize(columns, rows)
        own.until("q quit", PATIENCE)
        own.until("ended: complete", PATIENCE)
        stream.feed(own.text)
    own.text = ""
    own.press(b"3")
    own.until("Of the run", PATIENCE)
    own.press(b"q")
    assert own.end() == 0
    stream.feed(own.text.partition("\x1b[?1049l")[0])
    shown = "\n".join(screen.display)
    assert len(screen.display) == 24
    assert shown.count("ended: complete") == 1
    assert shown.count("q quit") == 1
    assert "3 Checks" in shown.splitlines()[1]
    assert not COLOURS.search(first + own.text)


def test_a_run_is_named_or_attached_to(finished: LoopProject) -> None:
    run = finished.journals()[-1].parent.name
    own = Terminal(finished, "ui", run[:13])
    own.until(f"run {run}", PATIENCE)
    own.press(b"q")
    assert own.end() == 0
    with served(finished.state, env=finished.env) as there:
        own = Terminal(finished, "ui", "--attach", there.url, columns=120, rows=40, RALPH_TOKEN=there.token)
        own.until(f"run {run} on {there.host}", PATIENCE)
        own.press(b"q")
        assert own.end() == 0
        own = Terminal(finished, "ui", "--attach", there.url)
        assert own.end() == ExitCode.USAGE
        assert "pass the URL that `ralph serve` prints, or set RALPH_TOKEN" in own.plain
    own = Terminal(finished, "ui", "--attach", there.url)
    assert own.end() == ExitCode.ENVIRONMENT
    assert "does not answer" in own.plain


def test_it_says_what_is_missing(finished: LoopProject) -> None:
    done = run_ralph(finished, "ui")
    assert done.code == ExitCode.USAGE
    assert "`ralph ui` needs a terminal" in done.err
    site = finished.folder / "site"
    site.mkdir()
    (site / "sitecustomize.py").write_text("import sys; sys.modules['textual'] = None")
    done = run_ralph(finished, "ui", PYTHONPATH=str(site))
    assert "pip install 'ralph-loop-engine[tui]'" in done.err
    own = Terminal(finished, "ui", str(finished.root / "none.jsonl"))
    assert own.end() == ExitCode.USAGE
    assert "file not found" in own.plain
