"""The trace of a run, as a real receiver gets it from `ralph run`."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ralph.core.events import AgentStarted, IterationEnded, RunStarted
from ralph.core.trace_context import TraceContext
from ralph.state.names import TRACE
from ralph.traces.delivery import read_delivery
from support.loops import LoopProject, finish, run_driven, run_ralph, shell_project, short, start_ralph, whole
from support.parallel_runs import Project, writes
from support.processes import wait_for
from support.proven import Proven, write
from support.receivers import ERROR, OK, Receiver, attributes, drawn, misnested, receiver

pytestmark = pytest.mark.defaults

SLACK = 3.0
"""Seconds by which two runs may differ on a busy machine, beside what the run may wait at its end."""
WAITS = 2.0
CALLER = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


@pytest.fixture
def collector() -> Iterator[Receiver]:
    with receiver() as known:
        yield known


def started(project: LoopProject) -> list[RunStarted]:
    return [event for event in project.events() if isinstance(event, RunStarted)]


def until_sent(project: LoopProject, run: int = -1, seconds: float = 30) -> None:
    """Until the process that sends the trace has ended, if it goes on after the run."""
    folder = project.journals()[run].parent
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        delivery = read_delivery(folder)
        if delivery is not None and (delivery.is_complete or not delivery.is_under_way):
            time.sleep(0.1)  # it ends right after that
            return
        time.sleep(0.05)
    raise AssertionError(f"still sending: {read_delivery(folder)}")


def test_a_run_sends_one_complete_trace(tmp_path: Path, collector: Receiver) -> None:
    project = LoopProject.make(tmp_path / "loop", whole("tasks.json"))
    done = run_ralph(project, **collector.env)
    assert "trace" not in done.err
    spans = collector.spans
    assert misnested(spans) == [], drawn(spans)
    assert {span.trace_id.hex() for span in spans} == {TraceContext(started(project)[0].run).trace}
    named = sorted(span.name for span in spans)
    ended = [event for event in project.events() if isinstance(event, IterationEnded)]
    assert named.count("iteration implement") == named.count("invoke_agent scripted") == len(ended) == 4
    assert named.count("proof") == 4
    assert [name for name in named if name.startswith("story")] == ["story US-001", "story US-002", "story US-003"]
    assert [name for name in named if name == "check words"] == ["check words"] * 5, drawn(spans)
    rejected = [span for span in collector.named("iteration implement") if span.status.code == ERROR]
    assert [span.status.message for span in rejected] == ["check 'words' failed with exit code 1"]
    assert [event.name for event in rejected[0].events] == ["verdict", "rolled back"]
    assert collector.resources[0]["service.name"] == "ralph"
    assert set(collector.paths) == {"/v1/traces"}


def test_a_session_is_described_by_the_conventions_and_without_texts(tmp_path: Path, collector: Receiver) -> None:
    project = LoopProject.make(tmp_path / "loop", short("tasks.json"))
    run_ralph(project, **collector.env)
    session = attributes(collector.named("invoke_agent scripted")[0])
    assert session["gen_ai.operation.name"] == "invoke_agent"
    assert session["gen_ai.agent.name"] == session["gen_ai.provider.name"] == "scripted"
    assert session["ralph.ended"] == "exited"
    assert [event.name for event in collector.named("invoke_agent scripted")[0].events] == ["tool call"] * 6
    everything = drawn(collector.spans)
    for text in ("BROKEN", "not asked for", "request.json", "git add", "A word in a file"):
        assert text not in everything
    assert str(tmp_path) not in everything


def test_standard_variables_are_honoured_and_a_callers_trace_is_joined(tmp_path: Path, collector: Receiver) -> None:
    project = LoopProject.make(tmp_path / "loop", short("tasks.json"))
    run_ralph(
        project,
        OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=f"{collector.url}/own/path",
        OTEL_EXPORTER_OTLP_HEADERS="x-key=sesame",
        OTEL_EXPORTER_OTLP_COMPRESSION="gzip",
        OTEL_SERVICE_NAME="night-shift",
        OTEL_RESOURCE_ATTRIBUTES="deployment.environment.name=ci",
        TRACEPARENT=CALLER,
    )
    assert misnested(collector.spans, caller="00f067aa0ba902b7") == [], drawn(collector.spans)
    assert collector.traces == ["4bf92f3577b34da6a3ce929d0e0e4736"]
    assert set(collector.paths) == {"/own/path"}
    assert {headers["x-key"] for headers in collector.headers} == {"sesame"}
    assert {headers["content-encoding"] for headers in collector.headers} == {"gzip"}
    assert collector.resources[0]["service.name"] == "night-shift"
    assert collector.resources[0]["deployment.environment.name"] == "ci"


def test_a_parallel_run_nests_as_well(tmp_path: Path, collector: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in collector.env.items():
        monkeypatch.setenv(name, value)
    stories = {f"S-{n}": [writes(f"s{n}.txt", "x\n", seconds=0.3)] for n in range(1, 4)}
    project = Project(tmp_path, stories)
    project.run()
    spans = collector.spans
    assert misnested(spans) == [], drawn(spans)
    assert len(collector.named("merge")) == 3, drawn(spans)
    assert collector.named("merge proof"), drawn(spans)
    iterations = collector.named("iteration implement")
    assert {attributes(span)["ralph.worker"] for span in iterations} == {1, 2}
    begun = min(span.start_time_unix_nano for span in iterations)
    baselines = collector.named("baseline")
    assert baselines
    assert max(span.end_time_unix_nano for span in baselines) <= begun, "also those of the workers"
    assert collector.named("final proof")[0].status.code == OK
    assert collector.named("ralph run")[0].status.code == OK


def test_a_parallel_run_that_is_killed_has_a_whole_trace_and_so_has_the_next(
    tmp_path: Path, collector: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While both workers have an agent at work, and one story is done."""
    for name, value in collector.env.items():
        monkeypatch.setenv(name, value)
    quick, slow = writes("s1.txt", "x\n"), {"implement": [{"sleep": 60}]}
    project = Project(tmp_path, {"S-1": [quick], "S-2": [slow], "S-3": [slow]})
    process = project.start()
    project.wait_for(IterationEnded)
    project.wait_for(AgentStarted, 3)
    process.kill()
    process.wait()
    root = collector.wait_for("ralph run")
    (first,) = collector.traces
    spans = collector.of(first)
    assert misnested(spans) == [], drawn(spans)
    assert root.status.message == "killed: the process of the run is gone"
    iterations = {attributes(span)["ralph.story"]: span.status for span in collector.named("iteration implement")}
    assert (iterations["S-1"].code, iterations["S-2"].code, iterations["S-3"].code) == (OK, ERROR, ERROR)
    script = json.loads((tmp_path / "script.yaml").read_text())
    script["stories"] |= {f"S-{n}": [{"implement": writes(f"s{n}.txt", "x\n")}] for n in (2, 3)}
    (tmp_path / "script.yaml").write_text(json.dumps(script))
    project.run()
    assert collector.of(first) == spans
    (second,) = set(collector.traces) - {first}
    assert misnested(collector.of(second)) == [], drawn(collector.of(second))
    assert len([span for span in collector.of(second) if span.name == "merge"]) == 2


