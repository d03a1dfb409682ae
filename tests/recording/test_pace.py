"""How long each moment of a run is shown."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralph.core.events import AgentSaid, IterationEnded, Record
from ralph.core.verdict import Kind
from ralph.recording.pace import Moment, paced
from support.recordings import lying_run


def shown(moments: list[Moment], records: list[Record]) -> list[tuple[Record, float]]:
    """What is new in each moment, without those that only show that time goes by."""
    return [(records[m.after - 1], m.seconds) for m in moments if m.now == records[m.after - 1].t]


@pytest.mark.parametrize("iterations", [2, 5, 30, 150])
@pytest.mark.parametrize("limit", [5, 20, 60])
def test_a_run_of_any_length_takes_at_most_its_seconds(tmp_path: Path, iterations: int, limit: int) -> None:
    records = lying_run(tmp_path, iterations=iterations)
    moments = paced(records, limit)
    assert sum(moment.seconds for moment in moments) <= limit
    assert all(moment.seconds >= 0.1 for moment in moments), "what is shown can be seen"
    assert [(m.after, m.now) for m in moments] == sorted((m.after, m.now) for m in moments)


@pytest.mark.parametrize("iterations", [3, 30, 150])
def test_a_lie_and_its_discovery_keep_their_time_in_a_long_run(tmp_path: Path, iterations: int) -> None:
    records = lying_run(tmp_path, iterations=iterations)
    seconds = {id(record): time for record, time in shown(paced(records, 20), records)}
    [caught] = [r for r in records if isinstance(r.event, IterationEnded) and r.event.kind is Kind.REJECTED]
    [lie, *_] = [r for r in records if isinstance(r.event, AgentSaid)]
    assert seconds[id(caught)] >= 1.2
    assert seconds[id(lie)] >= 0.8


def test_the_end_stays_long_enough_to_be_read(tmp_path: Path) -> None:
    for over in (True, False):
        moments = paced(lying_run(tmp_path / str(over), iterations=100, is_over=over), 20)
        assert moments[-1].seconds >= 2


def test_an_hour_of_silence_takes_no_longer_than_a_minute(tmp_path: Path) -> None:
    records = lying_run(tmp_path)
    quick = [Record(r.seq, records[0].t + n * 60, r.event) for n, r in enumerate(records)]
    slow = [Record(r.seq, records[0].t + n * 3600, r.event) for n, r in enumerate(records)]
    assert [m.seconds for m in paced(quick, 20)] == [m.seconds for m in paced(slow, 20)]


def test_during_a_silence_the_clock_is_seen_to_run(tmp_path: Path) -> None:
    records = lying_run(tmp_path, iterations=2)
    moments = paced(records, 20)
    ticks = [m.now for m in moments if m.now != records[m.after - 1].t]
    assert len(ticks) == 3
    assert [round(b - a) for a, b in pairwise(ticks)] == [900, 900]


def test_a_run_that_was_only_rejected_still_fits(tmp_path: Path) -> None:
    records = lying_run(tmp_path, iterations=2)
    end = next(r for r in records if isinstance(r.event, IterationEnded))
    many = [Record(n, float(n), end.event) for n in range(1, 500)]
    moments = paced(many, 20)
    assert sum(moment.seconds for moment in moments) <= 20
    places = [moment.after for moment in moments]
    assert places[-1] == len(many)
    assert max(b - a for a, b in pairwise(places)) < 120, "some of them, evenly spread"


@given(st.data())
def test_any_part_of_a_run_fits(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    records = lying_run(tmp_path_factory.mktemp("run"), iterations=6)
    start = data.draw(st.integers(0, len(records) - 1))
    end = data.draw(st.integers(start + 1, len(records)))
    limit = data.draw(st.integers(5, 120))
    moments = paced(records[start:end], limit)
    assert sum(moment.seconds for moment in moments) <= limit
    assert moments[-1].after == end - start
