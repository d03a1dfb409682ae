"""List the commands, or explain one of them."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from ralph.cli.main import main, overview, row
from ralph.cli.output import say_raw
from ralph.cli.table import GROUPS, entries

EXAMPLES = """
ralph help                 the commands of daily use
ralph help --all           every command, grouped
ralph help run             the same as `ralph run --help`
"""


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("command", nargs="?", metavar="COMMAND", help="the command to explain")
    parser.add_argument("-a", "--all", action="store_true", help="list every command, grouped")


def run(args: Namespace) -> int:
    if args.command:
        return main([args.command, "--help"])
    say_raw((_all_commands() if args.all else overview()).rstrip("\n"))
    return 0


def _all_commands() -> str:
    lines = ["usage: ralph COMMAND [OPTIONS]", ""]
    for title, commands in GROUPS.items():
        lines += [f"{title}:", *(row(name, command.summary) for name, command in commands.items()), ""]
    return "\n".join([*lines, f"{len(entries())} commands; `ralph COMMAND --help` shows options and examples"])
