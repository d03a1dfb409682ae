"""How stories look: columns, cuts and marks."""

from __future__ import annotations

import io
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralph.cli.plain_signs import register
from ralph.cli.show import fit, id_width, pad, story_card, story_line, story_lines
from ralph.core.plan import Order, Plan, State, Story
from ralph.core.review import Review, ReviewStatus
from ralph.views.columns import cells, progress_bar

STORY = Story(id="US-001", title="Export as a file", depends_on=("US-000",), attempts=2, state=State.FAILED)


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("abc", 3),
        ("äöü", 3),
        ("日本", 4),
        ("e\u0301", 1),
        ("🚀", 2),
        ("ｆｕｌｌ", 8),
        ("\u200d", 0),
        ("", 0),
    ],
)
def test_columns_are_counted_as_a_terminal_does(text: str, columns: int) -> None:
    assert cells(text) == columns


@given(st.text(max_size=60), st.integers(0, 40))
def test_a_text_that_is_cut_fits(text: str, room: int) -> None:
    cut = fit(text, room)
    assert cells(cut) <= room
    assert "\n" not in cut
    assert cells(pad(text, room)) == room


@given(st.integers(0, 500), st.integers(1, 500))
def test_a_bar_is_full_only_when_all_is_done_and_empty_only_when_nothing_is(done: int, total: int) -> None:
    done = min(done, total)
    bar = progress_bar(done, total)
    assert bar.endswith(f" {done}/{total}")
    assert ("░" not in bar) == (done == total)
    assert ("█" not in bar) == (done == 0)
    assert cells(bar.partition(" ")[0]) == 22


def test_a_bar_of_nothing_is_empty() -> None:
    assert progress_bar(0, 0).startswith("[░")


@given(
    st.builds(
        Story,
        id=st.text(min_size=1, max_size=30),
        title=st.text(max_size=80),
        state=st.sampled_from(State),
        attempts=st.integers(0, 3),
        depends_on=st.lists(st.text(max_size=30), max_size=5).map(tuple),
        review=st.builds(Review, st.sampled_from([None, *ReviewStatus]), st.integers(0, 3)),
    ),
    st.integers(20, 200),
)
def test_a_story_takes_one_line_of_a_terminal(story: Story, width: int) -> None:
    plan = Plan(name="p", stories=(story,))
    for line in story_lines(story, width, min(id_width(plan), 8), why=story.title):
        assert cells(line) <= width
        assert "\n" not in line


def test_what_holds_a_story_up_stands_behind_it() -> None:
    assert story_line(STORY, None, 6) == "✗ US-001 Export as a file  failed, 2 attempts, after US-000"
    assert story_line(STORY, 40, 6) == "✗ US-001 Export as a f…  failed, 2 atte…"


def test_nothing_is_cut_for_a_reader_that_is_no_terminal() -> None:
    title = "very long " * 50
    assert title.strip() in story_line(Story(id="A", title=title), None, 4)


def test_a_reason_stands_below_a_stuck_story_only() -> None:
    assert list(story_lines(STORY, None, 6, "no disk"))[1] == "         no disk"
    assert len(list(story_lines(Story(id="A", title="a"), None, 6, "old news"))) == 1


def test_a_card_has_what_there_is_to_know_and_no_more() -> None:
    plan = Plan(name="p", stories=(STORY,), order=Order.FILE)
    assert list(story_card(STORY, plan, "no disk")) == [
        "US-001  Export as a file",
        "state      failed: no disk",
        "after      US-000",
        "attempts   2",
    ]


def test_a_terminal_without_these_characters_gets_plain_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.BytesIO()
    stream = io.TextIOWrapper(written, encoding="ascii", errors=register())
    monkeypatch.setattr(sys, "stdout", stream)
    for line in (progress_bar(1, 2), story_line(STORY, None, 6), fit("abcdefgh", 6), "日 ✓"):
        stream.write(f"{line}\n")
    stream.flush()
    bar, story, cut, other = written.getvalue().decode().splitlines()
    assert bar == "[##########----------] 1/2"
    assert story.startswith("! US-001 ")
    assert (cut, other) == ("abc...", "\\u65e5 +")
