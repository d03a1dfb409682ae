"""Leave a note for the next session. It appears in the prompt of one iteration.

Use `ralph answer` for something that every later attempt must know."""

from __future__ import annotations

import os
import time
from argparse import ArgumentParser, Namespace
from difflib import get_close_matches
from pathlib import Path

from ralph.cli.arguments import add_workspace
from ralph.cli.output import say
from ralph.core.control import Note
from ralph.core.errors import UsageError
from ralph.core.text import one_line
from ralph.state.places import plan_state
from ralph.workspace import plan_edit as given
from ralph.workspace.control import leave
from ralph.workspace.find import open_plan, open_ref, root_of
from ralph.workspace.plan_edit import find_story
from ralph.workspace.runs import ActiveRun, active_runs, choice_of, the_active_run
from ralph.workspace.trust import refuse_inside_loop

EXAMPLES = """
ralph note "Use the date library that is already there"
ralph note --story US-003 "The fixture is in tests/data"
"""


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("text", metavar="TEXT", help="the note")
    parser.add_argument("--story", metavar="ID", default="", help="for the next iteration on this story")
    parser.add_argument("--run", metavar="RUN", default="", help="for this run, if several are in progress")
    add_workspace(parser)


def run(args: Namespace) -> int:
    refuse_inside_loop(os.environ, "leave notes for itself")
    text = given.prose("the note", args.text)
    if not text:
        raise UsageError("the note is empty", hint='`ralph note "…"`')
    root = root_of(args, os.environ)
    at_work = None
    if args.run or active_runs(root, choice_of(args), os.environ):
        at_work = the_active_run(root, choice_of(args), args.run, os.environ)
    state = _of_run(at_work, args.story) if at_work else _of_plan(args)
    leave(state, Note(text=text, at=time.time(), story=args.story))
    whose = f"the next iteration on {args.story}" if args.story else "the next iteration"
    say(f"saved for {whose} of {f'run {at_work.run}' if at_work else 'the next run'}")
    return 0


def _of_run(at_work: ActiveRun, story: str) -> Path:
    known = at_work.so_far().stories
    if story and known and story not in known:
        close = get_close_matches(story, known, 1)
        hint = f"did you mean {one_line(close[0])}?" if close else "`ralph status` lists the stories"
        raise UsageError(f"the plan of run {at_work.run} has no story {one_line(repr(story), 60)}", hint=hint)
    return at_work.state


def _of_plan(args: Namespace) -> Path:
    if args.story:
        opened = open_plan(args)
        find_story(opened.plan, args.story)
        return plan_state(opened.ref, os.environ)
    return plan_state(open_ref(args)[0], os.environ)
