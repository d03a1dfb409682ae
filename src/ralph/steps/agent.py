"""`agent`: one agent process with a prompt."""

from __future__ import annotations

from typing import Any

from ralph.core.ports import StepContext, StepReport

NAME = "agent"


def execute(context: StepContext, config: dict[str, Any]) -> StepReport:
    ended, outcome = context.run_agent(config, context.deadline)
    ok = ended.well and outcome.trouble is None
    detail = "" if ok else outcome.detail or ended.detail or ended.how.value
    return StepReport(ok, detail)
