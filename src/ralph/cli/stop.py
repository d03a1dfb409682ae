"""Stop a run that is at work in another terminal, or in a worktree: when its iteration is over, or now.

With --now the agent is ended as by Ctrl-C: what it has done is saved under refs/ralph/rescue/ and rolled back, and no
attempt is used up. A second time does not wait for the agent to end well."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from ralph.cli.orders import configure_orders, give
from ralph.core.control import Verb

EXAMPLES = """
ralph stop                   when the iteration is over
ralph stop --now             at once
"""


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("--now", action="store_true", help="do not wait for the end of the iteration")
    configure_orders(parser)


def run(args: Namespace) -> int:
    return give(args, Verb.STOP_NOW if args.now else Verb.STOP)
