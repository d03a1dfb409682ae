"""`command`: run a shell command. Its exit code is evidence like that of any check."""

from __future__ import annotations

import shlex
from typing import Any

from ralph.core.errors import ConfigError
from ralph.core.ports import StepContext, StepReport

NAME = "command"


def execute(context: StepContext, config: dict[str, Any]) -> StepReport:
    command = config.get("command", "")
    args = config.get("args", [])
    if not isinstance(command, str) or not command.strip() or not isinstance(args, list):
        raise ConfigError("a `command` step needs `config.command`, a shell command", hint='e.g. command: "make test"')
    line = " ".join([command, *(shlex.quote(str(arg)) for arg in args)])
    cwd = str(config.get("cwd", config.get("working_dir", "")))
    result = context.run_command(str(config.get("name", command)), line, timeout=context.deadline, cwd=cwd)
    return StepReport(result.passed, "" if result.passed else f"exit code {result.code}", check=result)
