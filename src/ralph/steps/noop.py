"""`noop`: do nothing, for trying out a configuration."""

from __future__ import annotations

from typing import Any

from ralph.core.ports import StepContext, StepReport

NAME = "noop"


def execute(context: StepContext, config: dict[str, Any]) -> StepReport:
    return StepReport(ok=True)
