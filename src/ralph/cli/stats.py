"""Show statistics of this workspace: attempts, verdicts, reviews, review findings
and the cost of reviews.

A story that took several runs counts once."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace

from ralph.cli.arguments import add_json, add_workspace
from ralph.cli.figures import document, lines
from ralph.cli.output import emit_json, say, warn
from ralph.core.errors import BadData
from ralph.journal.records import read
from ralph.journal.statistics import Tally
from ralph.workspace.runs import chosen_run, chosen_runs

EXAMPLES = """
ralph stats                          all runs of this workspace
ralph stats --run 20260115-0930      one run, by a unique prefix of its ID
ralph stats --json                   for scripts
"""


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("--run", default="", metavar="RUN", help="a run's ID or a unique prefix of it (default: all)")
    add_workspace(parser)
    add_json(parser)


def run(args: Namespace) -> int:
    tally = Tally()
    for path in [chosen_run(args, os.environ, args.run)] if args.run else chosen_runs(args, os.environ):
        try:
            for record in read(path):
                tally.add(record)
        except BadData as error:
            warn(str(error))
    figures = tally.figures()
    if args.json:
        emit_json(document(figures))
    elif not figures.runs:
        say("No runs yet.")
    else:
        for line in lines(figures):
            say(line)
    return 0
