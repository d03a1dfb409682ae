"""Give failed stories another chance, with all their attempts. What their last attempt ran into is still told.

While a run is under way, the run takes them up before its next iteration. A failed story is also tried again by the
next run when the story, the checks or the settings were changed."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace

from ralph.app.editing import Editor
from ralph.app.retry import listed, retry
from ralph.app.workspace import open_ref
from ralph.cli.arguments import add_json, add_workspace
from ralph.cli.output import emit_json, say
from ralph.core.errors import UsageError
from ralph.core.exit_codes import ExitCode

EXAMPLES = """
ralph retry US-003            this one
ralph retry --all             every story that has failed
"""


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("ids", nargs="*", metavar="ID", help="the stories (default: the one that has failed)")
    parser.add_argument("-a", "--all", action="store_true", help="every story that has failed")
    add_json(parser)
    add_workspace(parser)


def run(args: Namespace) -> int:
    Editor.of(os.environ).refuse_to("retry a story")
    if args.ids and args.all:
        raise UsageError("--all and ids exclude each other", hint="name the stories, or pass --all")
    ref, _ = open_ref(args)
    done = retry(ref, args.ids, os.environ, everything=args.all)
    if args.json:
        emit_json({"stories": done.stories, "queued": done.waits})
    elif not done.stories:
        say("No story has failed.")
    elif done.waits:
        say(f"The run takes up {listed(done.stories)} before its next iteration.")
    else:
        say(f"Open again: {listed(done.stories)}. `ralph run` continues.")
    return ExitCode.COMPLETE
