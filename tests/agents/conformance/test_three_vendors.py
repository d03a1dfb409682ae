"""A night with three vendors, all real clients: Claude meets its limit, Codex goes on, Gemini reviews.

`scripts/test --agents` runs it where all three are fetched. docs/agents-night.md shows one.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from fetch_clients import program_of

from ralph.agents.registry import agent
from ralph.trial.model import Turn
from ralph.trial.stage import REQUEST, Stage, rehearsal_of
from support.clients import CLIENT

PROGRAMS = {"claude": CLIENT, "codex": program_of("codex"), "gemini": program_of("gemini")}


@pytest.mark.skipif(not os.environ.get("TEST_AGENTS"), reason="`scripts/test --agents` runs it")
@pytest.mark.skipif(not all(path.exists() for path in PROGRAMS.values()), reason="not installed: codex, gemini")
def test_a_limit_at_one_vendor_does_not_end_the_night(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, path in PROGRAMS.items():
        (programs / name).symlink_to(path)
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    others = [agent("codex"), agent("gemini")]
    codex, gemini = (rehearsal_of(one, "http://127.0.0.1:9").model for one in others)
    config = {
        "fallback": [f"codex/{codex}" if codex else "codex"],
        "review": {"enabled": True, "agent": "gemini", "model": gemini},
        "on_limit": "wait",
    }
    (tmp_path / "trial").mkdir()
    stage = Stage(tmp_path / "trial", agent("claude"), stories=2, config=config, beside=others)
    done = '{"claim": "done"}\n'
    approved = '{"review": {"verdict": "approved"}}\n'
    turns: list[Turn] = [{"fail": "reset"}]
    for number in (1, 2):
        turns += [
            {"write": [stage.path(f"s{number}.txt"), "x\n"]},
            {"write": [stage.path(REQUEST), done]},
            {"say": "Done."},
            {"write": [stage.path(REQUEST), approved]},
            {"say": "Approved."},
        ]
    played = stage.play(turns)
    assert played.code == 0, played.out
    assert played.done == [True, True]
    assert played.leftovers == []
    agents = [event["agent"] for event in played.of("AgentStarted")]
    assert agents == ["claude", "codex", "gemini", "codex", "gemini"]
    assert played.verdicts == ["limit", "accepted", "accepted", "accepted", "accepted"]
