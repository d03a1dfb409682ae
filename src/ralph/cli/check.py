"""Lint a plan before any money is spent: everything that would stop a run, and what would waste one.

Errors are what the loop would refuse: a file that cannot be read strictly, ids, dependencies, review fields.
Warnings are what costs iterations: vague criteria, stories too large, no check that could prove anything."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from ralph.app.linting import lint_plan
from ralph.app.workspace import open_ref
from ralph.cli.arguments import add_json, add_workspace
from ralph.cli.output import emit_json, note, paint, say, say_raw
from ralph.core.errors import UsageError
from ralph.core.exit_codes import ExitCode
from ralph.core.problems import Problem, Severity
from ralph.core.text import clean

EXAMPLES = """
ralph check                  the plan of this workspace
ralph check path/to/project  the plan of another one
ralph check --strict         warnings count as errors
"""


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("path", nargs="?", metavar="PATH", help="a workspace, or a file or folder in it")
    parser.add_argument("--strict", action="store_true", help="exit 65 on warnings too")
    add_json(parser)
    add_workspace(parser)


def run(args: Namespace) -> int:
    if args.path:
        _point_at(args)
    ref, settings = open_ref(args)
    problems = lint_plan(ref, settings)
    errors = sum(problem.severity is Severity.ERROR for problem in problems)
    if args.json:
        emit_json({"plan": ref.path, "layout": ref.layout, "errors": errors, "problems": problems})
    else:
        _print(problems, ref.root)
        note(f"{ref.path}: {errors} errors, {len(problems) - errors} warnings" if problems else f"{ref.path}: fine")
    return ExitCode.BAD_DATA if errors or (args.strict and problems) else ExitCode.COMPLETE


def _point_at(args: Namespace) -> None:
    """A path may name a workspace, a plan's folder or the plan file itself."""
    from os import environ

    from ralph.app.workspace import Choice, find_plans, find_root

    path = Path(args.path)
    if not path.exists():
        raise UsageError(f"{args.path} does not exist", hint="give a workspace, or a file or folder in it")
    path = path.resolve() if path.is_dir() else path.parent.resolve() / path.name
    start = path if path.is_dir() else path.parent
    root = find_root(start, environ)
    if root is None:
        raise UsageError(f"{args.path} is not in a workspace", hint="`ralph init` starts one")
    args.project_dir = str(root)
    for ref in find_plans(root, Choice()):
        if path in (ref.path, ref.folder) and path != root:
            args.layout = ref.layout
            if ref.layout == "plan.md":
                args.prd = ref.name.removeprefix("PRD-")
            elif ref.folder.parent.name == ".ralph":
                args.feature = ref.name
            return


def _print(problems: list[Problem], root: Path) -> None:
    for problem in problems:
        style = "red" if problem.severity is Severity.ERROR else "yellow"
        where = clean(str(problem.where)).removeprefix(f"{root}/")
        say_raw(f"{where}: {paint(problem.severity.value, style)}[{problem.code}]: {clean(problem.message)}")
        if problem.hint:
            say(f"    {problem.hint}", "dim")
