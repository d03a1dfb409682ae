"""Run `decide` and `judge` again over what a run recorded, and report every decision that comes out differently.

The same journal gives the same decisions; a difference means that Ralph decides otherwise now than it did then."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace

from ralph.app.replaying import replay
from ralph.app.run_choice import chosen_run
from ralph.cli.arguments import add_json, add_workspace
from ralph.cli.output import emit_json, say
from ralph.core.exit_codes import ExitCode
from ralph.journal.reading import read

EXAMPLES = """
ralph replay                 the last run
ralph replay 20260115-0930   one that begins so
"""


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("run", nargs="?", default="", metavar="RUN", help="a run's id or the beginning of it")
    add_workspace(parser)
    add_json(parser)


def run(args: Namespace) -> int:
    path = chosen_run(args, os.environ, args.run)
    name, replayed = path.parent.name, replay(read(path))
    if args.json:
        emit_json({"run": name, "decisions": replayed.decisions, "verdicts": replayed.verdicts,
                   "differences": replayed.differences})  # fmt: skip
    else:
        for difference in replayed.differences:
            say(f"record {difference.seq}: {difference.what} was {difference.then}, would be {difference.now}")
        same = f"{replayed.decisions} decisions and {replayed.verdicts} verdicts"
        say(f"{name}: {same}, {len(replayed.differences)} of them different")
    return ExitCode.UNFINISHED if replayed.differences else ExitCode.COMPLETE
