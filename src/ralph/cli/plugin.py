"""Write a Claude Code plugin with Ralph's hooks and the commands /ralph-plan,
/ralph-setup, /ralph-status and /ralph-review. Its folder is also a marketplace.

`ralph run` does not need it."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from pathlib import Path

from ralph.cli.arguments import Parser, add_json
from ralph.cli.output import emit_json, note, say
from ralph.core.text import plural

EXAMPLES = """
ralph plugin write ~/ralph-plugin
ralph plugin write ~/ralph-plugin --force    also replace edited files
"""


def configure(parser: ArgumentParser) -> None:
    commands = parser.add_subparsers(dest="action", metavar="ACTION", required=True, parser_class=Parser)
    write = commands.add_parser(
        "write",
        help="write the plugin to a folder",
        description="Write the plugin to a folder. Files that Ralph did not write are never replaced.",
        examples="ralph plugin write ~/ralph-plugin",
    )
    write.add_argument("folder", metavar="DIR", type=Path, help="the folder; created if needed")
    write.add_argument("--force", action="store_true", help="also replace files that were edited")
    add_json(write)


def run(args: Namespace) -> int:
    from ralph.session.plugin import NAME, write_plugin
    from ralph.workspace.trust import refuse_inside_loop

    refuse_inside_loop(os.environ, "write a plugin")
    folder = Path(os.path.abspath(args.folder))  # noqa: PTH100 - a link to a folder is kept as it is
    done = write_plugin(folder, force=args.force)
    if args.json:
        emit_json(done)
        return 0
    for name in done.files:
        say(f"  {name}")
    say(f"{folder}: " + (f"{plural(len(done.files), 'file')} written" if done.files else "up to date"))
    note(f"try it: claude --plugin-dir {folder}")
    note(f"install it: claude plugin marketplace add {folder} && claude plugin install {NAME}@{NAME}")
    return 0
