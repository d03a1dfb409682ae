"""`size`: a file that a story leaves behind has at most so many lines. A step for Ralph's pipeline.

    {"type": "size", "name": "small files", "config": {"files": "*.py", "most": 400}}

A step is anything with a NAME and an `execute(context, config) -> StepReport`; a module will do. What it returns as
`check` is evidence: a failed one rejects the story, like any other check.
"""

from __future__ import annotations

from typing import Any

from ralph.core.errors import ConfigError
from ralph.core.evidence import CheckResult
from ralph.core.ports import StepContext, StepReport

NAME = "size"


def execute(context: StepContext, config: dict[str, Any]) -> StepReport:
    pattern, most = config.get("files", "*.py"), config.get("most", 400)
    if not isinstance(pattern, str) or not isinstance(most, int) or most < 1:
        raise ConfigError("a `size` step needs `files`, a pattern, and `most`, a number of lines")
    long = []
    for path in sorted(context.repo.rglob(pattern)):
        if ".git" in path.parts or not path.is_file():
            continue
        lines = len(path.read_bytes().splitlines())
        if lines > most:
            long.append(f"{path.relative_to(context.repo)} has {lines} lines, more than {most}")
    result = CheckResult(
        name=str(config.get("name", NAME)),
        command=f"size {pattern} {most}",
        passed=not long,
        code=1 if long else 0,
        tail="\n".join(long),
    )
    return StepReport(ok=not long, detail="; ".join(long[:3]), check=result)
