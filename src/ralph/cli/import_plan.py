"""Import stories from GitHub issues, a Markdown checklist, beads, fix_plan.md,
docs/plans/*.md, or a plan in any of Ralph's layouts.

They are added to the end of an existing plan, or start a new one. What was
imported before is skipped. Finished items stay finished, but unproven."""

from __future__ import annotations

import os
import sys
import time
from argparse import ArgumentParser, Namespace
from pathlib import Path

from ralph.cli.arguments import add_json, add_new_plan, layout_and_name
from ralph.cli.output import emit_json, note, paint, say, say_raw, warn
from ralph.cli.show import as_json, line_width, story_line
from ralph.cli.words import plural
from ralph.core.problems import Problem, Severity
from ralph.core.text import one_line
from ralph.importing.imports import Imported, Wish, import_stories
from ralph.importing.kinds import TITLES, names
from ralph.importing.source_files import gather
from ralph.importing.stories import Done
from ralph.setup.scaffold import choose_root

EXAMPLES = """
ralph import TODO.md --dry-run                    show what would be imported
gh issue list --json number,title,body,labels,state,url | ralph import -
ralph import .beads/issues.jsonl --layout spec.md
ralph import docs/plans --into checkout           every plan in the folder
ralph import @fix_plan.md --done skip             without finished items
"""

_SHOWN = 20


def configure(parser: ArgumentParser) -> None:
    kinds = "\n".join(f"  {name:<10} {title}" for name, title in TITLES.items())
    parser.description = f"{parser.description}\n\nkinds:\n{kinds}\n  or any layout of Ralph"
    parser.add_argument("source", metavar="FILE|FOLDER|-", help="what to import; - reads stdin")
    parser.add_argument(
        "--from",
        dest="kind",
        default="",
        choices=names(),
        metavar="KIND",
        help="the kind of source (default: detected)",
    )
    parser.add_argument("--append", action="store_true", help="only add to an existing plan")
    parser.add_argument(
        "--done",
        default="keep",
        choices=[one.value for one in Done],
        help="what to do with finished items (default: keep)",
    )
    parser.add_argument("--again", action="store_true", help="also import what was imported and removed before")
    parser.add_argument("--dry-run", action="store_true", help="show stories and problems; write nothing")
    add_json(parser)
    add_new_plan(parser)
    parser.add_argument("--into", dest="feature", metavar="NAME", help="the same as --feature")


def run(args: Namespace) -> int:
    layout, name = layout_and_name(args)
    done = import_stories(
        Wish(
            root=choose_root(args.project_dir, Path.cwd(), os.environ),
            sources=gather(args.source, sys.stdin.buffer.read),
            kind=args.kind,
            layout=layout,
            into=name,
            ralph_dir=args.ralph_dir or "",
            append=args.append,
            done=Done(args.done),
            again=args.again,
            dry=args.dry_run,
            now=time.time(),
        ),
        os.environ,
    )
    for warning in done.warnings:
        warn(warning)
    if args.json:
        emit_json(_as_json(done, args.dry_run))
    else:
        _show(done, args.dry_run)
    return 0


def _show(done: Imported, dry: bool) -> None:
    room = line_width()
    indent = max((len(one_line(story.id)) for story in done.stories), default=0)
    for story in done.stories:
        say_raw(story_line(story, room, min(indent, 16)))
    _show_problems(done.problems)
    plan = done.ref.path.relative_to(done.ref.root)
    _show_left_out(done)
    if not done.stories:
        note("nothing new to import; nothing was written")
        return
    count = plural(len(done.stories), "story")
    how = "would start" if dry else "started"
    if not done.is_new:
        how = "would be added to" if dry else "added to"
    note(f"{', '.join(done.kinds)}: {count} {how} {plan}" + ("; nothing was written: --dry-run" if dry else ""), "bold")
    if dry:
        return
    for path in done.made:
        note(f"  made  {path}")
    if done.names_commands:
        note("some of them bring commands; `ralph trust` shows them and asks before they run")
    note("next: `ralph check`, then commit the plan; a run starts from what is committed")


def _show_left_out(done: Imported) -> None:
    there = [one_line(known.story, 40) for known in done.skipped if known.is_there]
    gone = [f"{one_line(k.story, 40)} ({one_line(k.key, 60)})" for k in done.skipped if not k.is_there]
    if there:
        note(f"imported before: {_listed(there)}")
    if gone:
        note(f"imported before, no longer in the plan: {_listed(gone)}; --again imports them again")
    if left := done.done_left_out - len(gone):
        note(f"skipped, already done: {left}")


def _listed(words: list[str]) -> str:
    return ", ".join(words[:_SHOWN]) + (" …" if words[_SHOWN:] else "")


def _show_problems(problems: tuple[Problem, ...]) -> None:
    for problem in problems[:_SHOWN]:
        style = "red" if problem.severity is Severity.ERROR else "yellow"
        where = one_line(str(problem.where).removeprefix(f"{Path.cwd()}{os.sep}"))
        word = paint(problem.severity.value, style)
        say_raw(f"{where}{': ' if where else ''}{word}[{problem.code}]: {one_line(problem.message)}")
        if problem.hint:
            say(f"    {one_line(problem.hint)}", "dim")
    more = len(problems) - _SHOWN
    if more > 0:
        say(f"… and {plural(more, 'more problem')}; `ralph check` lists those that remain", "dim")


def _as_json(done: Imported, dry: bool) -> dict[str, object]:
    return {
        "plan": done.ref.path,
        "layout": done.ref.layout,
        "new": done.is_new,
        "written": bool(done.stories) and not dry,
        "kinds": done.kinds,
        "stories": [as_json(story) for story in done.stories],
        "skipped": done.skipped,
        "done_left_out": done.done_left_out,
        "problems": done.problems,
        "made": done.made,
        "names_commands": done.names_commands,
        "warnings": done.warnings,
    }
