"""Pause a run after the current iteration.

The run keeps waiting; edit the plan meanwhile if you like. `ralph resume`
continues it. Ctrl-\\ in the terminal of the run does the same."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from ralph.cli.orders import configure_orders, give
from ralph.core.control import Verb

EXAMPLES = """
ralph pause                  the run of this workspace
ralph pause -f user-login    the run of one of several plans
"""


def configure(parser: ArgumentParser) -> None:
    configure_orders(parser)


def run(args: Namespace) -> int:
    return give(args, Verb.PAUSE)
