"""The conformance suite on what the real clients printed: does each adapter still understand it?

`scripts/record_agents.py` records it again.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ralph.agents.registry import AGENTS, agent
from ralph.core.agent_traits import traits_of
from ralph.trial.scenarios import SCENARIOS
from ralph.trial.suite import judge_recording, load_recording, why_not

RECORDED = Path(__file__).resolve().parents[1] / "recorded"
CLIENTS = [name for name in AGENTS.built_in() if traits_of(agent(name)).install]
LARGEST = 64_000


def recordings() -> list[str]:
    return sorted(str(path.relative_to(RECORDED)) for path in RECORDED.glob("*/*.json"))


@pytest.mark.parametrize("name", recordings())
def test_what_a_client_printed_is_understood(name: str) -> None:
    recording = load_recording(RECORDED / name)
    assert recording.takes
    assert judge_recording(agent(recording.agent), recording) == []


@pytest.mark.parametrize("name", CLIENTS)
def test_every_scenario_that_a_client_can_do_is_recorded(name: str) -> None:
    """Recordings are kept of scenarios that passed, so this also tells that all of them did."""
    found = agent(name)
    wanted = {scenario.name for scenario in SCENARIOS if not why_not(found, scenario)}
    assert {path.stem for path in (RECORDED / name).glob("*.json")} == wanted


@pytest.mark.parametrize("name", recordings())
def test_recordings_are_small_and_tell_nothing_of_the_machine(name: str) -> None:
    data = (RECORDED / name).read_text()
    assert len(data) <= LARGEST
    assert re.findall(r"(?<!/trial)(?<!bunfs)/(?:root|home|tmp/ralph|tmp/w)\b", data) == []


@pytest.mark.parametrize("name", CLIENTS)
def test_a_footnote_is_about_a_scenario(name: str) -> None:
    known = {scenario.name for scenario in SCENARIOS}
    assert set(traits_of(agent(name)).cannot) <= known
