"""Turn a request into new stories: an agent reads the code and proposes them.

During a run, the stories are taken in before the next iteration. In the layout
`steps`, finished tasks move to .ralph/prd_archive.json first."""

from __future__ import annotations

import os
import time
from argparse import ArgumentParser, Namespace

from ralph.cli.arguments import add_json, add_workspace
from ralph.cli.planning import add_planning_options, answer_text, caller, draft_for, held, print_added, words
from ralph.cli.which_plan import working_ref
from ralph.planning.calls import Caller, add_answer, add_work
from ralph.planning.dialogue import Draft, Drafts
from ralph.planning.target import Target, plan_target
from ralph.workspace.find import open_ref
from ralph.workspace.trust import refuse_inside_loop

EXAMPLES = """
ralph add "export orders as CSV"
ralph add work.md --no-input              in CI: no questions
ralph add - < request.md                  from stdin
ralph add "dark mode" -f user-settings    to the plan of this feature
ralph add --answer stories.json           stories written elsewhere, no agent
"""


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("what", nargs="?", metavar="TEXT|FILE", help="the request in words, a file, or - for stdin")
    parser.add_argument("--keep-done", action="store_true", help="keep finished tasks in the plan")
    add_json(parser)
    add_planning_options(parser)
    add_workspace(parser)
    parser.set_defaults(command="add")


def run(args: Namespace) -> int:
    refuse_inside_loop(os.environ, "plan its own work")
    if args.answer is not None:
        text, who, target = prepare_answer(args)
        return held(lambda: add_answer(target, text, who, archive=not args.keep_done), args, print_added)
    who = caller(args)
    target, drafts, draft = prepare(args, "add", "What should be added?")
    return held(lambda: add_work(target, draft, drafts, who, archive=not args.keep_done), args, print_added)


def prepare_answer(args: Namespace) -> tuple[str, Caller, Target]:
    """The stories of `--answer`, and the plan they are added to."""
    text, who = answer_text(args), caller(args)
    ref, settings = open_ref(args)
    return text, who, plan_target(working_ref(args, ref), settings, time.time(), os.environ)


def prepare(args: Namespace, kind: str, question: str) -> tuple[Target, Drafts, Draft]:
    """The selected plan, and the request: from this call or from an interrupted draft."""
    idea, source, text = words(args.what)
    ref, settings = open_ref(args)
    ref = working_ref(args, ref)
    drafts = Drafts(ref.root, kind, os.environ)
    given = Draft(plan=ref.path.relative_to(ref.root).as_posix(), idea=idea or text, source=source)
    draft = draft_for(args, drafts, given, question)
    return plan_target(ref, settings, time.time(), os.environ), drafts, draft
