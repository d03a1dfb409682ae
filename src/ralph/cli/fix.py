"""Turn a bug report into one story with a check that fails now.

An agent looks for the cause and proposes a story and a command that shows the
bug. The command is run at once: if it passes, it proves nothing and the story is
rejected. The story becomes the first of the plan."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace

from ralph.cli.add import prepare, prepare_answer
from ralph.cli.arguments import add_json, add_workspace
from ralph.cli.planning import add_planning_options, caller, held, print_added
from ralph.planning.calls import fix_answer, fix_fault
from ralph.workspace.trust import refuse_inside_loop

EXAMPLES = """
ralph fix "the total is wrong when the cart is empty"
ralph fix report.md --no-input --trust    in CI: run the command unseen
ralph fix --answer story.json             a story written elsewhere, no agent
"""


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("what", nargs="?", metavar="TEXT|FILE", help="the bug report in words, a file, or - for stdin")
    add_json(parser)
    add_planning_options(parser)
    add_workspace(parser)
    parser.set_defaults(command="fix")


def run(args: Namespace) -> int:
    refuse_inside_loop(os.environ, "write its own stories")
    if args.answer is not None:
        text, who, target = prepare_answer(args)
        return held(lambda: fix_answer(target, text, who), args, print_added)
    who = caller(args)
    target, drafts, draft = prepare(args, "fix", "What is wrong?")
    return held(lambda: fix_fault(target, draft, drafts, who), args, print_added)
