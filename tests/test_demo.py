"""The demos end as they promise: the first story of one shows the whole review cycle, another one the merge queue."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.cli import ralph

EXAMPLE = Path(__file__).parent.parent / "examples" / "demo"


@pytest.mark.usefixtures("git_identity")
def test_its_first_story_is_implemented_reviewed_fixed_and_approved(tmp_path: Path) -> None:
    project = tmp_path / "textkit"
    shutil.copytree(EXAMPLE, project)
    script = project / "script.yaml"
    script.write_text(script.read_text().replace("pace: 0.2", "pace: 0"))
    for command in ("init -q -b main", "add -A", "commit -qm start"):
        subprocess.run(["git", *command.split()], cwd=project, check=True)
    done = ralph("run", "--json", "--trust", "-n", "4", cwd=project)
    events = [json.loads(line)["event"] for line in done.out.splitlines()]
    ended = [event for event in events if event["type"] == "IterationEnded"]
    assert [(event["story"], event["mode"], event["kind"]) for event in ended] == [
        ("US-001", mode, "accepted") for mode in ("implement", "review", "fix", "review")
    ]
    assert ended[1]["headline"].startswith("changes requested: one criterion is not met")
    assert ended[3]["completes"]
    assert ended[3]["grade"] == "witnessed", "its new test fails without the change"
    assert "1 closed" in ralph("stats", cwd=project).out


@pytest.mark.needs("bwrap")
@pytest.mark.usefixtures("git_identity")
def test_what_its_agent_tries_in_a_sandbox_is_refused(tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("demo_loop", EXAMPLE.parent.parent / "scripts" / "demo_loop.py")
    assert spec is not None
    assert spec.loader is not None
    demo_loop = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(demo_loop)
    project = tmp_path / "textkit"
    shutil.copytree(EXAMPLE, project)
    env = demo_loop.environment(tmp_path)
    demo_loop.plant(tmp_path, project)
    for command in ("init -q -b main", "add -A", "commit -qm start"):
        subprocess.run(["git", *command.split()], cwd=project, check=True)
    done = ralph("run", "--plain", "--trust", "--sandbox", "-n", "1", cwd=project, env=env)
    assert "the sandbox refused example.org:443" in done.out
    assert "accepted US-001" in done.out
    assert not (tmp_path / "outside").exists()
    assert not (tmp_path / "home" / "planted").exists()
    everything = [path.read_bytes() for path in (tmp_path / "state").rglob("*") if path.is_file()]
    assert any(b"No such file" in data for data in everything), "the attempts were made"
    assert not any(b"the private key of the demo" in data for data in everything)


def test_parallel_work_that_conflicts_or_breaks_the_merged_tests_is_returned_and_done(tmp_path: Path) -> None:
    script = EXAMPLE.parent.parent / "scripts" / "demo_parallel.py"
    env = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, script, "--plain"], env=env, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    queue = done.stdout.partition("What the journal says")[2]
    returned = re.findall(r"(US-\d+)  returned: (.*)", queue)
    assert {story for story, why in returned if why.startswith("its changes conflict")} <= {"US-001", "US-002"}
    assert {story for story, why in returned if why.startswith("green alone, red merged")} <= {"US-003", "US-004"}
    assert len({story for story, _ in returned}) == 2
    accepted = re.findall(r"(US-\d+)  accepted", queue)
    assert sorted(accepted) == [f"US-{number:03}" for number in range(1, 9)]
    assert "The final tree passes." in queue
    assert not list(tmp_path.glob("ralph-demo-*")), "nothing is left behind"
