"""The model of a run: the same whether the journal is read at once or while it grows."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from ralph.core.events import AgentSaid
from ralph.core.history import History, fold
from ralph.journal.records import read
from ralph.views.documents import run_document
from ralph.views.run_view import RunView
from ralph.workspace.runs import Standing
from support.loops import LoopProject

FEW = settings(max_examples=20)


def everything(view: RunView) -> Any:
    """All a view can show of a run."""
    history = msgspec.structs.replace(view.history, seen=0)
    attempts = view.attempts
    return msgspec.to_builtins(
        {
            "document": run_document(view, 2e9),
            "attempts": attempts.by_iteration,
            "spans": attempts.spans,
            "ledgers": attempts.ledgers,
            "of_run": attempts.of_run,
            "points": view.points,
            "events": view.events(0, view.count),
            "history": repr(history),
        },
        enc_hook=str,
        str_keys=True,
    )


def cuts(lines: list[bytes], data: st.DataObject) -> list[int]:
    size = sum(map(len, lines))
    return sorted({*data.draw(st.lists(st.integers(0, size), max_size=8)), size})


@FEW
@given(data=st.data())
def test_reading_while_it_grows_gives_the_same(
    lines: list[bytes], many_lines: list[bytes], data: st.DataObject
) -> None:
    """Cut anywhere, also in the middle of a line."""
    for each in (lines, many_lines):
        whole = b"".join(each)
        with TemporaryDirectory() as folder:
            path = Path(folder) / "events.jsonl"
            path.touch()
            view, before = RunView(path), 0
            for at in cuts(each, data):
                with path.open("ab") as stream:
                    stream.write(whole[before:at])
                view.poll()
                before = at
            assert everything(view) == everything(RunView(path).catch_up())
            assert view.count == len(each)


@FEW
@given(data=st.data())
def test_every_prefix_can_be_shown(lines: list[bytes], many_lines: list[bytes], data: st.DataObject) -> None:
    """What a view sees of a run under way, or of one that was killed."""
    for each in (lines, many_lines):
        count = data.draw(st.integers(0, len(each)))
        with TemporaryDirectory() as folder:
            path = Path(folder) / "events.jsonl"
            path.write_bytes(b"".join(each[:count]))
            view = RunView(path).catch_up()
            assert view.count == count
            if count:
                shown = everything(view)
                assert len(shown["events"]) == count
            assert view.standing() in (Standing.UNREADABLE, Standing.UNFINISHED, Standing.ENDED)


def test_the_history_is_that_of_the_loop(journal: Path, many: LoopProject) -> None:
    """The view passes over events that change nothing in it."""
    for path in (journal, many.journals()[-1]):
        history = History()
        for record in read(path):
            history = fold(history, record.event, record.t)
        seen = RunView(path).catch_up().history
        assert msgspec.structs.replace(seen, seen=history.seen) == history


def test_the_history_follows_a_clock_that_was_set_back(journal: Path, tmp_path: Path) -> None:
    records = list(read(journal))
    half = len(records) // 2
    view, history = RunView(journal), History()
    for number, record in enumerate(records):
        late = msgspec.structs.replace(record, t=record.t - 3600 * (number >= half))
        view.add(late, 0)
        history = fold(history, late.event, late.t)
    assert msgspec.structs.replace(view.history, seen=history.seen) == history


def test_stories_are_in_the_order_of_the_plan_with_all_a_list_shows(view: RunView) -> None:
    first, second, third = view.stories()
    assert (first.id, first.state, first.grade, first.attempts, first.cost_usd) == (
        "US-001", "done", "reviewed", 4, 0.25,
    )  # fmt: skip
    assert (second.state, second.attempts, second.cost_usd) == ("done", 3, 0.5)
    assert (third.state, third.why, third.is_asking) == ("blocked", "Which <colour>?", True)
    assert view.story("US-002") == second
    assert view.story("nobody") is None


def test_points_only_rise_but_for_the_rate(view: RunView, many_view: RunView) -> None:
    for each in (view, many_view):
        assert each.points
        for before, after in zip(each.points, each.points[1:], strict=False):
            assert before != after
            assert (before.t, before.usd, before.tokens, before.iterations, before.accepted) <= (
                after.t, after.usd, after.tokens, after.iterations, after.accepted,
            )  # fmt: skip
    assert (view.points[-1].done, view.points[-1].usd) == (2, 0.75)


def test_a_page_of_events_is_read_from_the_journal(view: RunView) -> None:
    events = view.events(0, view.count)
    assert [event.seq for event in events] == list(range(1, view.count + 1))
    assert view.events(10, 5) == events[10:15]
    assert view.events(view.count - 1, 50) == events[-1:]
    assert view.events(-5, 2) == events[:2]
    assert view.events(10**9, 5) == view.events(0, 0) == []
    said = [event.text for event in events if event.kind == AgentSaid.__name__]
    assert any("the <b>words</b> first" in text for text in said)
    assert not any("\x1b" in event.text or "\u202e" in event.text for event in events)


def test_what_stands_before_damage_is_shown_and_the_damage_is_said(lines: list[bytes], tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(b"".join([*lines[:30], b"{damaged\n", *lines[30:]]))
    view = RunView(path).catch_up()
    assert view.count == 30
    assert "line 31" in view.damage or ":31" in view.damage
    assert not view.poll()
