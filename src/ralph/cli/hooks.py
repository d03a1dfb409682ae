"""Ralph's hooks in a Claude Code client: what they are, and where they are installed.

A run gives them to its own client process and to nothing else; nothing has to be installed for that."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace

from ralph.cli.arguments import Parser
from ralph.cli.output import emit_line

EXAMPLES = """
ralph hooks at-stop      what would keep the agent of this session from stopping
"""


def configure(parser: ArgumentParser) -> None:
    commands = parser.add_subparsers(dest="action", metavar="ACTION", required=True, parser_class=Parser)
    commands.add_parser(
        "at-stop",
        help="what keeps an agent from stopping; asked by the Stop hook",
        description="Print a JSON list of what stands in the way. Empty: the agent may stop.",
        examples="ralph hooks at-stop",
    )


def run(args: Namespace) -> int:
    from ralph.app.stop_rules import problems_at_stop, read_policy

    policy = read_policy(os.environ)
    emit_line(problems_at_stop(policy) if policy else [])
    return 0
