"""`/metrics`, the dashboard that reads it and the page that lists it."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from ralph.core.verdict import Kind
from ralph.journal.workers import WorkerState
from ralph.web import metrics
from ralph.web.metrics import METRICS, TYPE, exposition
from ralph.workspace.runs import Standing
from support.hostile_runs import PLAN, tell
from support.web_server import served

ROOT = Path(__file__).resolve().parents[2]
_LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\[\\"n])*"'
_SAMPLE = re.compile(
    rf"([a-zA-Z_:][a-zA-Z0-9_:]*)\{{((?:{_LABEL}(?:,(?!\}}))?)*)\}} (-?(?:\d+(?:\.\d+)?(?:e[+-]\d+)?|inf)|nan)"
)


class Sample(NamedTuple):
    name: str
    labels: dict[str, str]
    value: float


def samples(text: str) -> list[Sample]:
    """As strict as the format: one HELP and one TYPE for each family, before its samples, which follow one another."""
    assert text.endswith("\n")
    found, families = [], []
    for line in text.removesuffix("\n").split("\n"):
        if line.startswith("# HELP "):
            families.append(line.split(" ")[2])
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert (name, kind) == (families[-1], METRICS[name][0])
        else:
            match = _SAMPLE.fullmatch(line)
            assert match, line
            assert match[1] == families[-1], "samples of a family are together"
            pairs = [pair.partition("=") for pair in re.findall(_LABEL, match[2])]
            labels = {
                name: re.sub(r"\\(.)", lambda c: {"n": "\n"}.get(c[1], c[1]), value[1:-1]) for name, _, value in pairs
            }
            assert tuple(labels) == METRICS[match[1]][1]
            found.append(Sample(match[1], labels, float(match[3])))
    assert families == list(METRICS)
    assert not [key for key, count in Counter((s.name, *s.labels.items()) for s in found).items() if count > 1]
    return found


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {"RALPH_STATE_HOME": str(tmp_path / "state")}


def of(found: list[Sample], name: str, **labels: str) -> list[float]:
    return [each.value for each in found if each.name == name and labels.items() <= each.labels.items()]


def test_a_run_is_told_in_the_format_of_prometheus(tmp_path: Path, env: dict[str, str]) -> None:
    run = tell(tmp_path / "state", is_alive=True)
    run.iterate(1)
    run.iterate(2, Kind.REJECTED)
    found = samples(exposition(env).decode())
    assert of(found, "ralph_runs", state="running") == [1]
    assert sum(of(found, "ralph_runs")) == 1
    assert {each.labels["state"] for each in found if each.name == "ralph_runs"} == set(Standing)
    [info] = [each for each in found if each.name == "ralph_run_info"]
    assert info.labels["plan"] == 'Shop "a\\b" new', f"{PLAN!r} on one line, quoted and read back"
    assert of(found, "ralph_iterations_total", verdict="accepted") == [1]
    assert of(found, "ralph_iterations_total", verdict="rejected") == [1]
    assert of(found, "ralph_tokens_total", kind="output") == [40]
    assert of(found, "ralph_tokens_total", kind="cache_write") == [8]
    assert of(found, "ralph_cost_usd_total") == [0.5]
    assert of(found, "ralph_agent_seconds_total") == [122]
    assert sum(of(found, "ralph_stories")) == 3


def test_counters_never_fall_while_a_run_goes_on(tmp_path: Path, env: dict[str, str]) -> None:
    run = tell(tmp_path / "state", is_alive=True)
    before: dict[Any, float] = {}
    for number in range(1, 4):
        run.iterate(number, Kind.ACCEPTED if number % 2 else Kind.LIMIT)
        now = samples(exposition(env).decode())
        counted = {(s.name, *s.labels.items()): s.value for s in now if METRICS[s.name][0] == "counter"}
        assert counted
        assert all(counted[key] >= value for key, value in before.items())
        before = counted


def test_there_are_only_so_many_series(tmp_path: Path, env: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Of runs that have ended, the newest; a run that is alive is there, however old."""
    monkeypatch.setattr(metrics, "_LAST", 2)
    old = tell(tmp_path / "state", "20230101-000000-aaaa", is_alive=True)
    old.begin()
    for day in range(1, 6):
        tell(tmp_path / "state", f"2023020{day}-000000-bbbb").stop()
    found = samples(exposition(env).decode())
    runs = [each.labels["run"] for each in found if each.name == "ralph_run_info"]
    assert runs == ["20230101-000000-aaaa", "20230205-000000-bbbb", "20230204-000000-bbbb"]
    assert of(found, "ralph_runs", state="ended") == [5]


