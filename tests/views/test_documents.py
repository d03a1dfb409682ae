"""The documents of runs, stories and attempts: what the page, the terminal and scripts are given."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ralph.views.attempts import Span, SpanKind
from ralph.views.catalog import RunCard
from ralph.views.documents import (
    attempt_document,
    compare_document,
    home_document,
    plain,
    run_document,
    story_document,
    timeline_document,
    waiting_for_user,
)
from ralph.views.run_view import RunView
from ralph.workspace.runs import Standing

NOW = 2e9
INVISIBLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2066-\u2069]")


def texts(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for pair in value.items() for each in pair for text in texts(each)]
    return [text for each in value for text in texts(each)] if isinstance(value, list) else []


def test_a_run_document_says_what_the_run_came_to(view: RunView) -> None:
    found = run_document(view, NOW)
    assert (found["standing"], found["done"], found["total"], found["iterations"]) == (Standing.ENDED, 2, 3, 8)
    assert found["verdicts"] == {"accepted": 6, "rejected": 1, "blocked": 1}
    assert found["acceptance_rate"] == 6 / 8
    assert (found["cost_usd"], found["tokens_total"]) == (0.75, 1200)
    assert [line.id for line in found["stories"]] == ["US-001", "US-002", "US-003"]
    assert [line.verdict for line in found["attempts"]].count("rejected") == 1
    assert found["current"] == []
    assert found["questions"] == {"US-003": "Which <colour>?"}


def test_no_text_of_a_document_can_act(view: RunView) -> None:
    """Control characters are shown as text, whoever wrote them. `<b>` stays what it is: a page never reads HTML."""
    documents = [run_document(view, NOW), timeline_document(view, NOW)]
    documents += [story_document(view, line, NOW) for line in view.stories()]
    found = [text for document in documents for text in texts(plain(document))]
    assert [text for text in found if INVISIBLE.search(text)] == []
    assert any("<U+202E>evil" in text for text in found)
    json.dumps(plain(documents[0]), allow_nan=False)


def test_an_attempt_lists_its_failing_checks_first_with_their_place(view: RunView) -> None:
    attempt = view.attempts.by_iteration[5]
    passing = msgspec.structs.replace(attempt.checks[0].result, name="first", passed=True)
    attempt = msgspec.structs.replace(
        attempt, checks=[msgspec.structs.replace(attempt.checks[0], result=passing), *attempt.checks]
    )
    lines = attempt_document(attempt, NOW)["checks"]
    assert [(line.index, line.result.passed) for line in lines] == [(1, False), (0, True)]


@pytest.mark.parametrize("which", ["lines", "many_lines"])
def test_a_run_that_was_killed_anywhere_has_documents(
    which: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """The journal ends after each of its records, and its process is gone."""
    lines: list[bytes] = request.getfixturevalue(which)
    path, stream = tmp_path / "events.jsonl", bytearray()
    for count, line in enumerate(lines):
        stream += line
        path.write_bytes(stream)
        if count % 5 and count < len(lines) - 5:
            continue
        view = RunView(path).catch_up()
        found = plain(run_document(view, NOW))
        assert found["standing"] in ("unfinished", "ended")
        assert found["now"] >= found["seen"] >= found["started"] > 0
        assert all(each["seconds"] >= 0 for each in found["stories"])
        spans = plain(timeline_document(view, NOW))["spans"]
        assert all(span["since"] <= (span["until"] or view.state.now) for span in spans)
        for story in view.stories():
            assert plain(story_document(view, story, NOW))["story"]["id"]


def test_a_run_without_a_beginning_has_a_document(tmp_path: Path) -> None:
    for data in (b"", b"{torn", b'{"seq":1,"t":1,"event":{"type":"Noted","text":"x"}}\n', b"{damaged}\n"):
        path = tmp_path / "events.jsonl"
        path.write_bytes(data)
        found = plain(run_document(RunView(path).catch_up(), NOW))
        assert (found["standing"], found["stories"], found["run"]) == ("unreadable", [], tmp_path.name)
    assert "line 1" in found["damage"] or ":1" in found["damage"]


def test_a_clock_that_is_set_back_makes_no_negative_time(lines: list[bytes], tmp_path: Path) -> None:
    """An hour, in the middle of the run."""
    records = [json.loads(line) for line in lines]
    for record in records[len(records) // 2 :]:
        record["t"] -= 3600
        record.pop("prev", None)
    path = tmp_path / "events.jsonl"
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    view = RunView(path).catch_up()
    assert not view.damage
    found = plain(run_document(view, NOW))
    assert all(story["seconds"] >= 0 for story in found["stories"])
    timeline = plain(timeline_document(view, NOW))
    assert timeline["from"] <= timeline["to"]
    assert all(span["since"] <= span["until"] for span in timeline["spans"])


def test_a_copied_run_without_its_state_is_the_same(view: RunView, journal: Path, tmp_path: Path) -> None:
    copied = tmp_path / view.journal.parent.name / "events.jsonl"
    copied.parent.mkdir()
    copied.write_bytes(journal.read_bytes())
    assert run_document(RunView(copied).catch_up(), NOW) == run_document(view, NOW)


def test_a_long_timeline_keeps_its_extent(view: RunView) -> None:
    spans = [Span(SpanKind.CHECKS, 1000.0 + at, 1000.5 + at, at) for at in range(19_000)]
    spans.append(Span(SpanKind.AGENT, 0.0, 20_000.0, 1))
    shown = RunView(view.journal)
    shown.attempts.spans, shown.state.now = spans, 20_000.0
    found = timeline_document(shown, NOW)["spans"]
    assert len(found) <= 5000
    assert max(span.until for span in found if span.kind is SpanKind.CHECKS) == 19_999.5
    assert [span.kind for span in found].count(SpanKind.AGENT) == 1


def test_workers_are_told_with_the_lane_of_every_span(many_view: RunView) -> None:
    found = plain(timeline_document(many_view, NOW))
    assert set(found["workers"]) >= {1, 2}
    assert {span["worker"] for span in found["spans"] if span["kind"] == "agent"} == {1, 2}
    assert plain(run_document(many_view, NOW))["verdicts"]["returned"] == 1


def test_a_comparison_says_which_is_better(view: RunView, many_view: RunView) -> None:
    found = compare_document(run_document(view, NOW), run_document(many_view, NOW))
    rows = {row.what: row for row in found["rows"]}
    assert (rows["stories done"].a, rows["stories done"].b, rows["stories done"].better) == ("2/3", "3/3", "b")
    assert rows["agent"].better == ""
    assert {story["id"] for story in found["stories"]} == {"US-001", "US-002", "US-003"}
    same = compare_document(run_document(view, NOW), run_document(view, NOW))
    assert not [row for row in same["rows"] if row.better or row.a != row.b]


def test_a_comparison_marks_neither_an_unknown_cost_nor_a_run_without_a_finished_story(
    view: RunView, many_view: RunView
) -> None:
    a, b = run_document(view, NOW), run_document(many_view, NOW) | {"cost_usd": 0.5, "unknown_costs": 0}
    assert "cost" in marked(a, b)
    unknown = marked(a, b | {"cost_usd": None, "unknown_costs": 3})
    assert {"cost", "cost per story"}.isdisjoint(unknown)
    assert "tokens" in unknown
    idle = marked(a, b | {"done": 0, "iterations": 1, "agent_seconds": 0.0, "tokens_total": 0})
    assert idle["stories done"] == "a"
    assert {"iterations", "time", "time of the agents", "tokens", "cost", "cost per story"}.isdisjoint(idle)
    rows = {row.what: row.b for row in compare_document(a, b | {"cost_usd": None, "unknown_costs": 3})["rows"]}
    assert (rows["cost"], rows["cost per story"]) == ("unknown", "unknown")


def marked(a: dict[str, Any], b: dict[str, Any]) -> dict[str, str]:
    return {row.what: row.better for row in compare_document(a, b)["rows"] if row.better}


def test_a_running_session_counts_as_time_of_its_agent(
    lines: list[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "events.jsonl"
    first = next(at for at, line in enumerate(lines) if b'"AgentStarted"' in line)
    path.write_bytes(b"".join(lines[: first + 1]))
    view = RunView(path).catch_up()
    assert run_document(view, view.state.now + 22)["agent_seconds"] == 0, "its process is gone"
    monkeypatch.setattr(RunView, "standing", lambda _: Standing.RUNNING)
    found = run_document(view, view.state.now + 22)
    assert (round(found["agent_seconds"]), found["agents_running"]) == (22, 1)


def card(run: str, **fields: Any) -> RunCard:
    return RunCard(**{"run": run, "workspace": "/w", "plan": "p", "standing": Standing.ENDED} | fields)


def test_only_the_latest_run_of_a_plan_waits_for_the_user() -> None:
    cards = [
        card("3", standing=Standing.PAUSED),
        card("2", questions={"A": "old?"}),
        card("1", plan="other", questions={"A": "which?"}, failures={"B": "why"}, unproven={"C": "title"}),
    ]
    found = [(line.run, line.story, line.kind) for line in waiting_for_user(cards)]
    assert found == [("3", "", "paused"), ("1", "A", "question"), ("1", "B", "failed"), ("1", "C", "unproven")]
    home = plain(home_document(cards, list(waiting_for_user(cards)), NOW, version="1", host="h", read_only=True))
    assert [each["is_live"] for each in home["runs"]] == [True, False, False]
