"""The real Claude Code client under a budget: it is told what is left, stops at it, and its work is looked at."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.clients import CLIENT, Project, claim, say, write

pytestmark = [
    pytest.mark.client,
    pytest.mark.skipif(
        not CLIENT.exists(),
        reason="THE REAL CLIENT IS NOT TESTED: claude-agent-sdk could not be installed into .venv/client",
    ),
]

DEAR = {"usage": {"input_tokens": 900_000, "output_tokens": 20}}


def test_a_budget_that_is_used_up_inside_the_client_ends_the_run_once_and_keeps_sound_work(tmp_path: Path) -> None:
    project = Project(tmp_path, stories=2)
    turns = [write(project, "s1.txt"), claim(project) | DEAR, say()]
    ran = project.run(turns, "--max-cost", "1")
    assert ran.code == 4, ran.out
    assert "Traceback" not in ran.out
    (started,) = ran.of("AgentStarted")
    assert started["argv"][started["argv"].index("--max-budget-usd") + 1] == "1"
    (ended,) = ran.of("AgentEnded")
    assert ended["outcome"]["trouble"] == "budget"
    (iteration,) = ran.of("IterationEnded")
    assert iteration["kind"] == "partial"
    assert "reached its spending limit" in iteration["headline"]
    assert (project.root / "s1.txt").exists()
    (charged,) = ran.of("Charged")
    assert charged["basis"] == "reported"
    assert charged["usd"] > 1
    assert ran.of("RunEnded")[0]["reason"] == "budget"
    assert "this run's budget of $1.00" in ran.out
    assert ran.leftovers() == []
