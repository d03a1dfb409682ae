"""Resume a paused run. It reads the plan again before it continues."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from ralph.cli.orders import configure_orders, give
from ralph.core.control import Verb

EXAMPLES = """
ralph resume                 the run of this workspace
ralph resume --run 20260115-0930
"""


def configure(parser: ArgumentParser) -> None:
    configure_orders(parser)


def run(args: Namespace) -> int:
    return give(args, Verb.RESUME)
