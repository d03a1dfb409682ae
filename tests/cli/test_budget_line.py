"""The budget line: what the open stories will take, and whether the cap allows it."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from ralph.core.events import Foreseen
from ralph.core.rules import Limits
from ralph.views.words import budget_line, is_short
from support.cli import ralph
from support.workspaces import workspace


def event(stories: int, half: float, most: float = 0, samples: int = 0) -> Foreseen:
    return Foreseen(stories=stories, samples=samples, iterations=(half, most or half), seconds=(1, 2))


@pytest.mark.parametrize(
    ("stories", "half", "cap", "line"),
    [
        (5, 15, 15, "5 stories × about 3 iterations = about 15; cap 15"),
        (1, 1, 20, "1 story × about 1 iteration = about 1; cap 20"),
        (8, 13, 20, "8 stories × about 1.6 iterations = about 13; cap 20"),
    ],
)
def test_what_is_to_be_done_against_the_cap(stories: int, half: float, cap: int, line: str) -> None:
    assert budget_line(event(stories, half), cap, Limits(max_iterations=cap)) == line


def test_a_cap_that_follows_from_the_plan_shows_how() -> None:
    limits = Limits(max_iterations=0, per_story=5)
    assert budget_line(event(6, 10), limits.cap(6), limits).endswith("= about 10; cap 30 (6 stories × 5)")
    assert budget_line(event(6, 10), 0, Limits(max_iterations=0)).endswith("= about 10; cap none")


def test_a_cap_below_the_estimate_is_said_with_the_setting_that_makes_it() -> None:
    told = budget_line(event(10, 31, 37), 20, Limits(max_iterations=20))
    assert told.startswith("10 stories × about 3.1 iterations = about 31; cap 20, which may be too low")
    assert told.endswith("without max_iterations (-n) it follows from the plan")
    told = budget_line(event(10, 31, 37), 20, Limits(max_iterations=20, max_allowed=20))
    assert told.endswith("raise max_allowed_iterations, or set it to 0"), "no number that the other setting cuts down"
    assert is_short(event(10, 31), 30)
    assert not is_short(event(10, 31), 31)


@pytest.mark.usefixtures("git_identity")
def test_it_learns_from_what_stories_took_here(tmp_path: Path) -> None:
    workspace(tmp_path, "feature", 12)
    (tmp_path / "script.yaml").write_text(
        'stories: {"*": [{implement: [{append: {path: work.txt, text: "x\\n"}}, {claim: done}]}]}'
    )
    settings = {
        "agent": {"name": "scripted", "script": "script.yaml"},
        "review": {"enabled": False},
        "checks": [{"name": "there", "command": "test -d .ralph"}],
        "branch": {"auto_create": False},
        "archive": {"on_complete": False},
    }
    (tmp_path / ".ralph/config.yaml").write_text(json.dumps(settings))
    for command in ("init -q -b main", "add -A", "commit -qm start"):
        subprocess.run(["git", *command.split()], cwd=tmp_path, check=True)
    env = {"RALPH_TRUST": "1"}
    first = ralph("run", "--plain", "-n", "5", cwd=tmp_path, env=env).out
    assert "6 stories × about 2 iterations = about 12; cap 5, which may be too low" in first
    second = ralph("run", "--plain", "-n", "5", cwd=tmp_path, env=env).out
    assert "1 story × about 1 iteration = about 1; cap 5" in second
    assert "too low" not in second
