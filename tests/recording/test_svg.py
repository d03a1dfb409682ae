"""An animated SVG: valid, harmless, small, and it shows what the frames say."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralph.recording.spans import Span, plain
from ralph.recording.storyboard import Frame, Size, Storyboard, storyboard
from ralph.recording.svg import as_still, as_svg
from ralph.recording.theme import Theme
from support.interleaved import clashing
from support.recordings import hostile_run, lying_run, seen_svg

HARMLESS = {"svg", "title", "style", "rect", "circle", "text", "g", "use", "defs"}


def words(lines: list[str]) -> list[list[str]]:
    return [line.split() for line in lines if line.split()]


@pytest.mark.parametrize("is_parallel", [False, True])
def test_every_frame_has_its_text_and_its_time(tmp_path: Path, is_parallel: bool) -> None:
    board = storyboard(clashing(6) if is_parallel else lying_run(tmp_path, iterations=12), Size(), 20)
    shown = seen_svg(as_svg(board))
    assert [words(frame) for frame in shown.frames] == [words([plain(x) for x in f.lines]) for f in board.frames]
    assert shown.seconds == pytest.approx(board.seconds)
    begins = [sum(frame.seconds for frame in board.frames[:n]) / board.seconds for n in range(len(board.frames))]
    assert shown.starts == pytest.approx(begins, abs=1e-5)


def test_where_nothing_moves_the_last_frame_is_seen(tmp_path: Path) -> None:
    text = as_svg(storyboard(lying_run(tmp_path), Size(), 20))
    shown = seen_svg(text)
    assert shown.at_rest == len(shown.frames) - 1
    assert "@media (prefers-reduced-motion:reduce){#strip{animation:none}}" in text


def test_hostile_text_stays_text(tmp_path: Path) -> None:
    text = as_svg(storyboard(hostile_run(tmp_path), Size(), 20))
    root = ElementTree.fromstring(text)
    names = {element.tag.partition("}")[2] for element in root.iter()}
    assert names <= HARMLESS
    attributes = {name for element in root.iter() for name in element.attrib}
    assert not [name for name in attributes if name.startswith("on") or ("}" in name and "space" not in name)]
    assert all(value.startswith("#") for e in root.iter() for name, value in e.attrib.items() if name == "href")
    [style] = [element.text or "" for element in root.iter() if element.tag.endswith("style")]
    assert not re.search(r"url\(|@import|@font-face|expression", style)
    shown = " ".join(line for frame in seen_svg(text).frames for line in frame)
    assert "<img src=x onerror=alert(1)>" in shown
    assert "<script>alert(2)</script>" in shown


@given(st.text(alphabet=st.characters(), min_size=1))
def test_any_text_is_valid_xml(text: str) -> None:
    line = (Span("31", text),)
    board = Storyboard(Size(), text, 0, (Frame(1, (line,), (line,)), Frame(1, (), (line,))))
    ElementTree.fromstring(as_svg(board).encode())
    ElementTree.fromstring(as_still(board, board.frames[0], Theme.DARK).encode())


def test_a_lone_surrogate_is_replaced() -> None:
    line = (Span("", "a\ud800b"),)
    board = Storyboard(Size(), "\udfff", 0, (Frame(1, (line,), ()),))
    assert seen_svg(as_svg(board)).frames == [["a\ufffdb"]]


def test_columns_stay_columns_with_any_font() -> None:
    """Each span has its place and its width, wide characters included."""
    line = (Span("1", "  漢字 "), Span("", "x y"))
    text = as_still(Storyboard(Size(), "", 0, ()), Frame(1, (line,), ()), Theme.LIGHT)
    assert '<text class="b" x="16.8" textLength="33.6">漢字</text>' in text
    assert '<text x="58.8" textLength="25.2">x y</text>' in text


def test_it_follows_the_viewers_theme_or_has_one_of_its_own(tmp_path: Path) -> None:
    board = storyboard(lying_run(tmp_path), Size(), 20)
    auto, light, dark = (as_svg(board, theme) for theme in Theme)
    assert "@media (prefers-color-scheme:dark)" in auto
    assert "prefers-color-scheme" not in light + dark
    assert ("#0d1117" in light, "#0d1117" in dark, "#ffffff" in dark) == (False, True, False)


def test_a_long_run_makes_no_larger_picture_than_a_short_one(tmp_path: Path) -> None:
    sizes = [len(as_svg(storyboard(lying_run(tmp_path / str(n), iterations=n), Size(), 20))) for n in (15, 300)]
    assert max(sizes) < 150_000
    assert sizes[1] < 2 * sizes[0]
