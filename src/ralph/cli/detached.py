"""`ralph run --detach`: start a run in the background, and print how to watch and stop it.

An error at the start is shown on the terminal, with the exit code of the run. The launcher returns when the first agent
has started, or after a few seconds: a run that cannot start has stopped by that time.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from ralph.cli.output import emit_bytes, emit_json, fail, say
from ralph.core.events import AgentStarted, Record, RunStarted, WaitStarted
from ralph.core.exit_codes import ExitCode
from ralph.host.process.detach import Background, Waiting, fork
from ralph.journal.records import Listener
from ralph.state.places import workspace_state
from ralph.state.runs import journal_path

LOG = "output.log"
"""The log of a detached run, in the folder of the run."""
_PATIENCE = 5.0
_WORKING = "working"


def run_detached(run: Callable[[Listener], int], *, as_json: bool) -> int:
    """Call `run` in a background process, with a listener that must get each record first."""
    side = fork()
    if isinstance(side, Background):
        return run(_Reporter(side))
    return _wait(side, as_json=as_json)


class _Reporter:
    """Signals the launcher that the run has started, and redirects the output to the log."""

    def __init__(self, background: Background) -> None:
        self._background = background

    def __call__(self, record: Record) -> None:
        match record.event:
            case RunStarted(run=run, workspace=workspace):
                log = journal_path(workspace_state(Path(workspace), os.environ), run).with_name(LOG)
                self._background.log_to(log)
                self._background.tell(f"{run} {log}")
            case AgentStarted() | WaitStarted():
                self._background.tell(_WORKING)


def _wait(side: Waiting, *, as_json: bool) -> int:
    first = side.hear()
    if first is None:
        code = side.end()
        if code > 128 and code not in (ExitCode.INTERRUPTED, ExitCode.TERMINATED):
            fail(f"the run was killed by signal {code - 128} before it started")
        return code
    run, _, log = first.partition(" ")
    if side.hear(_PATIENCE) is None:
        emit_bytes(Path(log).read_bytes())
        return side.end()
    if as_json:
        emit_json({"run": run, "pid": side.pid, "log": log})
        return int(ExitCode.COMPLETE)
    say(f"run {run} started in the background (pid {side.pid})")
    say("  watch it   ralph watch")
    say("  stop it    ralph stop")
    say(f"  output     {log}")
    return int(ExitCode.COMPLETE)
