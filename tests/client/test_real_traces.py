"""The trace of a run reaches the real client, and the client's own spans join it."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from support.clients import CLIENT, INSIDE, Project, Ran, claim, say, use
from support.receivers import Receiver, drawn, misnested

pytestmark = [
    pytest.mark.client,
    pytest.mark.skipif(not CLIENT.exists(), reason="THE REAL CLIENT IS NOT TESTED: it is not in .venv/client"),
    pytest.mark.filterwarnings("ignore:This process:DeprecationWarning"),
]
RECEIVER = Path(__file__).resolve().parents[1] / "support" / "receivers.py"
OWN_TELEMETRY = {
    "CLAUDE_CODE_ENABLE_TELEMETRY": "1",
    "CLAUDE_CODE_ENHANCED_TELEMETRY_BETA": "1",
    "OTEL_TRACES_EXPORTER": "otlp",
    "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
}


def run(folder: Path, **env: str) -> tuple[Ran, Receiver]:
    """One session of the real client at default settings, with a receiver in the network that it has."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    project = Project(folder, sandbox={"allow_hosts": [f"127.0.0.1:{port}"]})
    script, got = folder / "script.json", folder / "spans"
    told = use("Bash", command="echo told=$TRACEPARENT > s1.txt")
    script.write_text(json.dumps([told, claim(project), say()]))
    command = [sys.executable, *INSIDE, str(script), str(project.requests), sys.executable, str(RECEIVER)]
    command += [str(port), str(got), sys.executable, "-m", "ralph", "run", "--plain", "-v"]
    environment = project.environment(**env)
    done = subprocess.run(
        command, cwd=project.root, env=environment, capture_output=True, timeout=120, check=False, text=True
    )
    receiver = Receiver()
    receiver.read(got.read_bytes())
    return Ran(project, done.returncode, done.stdout + done.stderr), receiver


def told_to_tools(ran: Ran) -> str:
    return (ran.project.root / "s1.txt").read_text().strip().removeprefix("told=")


def test_traceparent_of_the_session_reaches_the_client(tmp_path: Path) -> None:
    ran, receiver = run(tmp_path)
    assert ran.code == 0, ran.out[-3000:]
    (session,) = receiver.named("invoke_agent claude")
    assert told_to_tools(ran) == f"00-{session.trace_id.hex()}-{session.span_id.hex()}-01", ran.out[-3000:]
    assert misnested(receiver.spans) == [], drawn(receiver.spans)


def test_the_clients_own_spans_join_the_trace(tmp_path: Path) -> None:
    ran, receiver = run(tmp_path, **OWN_TELEMETRY)
    assert ran.code == 0, ran.out[-3000:]
    (session,) = receiver.named("invoke_agent claude")
    assert receiver.traces == [session.trace_id.hex()]
    theirs = [span for span in receiver.spans if span.name.startswith("claude_code.")]
    (interaction,) = [span for span in theirs if span.name == "claude_code.interaction"]
    assert interaction.parent_span_id == session.span_id, drawn(receiver.spans)
    assert [span for span in theirs if span.name == "claude_code.tool"], drawn(receiver.spans)
    assert told_to_tools(ran).split("-")[1] == session.trace_id.hex()
