"""Replay the decisions of a recorded run and list those that would differ today.

The same journal gives the same decisions, unless Ralph itself has changed."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace

from ralph.cli.arguments import add_json, add_workspace
from ralph.cli.output import emit_json, say
from ralph.core.exit_codes import ExitCode
from ralph.core.text import plural
from ralph.journal.records import read
from ralph.run.replay import replay
from ralph.workspace.runs import chosen_run

EXAMPLES = """
ralph replay                 the last run
ralph replay 20260115-0930   a run by a unique prefix of its ID
"""


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("run", nargs="?", default="", metavar="RUN", help="a run's ID or a unique prefix of it")
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
        same = f"{plural(replayed.decisions, 'decision')} and {plural(replayed.verdicts, 'verdict')}"
        say(f"{name}: {same}, {len(replayed.differences)} differ")
    return ExitCode.UNFINISHED if replayed.differences else ExitCode.COMPLETE
