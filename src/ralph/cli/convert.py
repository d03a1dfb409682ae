"""Convert the plan of this workspace to another layout. The old plan is archived.

Fields without a place in the new layout (reviews, attempts, a failed state) are
kept in the state folder. Lists everything that is lost or changed."""

from __future__ import annotations

import os
import time
from argparse import ArgumentParser, Namespace
from pathlib import Path

from ralph.archive import commit as archive_commit
from ralph.archive.archive import Dates
from ralph.cli.arguments import add_json, add_workspace
from ralph.cli.losing import show_losses
from ralph.cli.output import emit_json, note, say, warn
from ralph.importing.convert import Converted, convert
from ralph.plans.registry import LAYOUTS
from ralph.workspace.find import open_plan

EXAMPLES = """
ralph convert --layout tasks.json --dry-run       show what would be lost
ralph convert --layout plan.md                    .ralph/PRD-1/ or the next number
ralph convert --layout feature --name checkout    under another name
"""


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("--layout", dest="target", required=True, metavar="LAYOUT", help=", ".join(LAYOUTS.built_in()))
    parser.add_argument("--name", default="", metavar="NAME", help="the name of the new plan (default: the old name)")
    parser.add_argument("--dry-run", action="store_true", help="show what would be lost; write nothing")
    add_json(parser)
    add_workspace(parser, layout="--from")


def run(args: Namespace) -> int:
    opened = open_plan(args)
    for notice in opened.loaded.notices:
        warn(notice)
    now = time.time()
    repo = archive_commit.repository(opened.root, os.environ)
    first, last = archive_commit.first_and_last_change(repo, opened.ref.path) if repo else ("", "")
    dates = Dates(first, last, time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now)))
    done = convert(opened, args.target, args.name, dates, now=now, env=os.environ, dry=args.dry_run)
    for warning in done.warnings:
        warn(warning)
    if args.json:
        emit_json(_as_json(done))
    else:
        _show(done)
    return 0


def _show(done: Converted) -> None:
    root = done.new.root
    would = "would become" if done.archive is None else "is now"
    say(f"{done.old.path.relative_to(root)} {would} {done.new.path.relative_to(root)}", "bold")
    for path in done.placed.touched:
        say(f"  made     {path}")
    for source in done.removed:
        say(f"  removed  {source.relative_to(root)}")
    if done.archive is not None:
        say(f"  archive  {done.archive.relative_to(root)}")
    for source in done.archived_only:
        note(f"{source.relative_to(root)} has no place in {done.new.layout}; it is in the archive")
    show_losses((*done.losses, *done.beside))
    if done.archive is None:
        note("nothing was written: --dry-run")
    else:
        note("next: `ralph check`, then commit the plan; a run starts from what is committed")


def _as_json(done: Converted) -> dict[str, object]:
    root = done.new.root

    def near(path: Path) -> str:
        return path.relative_to(root).as_posix()

    return {
        "root": root,
        "old": {"layout": done.old.layout, "plan": near(done.old.path)},
        "new": {"layout": done.new.layout, "plan": near(done.new.path)},
        "archive": near(done.archive) if done.archive else None,
        "ids": done.ids,
        "losses": done.losses,
        "beside": done.beside,
        "made": done.placed.touched,
        "removed": [near(path) for path in done.removed],
        "archived_only": [near(path) for path in done.archived_only],
        "warnings": done.warnings,
    }
