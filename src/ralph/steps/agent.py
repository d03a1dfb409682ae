"""`agent`: run one agent process with a prompt."""

from __future__ import annotations

from typing import Any

from ralph.core.agent import Trouble
from ralph.core.ports import StepContext, StepReport

NAME = "agent"
_IN_VAIN = (
    Trouble.LIMIT,
    Trouble.BUDGET,
    Trouble.AUTHENTICATION,
    Trouble.BILLING,
    Trouble.REFUSED,
    Trouble.MODEL,
    Trouble.PERMISSION,
    Trouble.UNGUARDED,
)


def execute(context: StepContext, config: dict[str, Any]) -> StepReport:
    ended, outcome = context.run_agent(config, context.deadline)
    ok = ended.well and outcome.trouble is None
    detail = "" if ok else outcome.detail or ended.detail or ended.how.value
    return StepReport(ok, detail, may_retry=outcome.trouble not in _IN_VAIN)
