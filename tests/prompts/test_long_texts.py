"""Stories of 200 KB, some of them one word: a pattern that tries each letter would take minutes."""

from __future__ import annotations

import pytest

from ralph.core.areas import areas_of
from ralph.core.complexity import complexity
from ralph.core.plan import Story
from ralph.prompts.memory import cue_for


@pytest.mark.parametrize("unit", ["x", "x.", "x/", "x-", "A", "1", "`", "[", "<", ",", "{a,", "a://", ": ", "x\n"])
def test_a_long_story_is_read_at_once(unit: str) -> None:
    story = Story(id="S-1", title="Write it", description=f"Edit src/first.py, then {unit * (200_000 // len(unit))}")
    assert "src/first.py" in cue_for(story).files
    assert "src/first.py" in str(areas_of([story], {}))
    assert complexity(story).level
