"""The charts and the timeline: valid and harmless SVG of any run, with the figures in words."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from ralph.views.attempts import Span, SpanKind
from ralph.views.axes import MOST_POINTS, elapsed, figure_step, thinned, time_step
from ralph.views.chart_tables import table_of
from ralph.views.charts import CHARTS, COMPARED, TITLES, compare
from ralph.views.gantt import MOST_BARS, gantt
from ralph.views.run_view import Point, RunView
from ralph.views.svg import COLOURS, Theme

TAGS = {"svg", "title", "desc", "style", "defs", "pattern", "rect", "path", "text"}
NUMBER = re.compile(r"-?\d+(\.\d+)?")


def parsed(svg: str) -> ElementTree.Element:
    """Well-formed; nothing in it runs, loads or links; every number is one."""
    root = ElementTree.fromstring(svg)
    for each in root.iter():
        assert each.tag.removeprefix("{http://www.w3.org/2000/svg}") in TAGS
        for name, value in each.attrib.items():
            assert not name.startswith("on"), name
            assert "href" not in name
            assert name != "style"
            assert "url(" not in value or re.fullmatch(r"url\(#[a-z0-9-]+\)", value)
            if name in ("x", "y", "width", "height", "r"):
                assert NUMBER.fullmatch(value), (name, value)
            if name == "d":
                assert "nan" not in value
                assert "inf" not in value
            if name == "class" and value != "c-bar":
                assert value in COLOURS
        if each.tag.endswith("style"):
            assert not re.search(r"@import|url\(|expression", each.text or "")
    return root


def said(root: ElementTree.Element) -> str:
    return root.findtext("{http://www.w3.org/2000/svg}desc") or ""


def words(root: ElementTree.Element) -> list[str]:
    return [each.text or "" for each in root.iter("{http://www.w3.org/2000/svg}text")]


@pytest.mark.parametrize("which", ["lines", "many_lines"])
def test_every_chart_of_a_run_that_stopped_anywhere_can_be_drawn(
    which: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    lines: list[bytes] = request.getfixturevalue(which)
    path = tmp_path / "events.jsonl"
    for count in (0, 1, 2, *range(3, len(lines), 12), len(lines)):
        path.write_bytes(b"".join(lines[:count]))
        view = RunView(path).catch_up()
        for name, draw in CHARTS.items():
            for width, theme in ((200, Theme.PAGE), (720, Theme.AUTO), (4000, Theme.DARK)):
                assert said(parsed(draw(view, width, theme)))
            table = table_of(view, name)
            assert all(len(row) == len(table.head) for row in table.rows)
    assert set(TITLES) == set(CHARTS)


def test_charts_say_their_figures_in_words(view: RunView) -> None:
    told = {name: said(parsed(draw(view, 720, Theme.AUTO))) for name, draw in CHARTS.items()}
    assert told["stories"].startswith("2 of 3 stories done after ")
    assert "$0.75" in told["cost"]
    assert "1,200 tokens" in told["tokens"]
    assert "6 of 8 iterations accepted, 75%" in told["acceptance"]
    assert told["gantt"].startswith("8 iterations in ")


def test_a_hostile_title_stays_a_title(lines: list[bytes], tmp_path: Path) -> None:
    evil = b'"\\u0000</text><script>alert(1)</script>&\\ud800]]>'
    path = tmp_path / "events.jsonl"
    path.write_bytes(b"".join(line.replace(b'"US-002', evil + b"US-002") for line in lines))
    view = RunView(path).catch_up()
    for draw in CHARTS.values():
        assert "<script" not in draw(view, 720, Theme.AUTO)
        parsed(draw(view, 720, Theme.AUTO))


def test_the_timeline_has_a_lane_for_each_worker_and_a_sign_for_each_end(view: RunView, many_view: RunView) -> None:
    lanes = words(parsed(gantt(many_view, 1200)))
    assert {"worker 1", "worker 2"} <= set(lanes)
    assert any("↩" in each for each in lanes)
    alone = words(parsed(gantt(view, 1200)))
    assert {"stories", "work", "review", "fix"} <= set(alone)
    assert any(each.startswith("✗") for each in alone), "signs, not only colours"


def test_a_long_run_has_a_timeline_of_a_bounded_size(view: RunView) -> None:
    long = RunView(view.journal)
    long.attempts.spans = [
        Span(list(SpanKind)[at % 4], 10.0 * at, 10.0 * at + 4, at, story=f"US-{at}") for at in range(15_000)
    ]
    long.state.now = 150_000.0
    svg = gantt(long, 720)
    assert len(parsed(svg).findall("{http://www.w3.org/2000/svg}rect")) <= MOST_BARS + 50
    assert len(svg) < 500_000


@pytest.mark.parametrize("name", COMPARED)
def test_two_runs_are_compared_from_their_own_starts(
    name: str, view: RunView, many_view: RunView, tmp_path: Path
) -> None:
    assert view.first is not None
    assert many_view.first is not None
    told = said(parsed(compare(view, many_view, name)))
    assert view.first.run in told
    assert many_view.first.run in told
    (tmp_path / "events.jsonl").touch()
    empty = RunView(tmp_path / "events.jsonl").catch_up()
    assert "no figures" in said(parsed(compare(view, empty, name)))
    parsed(compare(empty, empty, name))


def test_an_unknown_cost_is_not_drawn_as_nothing(view: RunView, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "$0.75" in said(parsed(compare(view, view, "cost")))
    monkeypatch.setattr(view.state, "cost_usd", None)
    assert "$" not in said(parsed(compare(view, view, "cost")))


def test_a_thinned_curve_keeps_its_ends_and_its_extremes() -> None:
    curve = [(float(at), float((at * 7919) % 1000)) for at in range(50_000)]
    curve[31_007] = (31_007.0, 5000.0)
    found = thinned(curve)
    assert len(found) <= MOST_POINTS
    assert (found[0], found[-1]) == (curve[0], curve[-1])
    assert curve[31_007] in found
    assert list(found) == sorted(found)


@pytest.mark.parametrize("seconds", [0.5, 1, 59, 3600, 86_400, 40 * 86_400])
def test_labels_of_time_have_room(seconds: float) -> None:
    for pixels in (150, 700, 4000):
        assert pixels * time_step(seconds, pixels) / seconds >= 60
    assert elapsed(0) == "0"
    assert elapsed(5400) == "1 h 30 m"


@pytest.mark.parametrize("most", [1e-6, 0.01, 0.75, 1, 3, 999, 123_456_789])
def test_ticks_of_figures_are_round_and_few(most: float) -> None:
    step = figure_step(most, 5)
    assert most / step <= 5.00001
    assert f"{step:e}"[0] in "125"


def test_points_are_drawn_whatever_their_times(view: RunView) -> None:
    odd = RunView(view.journal)
    odd.points = [Point(t, 1, 2, 0.5, 10, 1, 1) for t in (0.0, -5.0, 1e12)]
    for draw in CHARTS.values():
        parsed(draw(odd, 300, Theme.LIGHT))
