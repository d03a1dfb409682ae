"""Plays a script as a separate process: `python -I -m ralph.agents.play SCRIPT [PLAN]`, the prompt on stdin.

Story, mode and attempt come from `RALPH_STORY`, `RALPH_MODE` and `RALPH_ATTEMPT`. The output has the format of the
Claude client's stream.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from ralph.agents.script import Script, read
from ralph.agents.stage import CannotPlay, Leave, Stage
from ralph.core.errors import RalphError
from ralph.core.exit_codes import ExitCode


def main(argv: list[str]) -> int:
    if len(argv) not in (1, 2):
        return _complain("usage: python -I -m ralph.agents.play SCRIPT [PLAN]", ExitCode.USAGE)
    file, plan = argv[0], "".join(argv[1:])
    prompt = b"" if sys.stdin is None or sys.stdin.isatty() else sys.stdin.buffer.read()
    try:
        script = read(Path(file).read_bytes(), file, load=True)
        stage = Stage(os.environ, prompt, script.model, plan)
    except (RalphError, ValueError) as error:
        hint = f" ({error.hint})" if isinstance(error, RalphError) and error.hint else ""
        return _complain(f"{error}{hint}", ExitCode.BAD_DATA)
    except OSError as error:
        return _complain(f"{file}: {error.strerror}", ExitCode.BAD_DATA)
    try:
        return _play(script, stage, file)
    except Leave as leave:
        return leave.code


def _play(script: Script, stage: Stage, file: str) -> int:
    stage.init()
    for step in script.select(stage.story, stage.mode, stage.attempt):
        time.sleep(script.pace)
        try:
            step.action.play(stage)
        except (CannotPlay, OSError, ValueError) as error:
            # The script is wrong, not the agent that it plays: loud, so that its author sees it.
            return _complain(f"{file}:{step.line}: {step.name}: {error}", ExitCode.BAD_DATA)
    stage.close()
    time.sleep(stage.linger)
    return 0


def _complain(message: str, code: ExitCode) -> int:
    sys.stderr.write(f"{message}\n")
    return int(code)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
