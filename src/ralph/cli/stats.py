"""Show what stories took in this workspace: attempts, verdicts, reviews and what they found, and what reviewing costs.

Everything is read from the journals. A story that is worked on in several runs counts once."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace

from ralph.app.workspace import root_of
from ralph.cli.arguments import add_json
from ralph.cli.figures import document, lines
from ralph.cli.output import emit_json, say, warn
from ralph.core.errors import BadData
from ralph.host.places import workspace_state
from ralph.journal.reading import read
from ralph.journal.runs import find_run, journal_path, list_runs
from ralph.journal.statistics import Tally

EXAMPLES = """
ralph stats                          all runs of this workspace
ralph stats --run 20260115-0930      one that begins so
ralph stats --json                   for scripts, with every figure
"""


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("--run", default="", metavar="RUN", help="a run's id or the beginning of it (default: all)")
    parser.add_argument("-d", "--project-dir", metavar="DIR", help="the workspace (default: found from here upwards)")
    add_json(parser)


def run(args: Namespace) -> int:
    state_folder = workspace_state(root_of(args, os.environ), os.environ)
    runs = [find_run(state_folder, args.run)] if args.run else list_runs(state_folder)
    tally = Tally()
    for name in runs:
        try:
            for record in read(journal_path(state_folder, name)):
                tally.add(record)
        except BadData as error:
            warn(str(error))
    figures = tally.figures()
    if args.json:
        emit_json(document(figures))
    elif not figures.runs:
        say("There has been no run in this workspace yet.")
    else:
        for line in lines(figures):
            say(line)
    return 0
