"""What counts as a sign of life of an agent that says nothing."""

from __future__ import annotations

import pytest

from ralph.agents.stream_json import StreamJson
from ralph.core.agent import AgentEvent, Compacting, Init, Result, Text, ToolResult, ToolUse
from ralph.engine.agent_watch import Occupation, SignsOfLife


def occupied(*events: AgentEvent) -> bool:
    occupation = Occupation()
    for event in events:
        occupation.see(event)
    return occupation.is_busy


@pytest.mark.parametrize(
    ("events", "busy"),
    [
        ([], False),
        ([ToolUse("Bash", id="1")], True),
        ([ToolUse("Bash", id="1"), ToolResult("1")], False),
        ([ToolUse("Bash", id="1"), ToolUse("Read", id="2"), ToolResult("1")], True),
        ([ToolUse("Bash", id="1"), Text("done")], False),
        ([ToolUse("Bash")], False),
        ([Compacting(True)], True),
        ([Compacting(True), Compacting(False)], False),
        ([Compacting(True), Init()], False),
        ([ToolUse("Bash", id="1"), Result(ok=True)], False),
    ],
)
def test_a_running_tool_and_compaction_are_life(events: list[AgentEvent], busy: bool) -> None:
    assert occupied(*events) is busy


def test_the_client_says_when_it_compacts() -> None:
    read = StreamJson()
    (begun,) = read(b'{"type":"system","subtype":"status","status":"compacting","session_id":"s"}')
    (over,) = read(b'{"type":"system","subtype":"status","status":null,"compact_result":"success"}')
    assert (begun, over) == (Compacting(True), Compacting(False))


class World:
    def __init__(self) -> None:
        self.now, self.cpu, self.files = 0.0, 0.0, 0
        self.occupation = Occupation()
        self.signs = SignsOfLife(self.occupation, lambda: self.cpu, lambda: self.files, lambda: self.now)
        self.signs()

    def shows_life(self, seconds: float = 100) -> bool:
        before = self.signs()
        self.now += seconds
        return self.signs() != before


def test_nothing_at_all_is_no_life() -> None:
    assert not World().shows_life()


def test_files_being_written_are_life() -> None:
    world = World()
    before = world.signs()
    world.files += 1
    assert world.signs() != before
    assert not world.shows_life()


@pytest.mark.parametrize(("used", "alive"), [(0.0, False), (0.5, False), (2.0, True), (90.0, True)])
def test_processor_time_is_life_when_it_is_more_than_winding_clocks(used: float, alive: bool) -> None:
    world = World()
    before = world.signs()
    world.now, world.cpu = 100, used
    assert (world.signs() != before) is alive


def test_a_running_tool_is_life_at_every_look_until_it_is_over() -> None:
    world = World()
    world.occupation.see(ToolUse("Bash", id="1"))
    assert world.shows_life()
    assert world.shows_life()
    world.occupation.see(ToolResult("1"))
    assert not world.shows_life()
