"""Run one numbered PRD, .ralph/PRD-N/. Takes every option of `ralph run`.

Also reads the variables MAX_ITERATIONS, MAX_ALLOWED_ITERATIONS, PRD_NUMBER and
TIMEOUT_AGENT (in seconds)."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from ralph.cli import run as run_command
from ralph.config.keys import BUILD_VARIABLES
from ralph.core.errors import UsageError

EXAMPLES = """
ralph build 10 --prd 1             ten iterations on .ralph/PRD-1/
ralph build --prd 2 --dry-run      show what would happen
MAX_ITERATIONS=5 PRD_NUMBER=3 ralph build
"""


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("iterations", nargs="?", metavar="N", help="the maximum number of iterations")
    run_command.configure(parser)


def run(args: Namespace) -> int:
    if args.iterations is not None:
        if not args.iterations.isascii() or not args.iterations.isdigit() or int(args.iterations) < 1:
            raise UsageError(f"{args.iterations!r} is not a number of iterations", hint="e.g. `ralph build 10 --prd 1`")
        vars(args).setdefault("setting:max_iterations", int(args.iterations))
    if args.layout is None:
        args.layout = "plan.md"
    return run_command.run(args, extra_env=dict(BUILD_VARIABLES))
