"""Start a plan in any of the five layouts: the plan, requirements, prompts, settings and .gitignore lines.

Finds the commands the project tests, lints and type-checks itself with, and proposes them as checks. What is there
already is kept. With --from, an agent derives the stories from a page with requirements, as `ralph plan` does."""

from __future__ import annotations

import os
import time
from argparse import ArgumentParser, Namespace
from pathlib import Path

from ralph.app.scaffold import DEFAULT_LAYOUT, Request, Started, choose_root, start_plan
from ralph.cli.arguments import add_json
from ralph.cli.output import emit_json, note, paint, say, say_raw, warn
from ralph.core.errors import UsageError
from ralph.core.text import one_line
from ralph.plans.registry import all_layouts, layout

EXAMPLES = """
ralph init user-login                 .ralph/user-login/ with tasks.json, the default layout
ralph init --layout plan.md           .ralph/PRD-1/, or the next free number
ralph init --ralph-dir ralph          tasks.json in ralph/ instead
ralph init checkout --layout feature --tdd
ralph init --from requirements.md --layout steps --no-input
"""


def configure(parser: ArgumentParser) -> None:
    layouts = "\n".join(f"  {known.NAME:<11} {known.TITLE}" for known in all_layouts())
    parser.description = f"{parser.description}\n\nlayouts:\n{layouts}"
    parser.add_argument("name", nargs="?", default="", metavar="NAME", help="the feature, or the number of the PRD")
    parser.add_argument("-d", "--project-dir", metavar="DIR", help="the project (default: the one around here)")
    parser.add_argument("--layout", default=DEFAULT_LAYOUT, metavar="LAYOUT", help=f"default: {DEFAULT_LAYOUT}")
    parser.add_argument("--ralph-dir", default="", metavar="DIR", help="a folder of its own for tasks.json")
    parser.add_argument("--tdd", action="store_true", help="a prompt that asks for tests first (layout feature)")
    parser.add_argument("--no-checks", action="store_true", help="do not look for the project's commands")
    parser.add_argument(
        "--force", action="store_true", help="write fresh files; the old ones stay beside them as *.bak-…"
    )
    add_json(parser)
    planned = parser.add_argument_group("with an agent")
    planned.add_argument("--from", dest="source", metavar="FILE", help="requirements to derive the stories from")
    planned.add_argument("-m", "--model", metavar="MODEL", help="the model that plans [planning.model]")
    planned.add_argument("--no-input", action="store_true", help="ask nothing; what has findings is not written")
    planned.add_argument("--trust", action="store_true", help="agree to the commands of the workspace and of the plan")


def run(args: Namespace) -> int:
    if args.source is not None:
        return _plan(args)
    if args.model is not None or args.no_input or args.trust:
        raise UsageError("--model, --no-input and --trust belong to --from", hint="give requirements: --from FILE")
    started = start_plan(
        Request(
            root=choose_root(args.project_dir, Path.cwd(), os.environ),
            layout=args.layout,
            name=args.name,
            ralph_dir=args.ralph_dir,
            force=args.force,
            checks=not args.no_checks,
            tdd=args.tdd,
            now=time.time(),
        ),
        os.environ,
    )
    for warning in started.warnings:
        warn(warning)
    if args.json:
        emit_json(_as_json(started))
    else:
        show_started(started, with_checks=not args.no_checks)
    return 0


def _plan(args: Namespace) -> int:
    """`ralph plan FILE`, for a plan that is not there yet."""
    from ralph.cli import plan
    from ralph.cli.arguments import Parser

    if args.force or args.no_checks or args.tdd:
        raise UsageError("--force, --no-checks and --tdd do not go with --from", hint="leave them out")
    if not os.path.lexists(args.source):
        raise UsageError(f"there is no file {one_line(args.source, 80)}", hint="give a page with requirements")
    words = [str(args.source), "--layout", args.layout, "--feature", args.name, "--ralph-dir", args.ralph_dir]
    words += ["-d", args.project_dir] if args.project_dir is not None else []
    words += ["--model", args.model] if args.model is not None else []
    words += [flag for flag in ("--no-input", "--trust", "--json") if getattr(args, flag[2:].replace("-", "_"))]
    parser = Parser(prog="ralph init")
    plan.configure(parser)
    return plan.run(parser.parse_args(words))


def show_started(started: Started, *, with_checks: bool = True, has_stories: bool = False) -> None:
    ref, placed = started.ref, started.placed
    say_raw(paint(f"{one_line(str(ref.root))}: {ref.layout}", "bold"))
    for word, style, paths in (
        ("made", "green", placed.made),
        ("extended", "green", [path for path in placed.replaced if path == ".gitignore"]),
        ("replaced", "yellow", [path for path in placed.replaced if path != ".gitignore"]),
        ("kept", "dim", (*placed.kept, *placed.same)),
    ):
        for path in paths:
            say_raw(f"  {paint(f'{word:<9}', style)}{one_line(path)}")
    for path in placed.backups:
        say(f"  the old one is kept as {path}")
    if not placed.touched:
        note("everything was there already; --force writes fresh files and keeps the old ones beside them")
    if with_checks:
        _show_checks(started)
    _show_next(started, has_stories)


def _show_checks(started: Started) -> None:
    if not started.checks and not started.checks_in:
        return
    if not started.checks:
        note("no check was found; without one nothing can be proven: name the project's tests", "yellow")
        return
    where = started.checks_in
    say()
    say(f"checks, now in {where}:" if where else "also found; add what you want to the checks:", "bold")
    width = max(len(check.name) for check in started.checks)
    for check in started.checks:
        say(f"  {check.name:<{width}}  {check.line}  ({check.why}: {check.file})")


def _show_next(started: Started, has_stories: bool) -> None:
    ref = started.ref
    where = layout(ref.layout).locations(ref)
    documents = (
        (where.requirements, "what they are for"),
        (where.specs, "the details"),
        (where.readme, "where to look things up"),
    )
    also = next((f", and {what} into {path.relative_to(ref.root)}" for path, what in documents if path), "")
    say()
    say("next:", "bold")
    here = ref.path.relative_to(ref.root)
    steps = [f"look at {here} once more" if has_stories else f"write your stories into {here}{also}"]
    if not started.is_repository:
        steps.append("git init: a run needs a git repository, and this is none yet")
    steps += ["ralph check     is the plan fit to be run?"]
    if started.placed.touched:
        steps.append("git add -A && git commit     a run starts from what is committed")
    steps += ["ralph run       work through it"]
    for number, step in enumerate(steps, 1):
        say(f"  {number}. {step}")


def _as_json(started: Started) -> dict[str, object]:
    ref = started.ref
    return {
        "root": ref.root,
        "layout": ref.layout,
        "name": ref.name,
        "plan": ref.path,
        "made": started.placed.made,
        "kept": (*started.placed.kept, *started.placed.same),
        "replaced": started.placed.replaced,
        "backups": started.placed.backups,
        "checks": started.checks,
        "checks_in": started.checks_in,
        "ignored": started.ignored,
        "is_repository": started.is_repository,
        "warnings": started.warnings,
    }
