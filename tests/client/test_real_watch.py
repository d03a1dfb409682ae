"""What a person sees of the real client while it works, and of its session afterwards."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from support.clients import CLIENT, Project, claim, say, use, write
from support.terminals import Terminal

pytestmark = [
    pytest.mark.client,
    pytest.mark.skipif(not CLIENT.exists(), reason="THE REAL CLIENT IS NOT TESTED: it is not in .venv/client"),
    pytest.mark.filterwarnings("ignore:This process:DeprecationWarning"),
]


def ralph(project: Project, *arguments: str) -> str:
    command = [sys.executable, "-m", "ralph", *arguments]
    return subprocess.run(command, cwd=project.root, env=project.env, capture_output=True, check=True).stdout.decode()


def test_text_calls_and_cost_are_seen_while_it_works_and_in_the_transcript(tmp_path: Path) -> None:
    project = Project(tmp_path)
    turns = [
        {"blocks": [say("I will look around first."), use("Bash", command="cat old.txt")]},
        use("Bash", command="git push origin main"),
        use("Bash", command="cat no-such-file"),
        use("Bash", command="for i in $(seq 300); do grep -q GO old.txt && break; sleep 0.1; done; echo released"),
        write(project, "s1.txt"),
        claim(project),
        say("The story is finished."),
    ]
    running = project.start(turns)
    try:
        project.wait_for("AgentStarted", running)
        terminal = Terminal(project, "watch", columns=80, rows=24)
        for words in ("I will look around first.", "⚙ Bash cat old.txt", "⚙ Bash cat no-such-file", "failed"):
            terminal.until(words)
        terminal.until("tokens · ~$")
        status = ralph(project, "status")
        assert "Iteration 1/" in status
        assert "So far: 0 iterations, " in status
        assert re.search(r"tokens, ~?\$0\.", status)
        for file in [*project.state.glob("*/clones/*/*/old.txt")] or [project.root / "old.txt"]:
            file.write_text("GO\n")
        assert terminal.end() == 0, terminal.plain[-2000:]
        assert running.wait(60) == 0
    finally:
        if running.poll() is None:
            running.terminate()
        running.communicate()
    assert "The story is finished." in terminal.plain
    transcript = ralph(project, "log", "--agent", "1")
    for words in (
        "I will look around first.",
        "⚙ Bash cat old.txt",
        "    released",
        "    denied: This pushes",
        "(failed, ",
        "result: ok, ",
    ):
        assert words in transcript
    assert "turns" in transcript.rpartition("result: ok")[2]
