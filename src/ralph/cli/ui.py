"""`ralph ui`: a run on the whole terminal, with keys to act on it and to plan."""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from importlib.util import find_spec
from pathlib import Path

from ralph.cli.output import can_draw
from ralph.core.errors import SetupError, UsageError
from ralph.core.exit_codes import ExitCode
from ralph.core.ports import PlanRef
from ralph.core.text import one_line
from ralph.workspace.find import open_ref
from ralph.workspace.runs import chosen_runs, run_to_show

_EXTRA = "pip install 'ralph-loop-engine[tui]'; from a clone: pip install '.[tui]'"
TYPE_CHECKING = False
if TYPE_CHECKING:
    from ralph.tui.source import Source


def run(args: Namespace) -> int:
    if not is_installed():
        raise SetupError("`ralph ui` needs textual", hint=_EXTRA)
    if not (can_draw() and sys.stdin.isatty()):
        raise UsageError("`ralph ui` needs a terminal", hint="`ralph status` and `ralph log` print lines")
    source, plan = _find(args)
    from ralph.tui.app import RalphUi

    try:
        RalphUi(source, plan, dict(os.environ)).run()  # a copy: Textual takes NO_COLOR out
    finally:
        if source is not None:
            source.close()
    return int(ExitCode.COMPLETE)


def is_installed() -> bool:
    return find_spec("textual") is not None


def _find(args: Namespace) -> tuple[Source | None, PlanRef | None]:
    """The run; or the plan of a workspace that has no run yet."""
    from ralph.tui.source import LocalFiles

    if args.attach:
        from ralph.tui.remote import Remote, Server, choose_run

        server = Server.of(args.attach, os.environ.get("RALPH_TOKEN", ""))
        return Remote(server, choose_run(server, args.run)), None
    if args.run.endswith(".jsonl"):
        journal = Path(args.run)
        if not journal.is_file():
            raise UsageError(f"file not found: {one_line(args.run, 100)}", hint="name a journal, or a run by its ID")
        return LocalFiles(journal, os.environ), None
    if not args.run and not chosen_runs(args, os.environ):
        return None, open_ref(args)[0]
    return LocalFiles(run_to_show(args, os.environ), os.environ), None
