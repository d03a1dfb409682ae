"""Pause a run that is at work in another terminal, or in a worktree.

It rests between iterations and within waits: an agent that is at work finishes its iteration first. The plan may be
edited meanwhile. Ctrl-\\ in the run's own terminal does the same, and a second time lets it go on."""

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
