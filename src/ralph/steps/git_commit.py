"""`git-commit`: commit the story once it is accepted. An unproven change is never committed."""

from __future__ import annotations

from typing import Any

from ralph.core.ports import StepContext, StepReport

NAME = "git-commit"


def execute(context: StepContext, config: dict[str, Any]) -> StepReport:
    return StepReport(ok=True, detail="when the story is accepted", commit=True)
