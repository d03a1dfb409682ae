"""The table of step types. Third-party types are added through the entry point group `ralph.steps`."""

from __future__ import annotations

from typing import cast

from ralph.core.ports import Step
from ralph.core.registry import Registry

STEPS = Registry(
    "step type",
    {
        "agent": "ralph.steps.agent",
        "git-commit": "ralph.steps.git_commit",
        "command": "ralph.steps.command",
        "readme-check": "ralph.steps.readme_check",
        "noop": "ralph.steps.noop",
    },
    group="ralph.steps",
)


def step(name: str) -> Step:
    return cast(Step, STEPS.get(name))
