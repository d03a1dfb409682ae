"""The conformance suite on real clients, as `ralph agents test` runs it: Claude Code always, the others by
`scripts/test --agents`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from fetch_clients import CLIENTS, program_of

from ralph.agents.registry import agent
from ralph.trial.scenarios import SCENARIOS
from ralph.trial.suite import try_one, why_not
from support.clients import CLIENT

LONG = ("busy", "outage", "cut", "late")
"""The client retries for half a minute, or its time runs out."""
WANTED = [name for name in os.environ.get("TEST_AGENTS", "").split() if name in CLIENTS]


def check(name: str, scenario: str, program: Path) -> None:
    found = agent(name)
    wanted = next(one for one in SCENARIOS if one.name == scenario)
    if reason := why_not(found, wanted):
        pytest.skip(f"{name}: {reason}")
    mark = try_one(found, wanted, program=str(program))
    assert mark.problems == (), mark.kept


@pytest.mark.client
@pytest.mark.parametrize("scenario", [one.name for one in SCENARIOS if one.name not in LONG])
def test_claude(scenario: str) -> None:
    check("claude", scenario, CLIENT)


@pytest.mark.client
@pytest.mark.slow
@pytest.mark.parametrize("scenario", LONG)
def test_claude_in_scenarios_that_take_long(scenario: str) -> None:
    check("claude", scenario, CLIENT)


@pytest.mark.parametrize("name", WANTED)
@pytest.mark.parametrize("scenario", [one.name for one in SCENARIOS])
def test_other_clients(scenario: str, name: str) -> None:
    assert program_of(name).exists(), f"scripts/fetch_clients.py {name}"
    check(name, scenario, program_of(name))