@pytest.fixture(scope="module")
def points(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Where a run of the short scenario can be killed."""
    folder = tmp_path_factory.mktemp("points")
    run_driven(LoopProject.make(folder / "loop", short("tasks.json")), "kill", 0, folder / "points")
    return (folder / "points").read_text().splitlines()


def at(points: list[str], label: str, number: int) -> int:
    """The point with the `number`th such label."""
    found = [place for place, each in enumerate(points, 1) if each == label]
    return found[number - 1]


@pytest.mark.parametrize(
    ("label", "number"),
    [("journalled AgentStarted", 1), ("journalled Judged", 1), ("journal IterationEnded", 2), ("journal RunEnded", 1)],
)
def test_the_trace_of_a_killed_run_is_completed_and_so_is_that_of_the_next(
    tmp_path: Path, collector: Receiver, points: list[str], label: str, number: int
) -> None:
    project = LoopProject.make(tmp_path / "loop", short("tasks.json"))
    killed = run_driven(project, "kill", at(points, label, number), tmp_path / "points", **collector.env)
    assert killed.code == -9
    until_sent(project, 0)
    first = TraceContext(started(project)[0].run).trace
    spans = collector.of(first)
    assert misnested(spans) == [], drawn(spans)
    root = next(span for span in spans if span.name == "ralph run")
    assert (root.status.code, root.status.message) == (ERROR, "killed: the process of the run is gone")
    run_ralph(project, **collector.env)
    assert collector.of(first) == spans  # nothing is sent twice
    second = TraceContext(started(project)[-1].run).trace
    assert second != first
    assert misnested(collector.of(second)) == [], drawn(collector.of(second))


def test_a_trace_whose_sender_was_killed_too_is_completed_by_the_next_run(
    tmp_path: Path, collector: Receiver, points: list[str]
) -> None:
    project = LoopProject.make(tmp_path / "loop", short("tasks.json"))
    collector.code = 503
    run_driven(project, "kill", at(points, "journalled Judged", 2), tmp_path / "points", **collector.env)
    folder = project.journals()[0].parent
    wait_for(lambda: read_delivery(folder) is not None)
    delivery = read_delivery(folder)
    assert delivery is not None
    assert not delivery.is_complete
    with contextlib.suppress(ProcessLookupError):  # it may have given up already
        os.kill(delivery.pid, signal.SIGKILL)
    assert collector.spans == []
    collector.code = 200
    run_ralph(project, **collector.env)
    until_sent(project)
    assert len(started(project)) == 2
    for event in started(project):
        spans = collector.of(TraceContext(event.run).trace)
        assert spans
        assert misnested(spans) == [], drawn(spans)


def test_spans_that_the_receiver_did_not_take_at_first_come_later(tmp_path: Path, collector: Receiver) -> None:
    project = LoopProject.make(tmp_path / "loop", whole("tasks.json"))
    collector.code = 503
    process = start_ralph(project, **collector.env)
    until = time.monotonic() + 30
    while not collector.requests and time.monotonic() < until:
        time.sleep(0.02)
    collector.code = 200
    finish(process)
    until_sent(project)
    assert misnested(collector.spans) == [], drawn(collector.spans)
    assert len(collector.named("iteration implement")) == 4


@pytest.mark.parametrize("trouble", ["dead", "hangs", "refuses"])
def test_a_receiver_in_trouble_changes_neither_the_run_nor_its_time(
    tmp_path: Path, collector: Receiver, trouble: str
) -> None:
    plain = LoopProject.make(tmp_path / "plain", short("tasks.json"))
    begun = time.monotonic()
    expected = run_ralph(plain)
    usual = time.monotonic() - begun
    project = LoopProject.make(tmp_path / "traced", short("tasks.json"))
    env = collector.env
    if trouble == "dead":
        env = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}
    elif trouble == "hangs":
        collector.hang.clear()
        env |= {"OTEL_EXPORTER_OTLP_TIMEOUT": "3"}
    else:
        collector.code = 500
    begun = time.monotonic()
    done = run_ralph(project, **env)
    took = time.monotonic() - begun
    assert done.code == expected.code
    kinds = [[type(event).__name__ for event in each.events()] for each in (plain, project)]
    assert kinds[0] == kinds[1]
    assert plain.outcome().commits == project.outcome().commits
    assert took < usual + WAITS + SLACK, (usual, took)
    assert f"`ralph runs trace {started(project)[0].run}` sends the trace again" in " ".join(done.err.split()), done.err
    until_sent(project)


def test_without_the_variables_nothing_is_started_and_nothing_imported(tmp_path: Path) -> None:
    project = LoopProject.make(tmp_path / "loop", short("tasks.json"))
    log = tmp_path / "started"
    watch = (
        "import sys, subprocess, runpy\n"
        f"log = open({str(log)!r}, 'a')\n"
        "def hear(event, given):\n"
        "    if event == 'subprocess.Popen':\n"
        "        print('start', given[1], file=log, flush=True)\n"
        "sys.addaudithook(hear)\n"
        "try:\n"
        "    sys.argv = ['ralph', 'run', '--plain']\n"
        "    runpy.run_module('ralph', run_name='__main__', alter_sys=True)\n"
        "finally:\n"
        "    print('modules', sorted(sys.modules), file=log, flush=True)\n"
    )
    subprocess.run([sys.executable, "-c", watch], cwd=project.root, env=project.env, capture_output=True, check=False)
    *starts, modules = log.read_text().splitlines()
    assert starts
    assert modules.startswith("modules")
    assert not any("ralph.traces" in line for line in starts)
    assert "opentelemetry" not in modules
    assert "ralph.traces" not in modules
    assert "ralph.host.process.companion" not in modules
    assert not list(project.state.glob(f"*/runs/*/{TRACE}"))


@pytest.mark.parametrize(
    "off", [{"OTEL_SDK_DISABLED": "true"}, {"OTEL_TRACES_EXPORTER": "none"}, {"TRACEPARENT": CALLER[:-1] + "0"}]
)
def test_a_run_sends_nothing_if_the_variables_say_so(tmp_path: Path, collector: Receiver, off: dict[str, str]) -> None:
    project = LoopProject.make(tmp_path / "loop", short("tasks.json"))
    run_ralph(project, **collector.env, **off)
    assert collector.requests == 0
    assert not list(project.state.glob(f"*/runs/*/{TRACE}"))


def test_the_loop_imports_nothing_of_opentelemetry_when_traces_are_on(tmp_path: Path, collector: Receiver) -> None:
    project = LoopProject.make(tmp_path / "loop", short("tasks.json"))
    log = tmp_path / "modules"
    watch = (
        "import sys, runpy\n"
        "try:\n"
        "    sys.argv = ['ralph', 'run', '--plain']\n"
        "    runpy.run_module('ralph', run_name='__main__', alter_sys=True)\n"
        "finally:\n"
        f"    open({str(log)!r}, 'w').write(' '.join(sorted(sys.modules)))\n"
    )
    env = project.env | collector.env
    subprocess.run([sys.executable, "-c", watch], cwd=project.root, env=env, capture_output=True, check=False)
    assert collector.named("ralph run")
    loaded = log.read_text().split()
    assert "ralph.host.process.companion" in loaded
    assert not [name for name in loaded if name.startswith(("opentelemetry", "google.protobuf", "requests"))]


def test_a_missing_package_is_said_once_and_the_run_goes_on(tmp_path: Path, collector: Receiver) -> None:
    project = LoopProject.make(tmp_path / "loop", short("tasks.json"))
    hide = (
        "import sys, runpy, importlib.util as util\n"
        "real = util.find_spec\n"
        "util.find_spec = lambda name, *more: None if name == 'opentelemetry' else real(name, *more)\n"
        "sys.argv = ['ralph', 'run', '--plain']\n"
        "runpy.run_module('ralph', run_name='__main__', alter_sys=True)\n"
    )
    env = project.env | collector.env
    command = [sys.executable, "-c", hide]
    done = subprocess.run(command, cwd=project.root, env=env, capture_output=True, text=True, check=False)
    said = " ".join((done.stdout + done.stderr).split())
    assert said.count("OpenTelemetry is not installed; pip install 'ralph-loop-engine[otel]'") == 1
    assert len([event for event in project.events() if isinstance(event, IterationEnded)]) == 2
    assert collector.requests == 0


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "OTEL_EXPORTER_OTLP_PROTOCOL is grpc, and Ralph sends http/protobuf;"),
        ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL is http/json"),
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "localhost:4318", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is not a URL"),
    ],
)
def test_a_setting_that_cannot_be_used_is_said_once_and_the_run_goes_on(
    tmp_path: Path, collector: Receiver, name: str, value: str, words: str
) -> None:
    project = LoopProject.make(tmp_path / "loop", short("tasks.json"))
    done = run_ralph(project, **collector.env | {name: value})
    said = " ".join((done.out + done.err).split())
    assert said.count(words) == 1, said
    assert "Traceback" not in said
    assert len([event for event in project.events() if isinstance(event, IterationEnded)]) == 2
    assert collector.requests == 0


def test_no_span_has_a_secret(tmp_path: Path, collector: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    token, password = "sk-ant-" + "api03-" + "A1b2C3d4E5f6G7h8J9k0" * 4, "blue-harbour-4711-lantern"
    for name, value in (collector.env | {"SHOP_API_TOKEN": password}).items():
        monkeypatch.setenv(name, value)
    made = Proven(tmp_path, stories=[{"title": f"Log in {token} {password}"}])
    made.run(US_001=[[{"say": token}, write("src/one.py", "ONE = 1\n"), "claim"]])
    sent = drawn(collector.spans)
    assert "Log in" in sent
    assert token[:30] not in sent
    assert password not in sent


def test_a_detached_run_sends_its_trace(tmp_path: Path, collector: Receiver) -> None:
    project = LoopProject.make(tmp_path / "loop", short("tasks.json"))
    run_ralph(project, "run", "--detach", **collector.env)
    collector.wait_for("ralph run")
    until_sent(project)
    assert misnested(collector.spans) == [], drawn(collector.spans)


def test_the_client_is_told_the_span_of_its_session(tmp_path: Path, collector: Receiver) -> None:
    body = f'echo "$TRACEPARENT" >> {tmp_path}/told\nmkdir -p src; echo word > src/word.txt\n'
    project = shell_project(tmp_path, body)
    run_ralph(project, "run", "--plain", "--max-iterations", "2", **collector.env)
    told = (tmp_path / "told").read_text().split()
    sessions = collector.named("invoke_agent command")
    assert told == [f"00-{span.trace_id.hex()}-{span.span_id.hex()}-01" for span in sessions]
    assert len(told) == 2
