"""`ralph runs trace`: the trace of a recorded run, sent afterwards or printed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.loops import LoopProject, run_driven, run_ralph, short
from support.receivers import Receiver, drawn, misnested, receiver


@pytest.fixture
def collector() -> Iterator[Receiver]:
    with receiver() as known:
        yield known


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> LoopProject:
    """A project with one run that sent no trace."""
    project = LoopProject.make(tmp_path_factory.mktemp("recorded") / "loop", short("tasks.json"))
    run_ralph(project)
    return project


def test_a_recorded_run_is_sent_and_sent_again_under_the_same_ids(recorded: LoopProject, collector: Receiver) -> None:
    done = run_ralph(recorded, "runs", "trace", "--endpoint", collector.url)
    run = recorded.journals()[0].parent.name
    assert done.code == 0, done.err
    spans = list(collector.spans)
    assert misnested(spans) == [], drawn(spans)
    assert done.out.startswith(f"sent {len(spans)} spans of run {run} to {collector.url}, trace {collector.traces[0]}")
    run_ralph(recorded, "runs", "trace", run, **collector.env)
    assert collector.spans == spans * 2
    assert set(collector.paths) == {"/v1/traces"}


def test_spans_are_printed_as_json_without_a_receiver(recorded: LoopProject) -> None:
    done = run_ralph(recorded, "runs", "trace", "--json")
    assert done.code == 0, done.err
    spans = json.loads(done.out)
    (root,) = [span for span in spans if not span["parent"]]
    assert root["name"] == "ralph run"
    assert root["attributes"]["ralph.iterations"] == 2
    assert {span["trace"] for span in spans} == {root["trace"]}
    assert all(span["start"] <= span["end"] for span in spans)


def test_a_killed_run_is_sent_as_killed(tmp_path: Path, collector: Receiver) -> None:
    project = LoopProject.make(tmp_path / "loop", short("tasks.json"))
    run_driven(project, "kill", 150, tmp_path / "points")
    done = run_ralph(project, "runs", "trace", "--endpoint", collector.url)
    assert done.code == 0, done.err
    assert misnested(collector.spans) == [], drawn(collector.spans)
    (root,) = collector.named("ralph run")
    assert root.status.message == "killed: the process of the run is gone"


def test_without_a_receiver_it_says_how_to_name_one(recorded: LoopProject) -> None:
    done = run_ralph(recorded, "runs", "trace")
    assert done.code != 0
    assert "no receiver is named" in done.err
    assert "--endpoint URL, or set OTEL_EXPORTER_OTLP_ENDPOINT" in done.err


@pytest.mark.parametrize(
    ("code", "url", "why"),
    [
        (401, "", "HTTP 401 Unauthorized"),
        (503, "", "Service Unavailable"),
        (200, "http://127.0.0.1:9", "connection refused"),
        (200, "localhost:4318", "not a URL"),
    ],
)
def test_a_receiver_that_does_not_take_it_is_an_error_with_the_reason(
    recorded: LoopProject, collector: Receiver, code: int, url: str, why: str
) -> None:
    collector.code = code
    env = {"OTEL_EXPORTER_OTLP_TIMEOUT": "4", "OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer sesame"}
    done = run_ralph(recorded, "runs", "trace", "--endpoint", url or collector.url, **env)
    assert done.code != 0
    assert why in done.err
    assert "Traceback" not in done.err
    assert "sesame" not in done.err + done.out


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "OTEL_EXPORTER_OTLP_PROTOCOL is grpc, and Ralph sends http/protobuf"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "localhost:4318", "OTEL_EXPORTER_OTLP_ENDPOINT is not a URL"),
    ],
)
def test_a_setting_that_cannot_be_used_is_an_error(
    recorded: LoopProject, collector: Receiver, name: str, value: str, words: str
) -> None:
    done = run_ralph(recorded, "runs", "trace", **collector.env | {name: value})
    assert done.code != 0
    assert words in " ".join(done.err.split())
    assert "Traceback" not in done.err
    assert collector.requests == 0


def test_secrets_of_this_machine_are_not_sent(recorded: LoopProject, collector: Receiver) -> None:
    """The journal may be of a machine on which it was none."""
    done = run_ralph(recorded, "runs", "trace", "--json", SHOP_API_TOKEN="Say it in US-001")
    assert done.code == 0
    assert "Say it in US-001" not in done.out
