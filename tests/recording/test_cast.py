"""An asciicast shows in a terminal what the frames say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ralph.recording.cast import as_cast
from ralph.recording.spans import plain
from ralph.recording.storyboard import Size, Storyboard, storyboard
from ralph.recording.theme import Theme
from support.interleaved import clashing
from support.recordings import hostile_run, lying_run, played


def text_of(board: Storyboard) -> list[list[str]]:
    return [[plain(line).rstrip() for line in frame.lines] for frame in board.frames]


@pytest.mark.parametrize("is_parallel", [False, True])
def test_every_screen_is_the_frame(tmp_path: Path, is_parallel: bool) -> None:
    board = storyboard(clashing(6) if is_parallel else lying_run(tmp_path, iterations=12), Size(), 20)
    shown = played(as_cast(board))
    for screen, lines in zip(shown.screens, text_of(board), strict=False):
        assert screen == lines + [""] * (len(screen) - len(lines))
    assert shown.screens[-1] == shown.screens[-2], "the last event only lets the last frame stay"
    assert len(shown.screens) == len(board.frames) + 1


def test_its_header_is_version_2_with_size_title_and_duration(tmp_path: Path) -> None:
    board = storyboard(lying_run(tmp_path), Size(), 20)
    shown = played(as_cast(board))
    assert shown.header == {
        "version": 2,
        "width": 100,
        "height": 25,
        "timestamp": 1_700_000_000,
        "duration": round(board.seconds, 3),
        "title": "ralph run · Shop",
    }
    assert shown.seconds == pytest.approx(board.seconds, abs=0.01)
    assert shown.seconds <= 20


def test_a_theme_is_written_as_players_read_it(tmp_path: Path) -> None:
    cast = as_cast(storyboard(lying_run(tmp_path), Size(), 20), Theme.LIGHT)
    theme = json.loads(cast.splitlines()[0])["theme"]
    assert (theme["fg"], theme["bg"]) == ("#1f2328", "#ffffff")
    assert len(theme["palette"].split(":")) == 8


@pytest.mark.parametrize(("columns", "rows"), [(40, 12), (100, 25)])
def test_hostile_text_never_leaves_its_row_and_column(tmp_path: Path, columns: int, rows: int) -> None:
    shown = played(as_cast(storyboard(hostile_run(tmp_path), Size(columns, rows), 20)))
    assert all(not screen[rows] for screen in shown.screens), "a row too many"
    cast = as_cast(storyboard(hostile_run(tmp_path / "again"), Size(columns, rows), 20))
    codes = {part[0] for line in cast.splitlines() for part in line.split("\\u001b")[1:]}
    assert codes == {"["}, "only what moves the cursor and paints"
    assert "\\u001b[2J" not in cast.partition("\\u001b[2J")[2], "the screen is cleared once"