def test_a_machine_without_runs_and_a_damaged_journal_are_no_errors(tmp_path: Path, env: dict[str, str]) -> None:
    assert sum(of(samples(exposition(env).decode()), "ralph_runs")) == 0
    run = tell(tmp_path / "state")
    run.journal.path.write_bytes(b"{damaged\n")
    found = samples(exposition(env).decode())
    assert of(found, "ralph_runs", state="unreadable") == [1]
    assert {each.name for each in found} == {"ralph_runs"}


def test_the_token_is_needed_and_the_type_is_right(tmp_path: Path) -> None:
    tell(tmp_path / "state")
    with served(tmp_path / "state", "--read-only") as server:
        assert server.ask("/metrics", token="").status == 401
        answer = server.ask("/metrics")
        assert (answer.status, answer.headers["content-type"]) == (200, TYPE)
        assert samples(answer.body.decode())


def test_the_page_lists_every_metric_with_its_type_labels_and_meaning() -> None:
    page = (ROOT / "docs/traces.md").read_text()
    rows = re.findall(r"^\| `(ralph_\w+)` \| (\w+) \| ([\w, ]+) \| (.+) \|$", page, re.MULTILINE)
    listed = {name: (kind, tuple(labels.split(", ")), meaning) for name, kind, labels, meaning in rows}
    assert listed == METRICS


def queries() -> Iterator[tuple[str, str]]:
    """Title of the panel or name of the variable, and its query."""
    dashboard = json.loads((ROOT / "examples/grafana/ralph.json").read_text())
    for panel in dashboard["panels"]:
        yield from ((panel["title"], target["expr"]) for target in panel["targets"])
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query":
            yield variable["name"], variable["query"]["query"]


def test_every_query_of_the_dashboard_uses_metrics_labels_and_values_that_exist() -> None:
    known: dict[str, set[str]] = {
        "ralph_runs": set(Standing),
        "ralph_workers": set(WorkerState),
        "ralph_iterations_total": set(Kind),
        "ralph_stories": {"todo", "in_progress", "done", "failed", "blocked"},
    }
    used = set()
    for title, query in queries():
        names = re.findall(r"\bralph_\w+", query)
        assert names, title
        for name, inside in re.findall(r"(ralph_\w+)(?:\{([^}]*)\})?", query):
            used.add(name)
            assert name in METRICS, (title, name)
            for label, values in re.findall(r'(\w+)=~?"([^"]*)"', inside or ""):
                assert label in METRICS[name][1], (title, name, label)
                assert values.startswith("$") or set(values.split("|")) <= known[name], (title, values)
        grouped = re.findall(r"\bby \((\w+)\)", query)
        assert all(label in METRICS[names[0]][1] for label in grouped), title
        assert query.count("(") == query.count(")")
    assert used == set(METRICS), "a metric that nobody looks at"


def test_panels_do_not_overlap() -> None:
    dashboard = json.loads((ROOT / "examples/grafana/ralph.json").read_text())
    cells: Counter[tuple[int, int]] = Counter()
    for panel in dashboard["panels"]:
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= 24
        cells.update((x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"]))
    assert set(cells.values()) == {1}
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])
