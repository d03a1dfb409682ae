"""Compare a spec with its beads: a step is ticked if and only if its bead is closed.

Beads are read with `br` or `bd`, whichever is on PATH. Exit code 0 if the two
agree, 1 if not. A step without a bead is listed, but is not an error."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace

from ralph.cli.arguments import add_json, add_workspace
from ralph.cli.output import emit_json, note, paint, say_raw
from ralph.core.errors import SetupError, UsageError
from ralph.core.exit_codes import ExitCode
from ralph.core.text import one_line, plural
from ralph.plans.beads import TOOLS, Difference, Kind, compare, find
from ralph.plans.registry import traits
from ralph.workspace.find import OpenPlan, open_plan

EXAMPLES = """
ralph verify-sync            list steps and beads that disagree
ralph verify-sync --json     for scripts
"""


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("--tool", choices=TOOLS, help="the program that reads the beads (default: the first on PATH)")
    add_json(parser)
    add_workspace(parser)


def run(args: Namespace) -> int:
    opened = open_plan(args)
    if not traits(opened.ref.layout).has_tracker:
        raise UsageError(
            f"the steps of a {opened.ref.layout} plan have no beads", hint="this is for plans of the layout spec.md"
        )
    wanted = args.tool or {"auto": "", "off": ""}.get(opened.settings.config.beads, opened.settings.config.beads)
    beads = find(os.environ, opened.root, wanted)
    if beads is None:
        missing = wanted or " nor ".join(TOOLS)
        raise SetupError(
            f"{'no' if wanted else 'neither'} {missing} is on PATH, so there are no beads to compare with",
            hint="a run needs only the spec; to track beads, install br (beads_rust) or bd, then run `br init`",
        )
    statuses = beads.statuses(story.ref for story in opened.plan.stories if story.ref)
    found = compare(opened.plan, statuses)
    wrong = [difference for difference in found if difference.is_contradiction]
    if args.json:
        emit_json(_document(opened, beads.name, found))
    else:
        _print(found, len(opened.plan.stories), len(wrong))
    return ExitCode.UNFINISHED if wrong else ExitCode.COMPLETE


def _document(opened: OpenPlan, tool: str, found: list[Difference]) -> dict[str, object]:
    return {
        "plan": opened.ref.path,
        "tool": tool,
        "agree": not any(difference.is_contradiction for difference in found),
        "differences": [difference for difference in found if difference.is_contradiction],
        "untracked": [difference.step for difference in found if not difference.is_contradiction],
    }


def _print(found: list[Difference], steps: int, wrong: int) -> None:
    wide = max((len(difference.step) for difference in found), default=0)
    for difference in found:
        step = one_line(difference.step)
        style = "yellow" if difference.kind is Kind.UNTRACKED else "red"
        say_raw(f"{paint(f'{step:<{wide}}', style)}  {difference.sentence}")
    untracked = len(found) - wrong
    rest = f", {untracked} without a bead" if untracked else ""
    note(f"{plural(steps, 'step')}, {wrong} of them disagree with their beads{rest}")
