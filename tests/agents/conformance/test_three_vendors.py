"""A night with three vendors, all real clients: Claude meets its limit, Codex goes on, Gemini reviews.

`scripts/test --agents` runs it where all three are fetched. docs/agents-night.md shows one.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from agents_night import night, programs


@pytest.mark.skipif(not os.environ.get("TEST_AGENTS"), reason="`scripts/test --agents` runs it")
@pytest.mark.skipif(not all(path.exists() for path in programs().values()), reason="not installed: codex, gemini")
def test_a_limit_at_one_vendor_does_not_end_the_night(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", os.environ["PATH"])  # which the night changes
    played = night(tmp_path)
    assert played.code == 0, played.out
    assert played.done == [True, True]
    assert played.leftovers == []
    agents = [event["agent"] for event in played.of("AgentStarted")]
    assert agents == ["claude", "codex", "gemini", "codex", "gemini"]
    assert played.verdicts == ["limit", "accepted", "accepted", "accepted", "accepted"]
