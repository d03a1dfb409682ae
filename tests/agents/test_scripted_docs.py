"""The documentation of the scripted agent and its code say the same."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ralph.agents.acts import ACTIONS
from ralph.agents.script import read
from ralph.core.plan import Mode

TEXT = (Path(__file__).parents[2] / "docs" / "scripted-agent.md").read_text()
ROWS = re.findall(r"(?m)^\| `(\w+)` \| (.*?) ?\| (.+) \|$", TEXT)
SCRIPTS = [block for block in re.findall(r"(?ms)^```yaml\n(.*?)^```$", TEXT) if "stories:" in block]


def test_every_action_is_listed_with_its_settings() -> None:
    listed = {name: tuple(re.findall(r"`(\w+)`", settings)) for name, settings, _ in ROWS}
    assert len(listed) == len(ROWS), "one row each"
    assert listed == {name: kind.__struct_fields__ for name, kind in ACTIONS.items()}


@pytest.mark.parametrize("block", SCRIPTS)
def test_every_script_in_the_documentation_can_be_played(block: str) -> None:
    assert read(block.encode(), "docs.yaml").stories


def test_the_actions_of_ones_own_can_be_played(tmp_path: Path) -> None:
    code = TEXT.partition("```python\n")[2].partition("```")[0]
    (tmp_path / "acts.py").write_text(code)
    (block,) = [block for block in SCRIPTS if block.startswith("acts:")]
    script = read(block.encode(), str(tmp_path / "docs.yaml"), load=True)
    assert [step.name for step in script.select("US-001", Mode.IMPLEMENT, 1)] == ["link", "claim"]


def test_there_are_scripts_to_look_at() -> None:
    assert len(SCRIPTS) >= 4
