"""`readme-check`: check that the project has a README that is not empty."""

from __future__ import annotations

from typing import Any

from ralph.core.evidence import CheckResult
from ralph.core.ports import StepContext, StepReport

NAME = "readme-check"


def execute(context: StepContext, config: dict[str, Any]) -> StepReport:
    wanted = str(config.get("file", config.get("path", ""))).lower()
    found = [
        entry
        for entry in context.repo.iterdir()
        if entry.is_file() and (entry.name.lower() == wanted if wanted else entry.name.lower().startswith("readme"))
    ]
    ok = any(entry.stat().st_size > 0 for entry in found)
    detail = "" if ok else f"{wanted or 'README'} is missing or empty"
    result = CheckResult(name=NAME, command="readme-check", passed=ok, code=0 if ok else 1, tail=detail)
    return StepReport(ok, detail, check=result)
