"""Give failed stories another chance, with a full set of attempts. The prompt still reports the last failure.

A run in progress retries them before its next iteration. The next run also retries a failed story if the story, the
checks or the settings have changed."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace

from ralph.cli.arguments import add_json, add_workspace
from ralph.cli.output import emit_json, say
from ralph.core.errors import UsageError
from ralph.core.exit_codes import ExitCode
from ralph.workspace.find import open_ref
from ralph.workspace.plan_edit import Editor
from ralph.workspace.retry import listed, retry

EXAMPLES = """
ralph retry US-003            one story
ralph retry --all             every failed story
"""


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("ids", nargs="*", metavar="ID", help="the stories (default: the only failed one)")
    parser.add_argument("-a", "--all", action="store_true", help="every failed story")
    add_json(parser)
    add_workspace(parser)


def run(args: Namespace) -> int:
    Editor.of(os.environ).refuse_to("retry a story")
    if args.ids and args.all:
        raise UsageError("--all and story IDs exclude each other", hint="name the stories, or pass --all")
    ref, _ = open_ref(args)
    done = retry(ref, args.ids, os.environ, everything=args.all)
    if args.json:
        emit_json({"stories": done.stories, "queued": done.waits})
    elif not done.stories:
        say("No failed stories.")
    elif done.waits:
        say(f"The run retries {listed(done.stories)} before its next iteration.")
    else:
        say(f"Reopened {listed(done.stories)}; `ralph run` continues.")
    return ExitCode.COMPLETE
