"""Stop a run after the current iteration, or now.

With --now the agent is interrupted as by Ctrl-C: its work is saved under
refs/ralph/rescue/ and rolled back, and the attempt does not count. Repeat it to
kill an agent that does not react."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from ralph.cli.orders import configure_orders, give
from ralph.core.control import Verb

EXAMPLES = """
ralph stop                   after the current iteration
ralph stop --now             at once
"""


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("--now", action="store_true", help="interrupt the current iteration")
    configure_orders(parser)


def run(args: Namespace) -> int:
    return give(args, Verb.STOP_NOW if args.now else Verb.STOP)
