"""What is seen in each frame of a picture."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralph.core.agent import Text
from ralph.core.events import AgentSaid, Record, RunStarted
from ralph.recording.cast import as_cast
from ralph.recording.spans import Span, line_of, plain, wrapped
from ralph.recording.storyboard import Frame, Size, Storyboard, storyboard
from ralph.recording.svg import as_svg
from ralph.views.columns import cells
from support.interleaved import Lane, clashing, interleaved, lane_of
from support.recordings import CAUGHT, LIE, hostile_run, lying_run, played, seen_svg


def rows(frame: Frame) -> list[str]:
    return [plain(line) for line in frame.lines]


def fits(board: Storyboard) -> None:
    for frame in board.frames:
        assert len(frame.lines) <= board.size.rows
        assert all(cells(line) <= board.size.columns for line in rows(frame))
    assert board.seconds <= 20.001


def test_the_lie_is_on_the_screen_when_it_is_caught(tmp_path: Path) -> None:
    board = storyboard(lying_run(tmp_path), Size(), 20)
    frames = [(frame.seconds, "\n".join(rows(frame))) for frame in board.frames]
    before = next(text for _, text in frames if LIE in text)
    assert CAUGHT not in before
    seconds, caught = next((seconds, text) for seconds, text in frames if CAUGHT in text)
    assert f"✗ rejected US-001: {CAUGHT}" in caught
    assert LIE in caught
    assert seconds >= 1.2


def test_the_last_frame_shows_how_it_ended(tmp_path: Path) -> None:
    *_, last = storyboard(lying_run(tmp_path), Size(), 20).frames
    text = "\n".join(rows(last))
    assert "\nfinished\n" in text
    assert "3/3 stories" in text
    assert text.count("✓ US-00") == 3
    assert "left:" not in text
    assert "$1.00" in text


def test_a_run_without_an_end_says_so(tmp_path: Path) -> None:
    *_, last = storyboard(lying_run(tmp_path, is_over=False), Size(), 20).frames
    assert "no end is recorded: the run was killed, or it is still running" in rows(last)


def test_the_panel_is_always_of_the_same_height(tmp_path: Path) -> None:
    """Else the lines above it would move down again."""
    _, *frames, _ = storyboard(lying_run(tmp_path, iterations=9), Size(), 20).frames
    assert {len(frame.panel) for frame in frames} == {15}


@pytest.mark.parametrize(("columns", "lines"), [(40, 12), (80, 24), (100, 25), (240, 60)])
def test_nothing_that_an_agent_writes_leaves_the_window(tmp_path: Path, columns: int, lines: int) -> None:
    board = storyboard(hostile_run(tmp_path), Size(columns, lines), 20)
    fits(board)
    text = "".join(line for frame in board.frames for line in rows(frame))
    assert not [char for char in text if ord(char) < 32 or 0x7F <= ord(char) < 0xA0 or char in "\u202e\u2066\u2028"]


def test_ten_megabytes_of_terminal_codes_are_one_line(tmp_path: Path) -> None:
    [start, plan, decided, begun, agent, *_] = lying_run(tmp_path)
    flood = AgentSaid(1, Text("\x1b[31mflood\x1b[2J\x1b[1;1H" * 500_000))
    assert len(flood.event.text) > 9_000_000  # type: ignore[union-attr]
    board = storyboard([start, plan, decided, begun, agent, Record(6, agent.t + 1, flood)], Size(), 20)
    fits(board)
    assert len(as_svg(board)) < 20_000


def test_workers_are_shown_side_by_side(tmp_path: Path) -> None:
    records = clashing(6)
    board = storyboard(records, Size(), 20)
    fits(board)
    text = "\n".join(line for frame in board.frames for line in rows(frame))
    assert "queue  US-005 proving on worker 1" in text
    assert "[2 US-007] " in text


def test_a_frame_is_computed_only_from_the_journal(tmp_path: Path) -> None:
    """The same records give the same picture, anywhere and at any time."""
    records = lying_run(tmp_path)
    assert storyboard(records, Size(), 20) == storyboard(list(records), Size(), 20)


@pytest.fixture(scope="module")
def journals(tmp_path_factory: pytest.TempPathFactory) -> list[list[Record]]:
    folder = tmp_path_factory.mktemp("journals")
    serial = lying_run(folder / "serial", iterations=5)
    lanes: list[Lane] = [lane_of(lying_run(folder / letter, iterations=4), letter) for letter in "ab"]
    parallel = interleaved(lanes, random.Random(18))
    return [serial, parallel, clashing(5), hostile_run(folder / "hostile")]


@given(data=st.data())
def test_a_journal_that_ends_anywhere_makes_a_valid_picture(journals: list[list[Record]], data: st.DataObject) -> None:
    records = data.draw(st.sampled_from(journals))
    end = data.draw(st.integers(1, len(records)))
    board = storyboard(records[:end], Size(), 20)
    fits(board)
    shown = seen_svg(as_svg(board))
    assert len(shown.frames) == len(board.frames)
    assert played(as_cast(board)).seconds == pytest.approx(board.seconds, abs=0.01)


def test_a_journal_without_its_beginning_makes_a_picture_too(tmp_path: Path) -> None:
    records = [r for r in lying_run(tmp_path) if not isinstance(r.event, RunStarted)]
    board = storyboard(records, Size(), 20)
    assert board.title == "ralph run"
    assert any(CAUGHT in line for frame in board.frames for line in rows(frame))


# --- lines -----------------------------------------------------------------------------------------------------------


def test_a_long_line_is_broken_between_words_and_indented() -> None:
    lines = [plain(line) for line in wrapped("one two three four five six", 12)]
    assert lines == ["one two", "    three", "    four", "    five six"]


def test_a_word_that_is_too_long_is_broken() -> None:
    assert [plain(line) for line in wrapped("x" * 25, 12)] == ["x" * 12, "    " + "x" * 8, "    " + "x" * 5]


def test_a_style_ends_where_it_ended_before_the_break() -> None:
    [first, second] = wrapped("\x1b[31mred words\x1b[0m and more", 12)
    assert first == (Span("31", "red words"),)
    assert second == (Span("", "    and more"),)


@given(st.text(), st.integers(20, 60))
def test_nothing_but_text_is_left_of_a_line(text: str, columns: int) -> None:
    for line in (*wrapped(text, columns), line_of(text)):
        assert all(char >= " " for char in plain(line))
    assert all(cells(plain(line)) <= columns for line in wrapped(text, columns))
