"""`ralph help`, `ralph config completion` and `ralph config man`."""

from __future__ import annotations

from argparse import Namespace
from importlib import import_module
from itertools import groupby
from pathlib import Path

from ralph.cli.grammar import read_all
from ralph.cli.main import main, overview, row
from ralph.cli.man import pages
from ralph.cli.output import say, say_raw
from ralph.cli.table import actions, shown
from ralph.host.files import make_folder, write_text


def show_help(args: Namespace) -> int:
    if args.command:
        return main([*args.command, "--help"])
    say_raw((_all_commands() if args.all else overview()).rstrip("\n"))
    return 0


def _all_commands() -> str:
    lines = ["usage: ralph COMMAND [OPTIONS]", ""]
    for title, commands in groupby(shown().items(), key=lambda item: item[1].group):
        lines.append(f"{title}:")
        for name, entry in commands:
            lines.append(row(name, entry.summary))
            if own := actions(name):
                lines.append(row("", f"also: {name} {'|'.join(own)}"))
        lines.append("")
    return "\n".join([*lines, f"{len(shown())} commands; `ralph COMMAND --help` shows options, actions and examples"])


def completion(args: Namespace) -> int:
    say_raw(import_module(f"ralph.cli.shells.{args.shell}").script(read_all()).rstrip("\n"))
    return 0


def man(args: Namespace) -> int:
    folder = make_folder(Path(args.folder).expanduser())
    written = pages(read_all())
    for name, text in written.items():
        write_text(folder / name, text)
    say(f"wrote {len(written)} pages to {folder}")
    return 0
