"""Summarise the learnings with an agent when they have grown large. The original is
kept beside the summary.

The agent can read everything and change nothing. It must keep each learning or
give a reason for dropping it. Old entries of a progress log are archived."""

from __future__ import annotations

import os
from argparse import SUPPRESS, ArgumentParser, Namespace

from ralph.cli.arguments import add_json, add_workspace
from ralph.cli.output import emit_json, note, say
from ralph.cli.words import plural
from ralph.host.process.table import require_process_control
from ralph.memory.compact import Compacted, compact, deduplicate, is_large, size_of_memory
from ralph.workspace.find import open_ref
from ralph.workspace.trust import ensure_trusted, gather, refuse_inside_loop

EXAMPLES = """
ralph compact                 if it exceeds memory.compact_tokens
ralph compact --force         in any case
ralph compact --no-agent      only remove exact duplicates
"""


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("--force", action="store_true", help="even if it is small")
    parser.add_argument("--no-agent", action="store_true", help="only remove exact duplicates")
    parser.add_argument("--trust", action="store_true", help="trust the commands this workspace defines")
    group = parser.add_argument_group("agent")
    for flags, name, metavar in ((("-m", "--model"), "model", "MODEL"), (("--agent",), "agent", "NAME")):
        key = f"planning.{name}"
        group.add_argument(
            *flags, dest=f"setting:{key}", default=SUPPRESS, metavar=metavar, help=f"the {name} that summarises [{key}]"
        )
    add_json(parser)
    add_workspace(parser)


def run(args: Namespace) -> int:
    refuse_inside_loop(os.environ, "compact the learnings")
    ref, settings = open_ref(args)
    if args.no_agent:
        return _told(args, deduplicate(ref, os.environ))
    if not args.force and not is_large(ref, settings, os.environ):
        most = settings.config.memory.compact_tokens
        size = size_of_memory(ref, os.environ)
        if args.json:
            emit_json({"archive": None, "tokens_before": size, "tokens_after": size})
            return 0
        say(f"about {size:,} tokens, less than {most:,} (memory.compact_tokens); --force compacts anyway")
        return 0
    require_process_control()
    ensure_trusted(ref.root, gather(ref.root, settings, []), os.environ, flag=args.trust, report=note)
    return _told(args, compact(ref, settings, os.environ, note, force=args.force))


def _told(args: Namespace, done: Compacted) -> int:
    if args.json:
        emit_json(done)
        return 0
    if done.archive is None:
        say("Nothing to change.")
        return 0
    say(f"{plural(done.before, 'learning')} → {done.after}, {done.tokens_before:,} tokens → {done.tokens_after:,}")
    say(f"the original is kept in {done.archive}")
    for one in done.dropped:
        say(f"  left out: {one}", "dim")
    return 0
