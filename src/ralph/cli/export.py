"""Write the plan in another layout, to stdout or to a new workspace. This workspace
is not changed.

Lists every field that the other layout cannot hold."""

from __future__ import annotations

import time
from argparse import ArgumentParser, Namespace
from pathlib import Path

from ralph.cli.arguments import add_workspace
from ralph.cli.losing import show_losses
from ralph.cli.output import emit_bytes, emit_json, note, say_raw, warn
from ralph.cli.show import as_json
from ralph.cli.words import plural
from ralph.core.errors import UsageError
from ralph.core.plan import Plan
from ralph.core.text import one_line
from ralph.importing.convert import Exported, export_text, export_to
from ralph.plans.registry import LAYOUTS
from ralph.workspace.find import OpenPlan, open_plan

EXAMPLES = """
ralph export --layout plan.md                     as Markdown, to stdout
ralph export --layout feature --to ../other       to a new workspace
ralph export --json                               a list of the stories
ralph export --markdown > stories.md              a table
"""


def configure(parser: ArgumentParser) -> None:
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--layout", dest="target", metavar="LAYOUT", help=", ".join(LAYOUTS.built_in()))
    what.add_argument("--json", action="store_true", help="a JSON list of the stories")
    what.add_argument("--markdown", action="store_true", help="a Markdown table of the stories")
    parser.add_argument("--to", default="-", metavar="DIR", help="the folder of a new workspace (default: -, stdout)")
    add_workspace(parser, layout="--from")


def run(args: Namespace) -> int:
    opened = open_plan(args)
    for notice in opened.loaded.notices:
        warn(notice)
    if not args.target:
        return _list(opened, args)
    if args.to == "-":
        done = export_text(opened, args.target, time.time())
        emit_bytes(done.source)
    else:
        done = export_to(opened, args.target, Path(args.to), time.time())
        _show(done)
    show_losses(done.losses)
    return 0


def _list(opened: OpenPlan, args: Namespace) -> int:
    if args.to != "-":
        raise UsageError("--to goes with --layout", hint="redirect the output into a file instead")
    if args.json:
        emit_json([as_json(story, opened.loaded.sidecar.get(story.id).why or "") for story in opened.plan.stories])
    else:
        say_raw(table(opened.plan))
    return 0


def table(plan: Plan) -> str:
    rows = ["| id | title | state | depends on |", "|---|---|---|---|"]
    for story in plan.stories:
        cells = (story.id, story.title, story.state.value.replace("_", " "), ", ".join(story.depends_on))
        rows.append(
            "| " + " | ".join(one_line(cell).replace("\\", "\\\\").replace("|", "\\|") for cell in cells) + " |"
        )
    return "\n".join(rows)


def _show(done: Exported) -> None:
    assert done.ref is not None
    for path in done.made:
        say_raw(f"  made  {one_line(path)}")
    note(f"{done.ref.path}: {plural(len(done.ids), 'story')}; nothing in this workspace was changed")
