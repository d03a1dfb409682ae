"""Build a PRD: `ralph run` for the plan in .ralph/PRD-N/, with the arguments and variables of the loop it comes from.

MAX_ITERATIONS, PRD_NUMBER, TIMEOUT_AGENT (seconds) and MAX_ALLOWED_ITERATIONS are read from the environment."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from ralph.cli import run as run_command
from ralph.config.keys import BUILD_VARIABLES
from ralph.core.errors import UsageError

EXAMPLES = """
ralph build 10 --prd 1             ten iterations on .ralph/PRD-1/
ralph build --prd 2 --dry-run      what would happen
MAX_ITERATIONS=5 PRD_NUMBER=3 ralph build
"""


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("iterations", nargs="?", metavar="N", help="most iterations of this run")
    run_command.configure(parser)


def run(args: Namespace) -> int:
    if args.iterations is not None:
        if not args.iterations.isascii() or not args.iterations.isdigit() or int(args.iterations) < 1:
            raise UsageError(f"{args.iterations!r} is no number of iterations", hint="e.g. `ralph build 10 --prd 1`")
        vars(args).setdefault("setting:max_iterations", int(args.iterations))
    if args.layout is None:
        args.layout = "plan.md"
    return run_command.run(args, extra_env=dict(BUILD_VARIABLES))
