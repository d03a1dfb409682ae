"""Re-verify every finished story from its proof and its commit, and list which of
them still hold for the current tree, and how well each is proven.

Exit code 0 if all of them hold, 1 otherwise. `ralph verify --final` runs the
checks again."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace

from ralph.cli.arguments import add_json, add_workspace
from ralph.cli.output import emit_json, paint, say, say_raw, warn
from ralph.cli.words import moment
from ralph.core.exit_codes import ExitCode
from ralph.core.text import one_line
from ralph.proof.verify import Audited, Standing, audit
from ralph.workspace.find import find_repo, open_plan

EXAMPLES = """
ralph audit              every finished story
ralph audit --json       for scripts and CI
"""
_STYLES = {
    Standing.HOLDS: ("✓", "green"),
    Standing.LAPSED: ("~", "yellow"),
    Standing.UNPROVEN: ("?", "yellow"),
    Standing.BY_HAND: ("?", "yellow"),
    Standing.LOST: ("✗", "red"),
}


def configure(parser: ArgumentParser) -> None:
    add_json(parser)
    add_workspace(parser)


def run(args: Namespace) -> int:
    opened = open_plan(args)
    found = audit(opened, find_repo(opened.ref, opened.settings, os.environ), os.environ)
    for problem in found.damaged:
        warn(problem)
    if args.json:
        emit_json(found)
        return ExitCode.COMPLETE if found.is_clean else ExitCode.UNFINISHED
    width = max((len(_grade(one)) for one in found.stories), default=0)
    for one in found.stories:
        mark, style = _STYLES[one.standing]
        grade = _grade(one) if one.grade != one.standing.value else ""
        detail = f"  {one_line(one.detail, 100)}" if one.detail else ""
        standing = paint(f"{one.standing.value:<9}", style)
        say_raw(f"{paint(mark, style)} {one_line(one.story):<8} {standing} {grade:<{width}}{detail}".rstrip())
    if not found.stories:
        say("No finished stories.")
    say(f"last full pass: {moment(found.last_pass) if found.last_pass else 'never'}", "dim")
    if not found.is_clean:
        say("`ralph verify --final` runs every check on the current tree", "dim")
    return ExitCode.COMPLETE if found.is_clean else ExitCode.UNFINISHED


def _grade(one: Audited) -> str:
    return f"{one.grade}, in place" if one.where == "in-place" else one.grade
