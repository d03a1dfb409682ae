"""Print exactly what an agent would be told in the next iteration, with an estimate of its tokens."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace

from ralph.app.dry_run import session_of
from ralph.app.launching import Launched
from ralph.app.steps import plan_steps
from ralph.app.workspace import open_ref, store_for
from ralph.cli.arguments import add_json, add_workspace
from ralph.cli.output import emit_json, note, say
from ralph.config.flags import add_options
from ralph.core.errors import UsageError
from ralph.core.moves import Work
from ralph.core.plan import Mode
from ralph.core.select import next_story
from ralph.core.text import estimate_tokens

EXAMPLES = """
ralph prompt                           for the story a run would take next
ralph prompt --story US-003            for this one
ralph prompt --mode review --json      for a reviewer, with the system prompt apart
"""


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("--story", metavar="ID", help="the story (default: the next one)")
    parser.add_argument("--mode", choices=[mode.value for mode in Mode], default="implement", help="default: implement")
    parser.add_argument("--config", metavar="NAME", help="use .ralph/configs/NAME as well")
    add_options(parser, ["prompt"])
    add_json(parser)
    add_workspace(parser)


def run(args: Namespace) -> int:
    ref, settings = open_ref(args)
    plan = store_for(ref, os.environ).load().plan
    mode = Mode(args.mode)
    story = plan.story(args.story) if args.story else next_story(plan)
    if story is None and mode is not Mode.SETUP:
        what = f"there is no story {args.story} in the plan" if args.story else "no story is ready"
        raise UsageError(what, hint="`ralph task list` shows the ids")
    prepared = Launched(ref=ref, settings=settings, plan=plan)
    steps = plan_steps(settings.config, ref.root)
    planned = steps.setup if mode is Mode.SETUP else steps.work
    config = next((dict(step.config) for step in planned if step.kind == "agent"), {})
    work = Work(story.id if story and mode is not Mode.SETUP else "", mode)
    session = session_of(prepared, work, config, os.environ)
    count = {"prompt": estimate_tokens(session.prompt), "system": estimate_tokens(session.system)}
    if args.json:
        emit_json(
            {"story": work.story, "mode": mode, "prompt": session.prompt, "system": session.system, "tokens": count}
        )
        return 0
    if session.system:
        say("--- appended to the system prompt", "dim")
        say(session.system)
        say("--- prompt", "dim")
    say(session.prompt.rstrip("\n"))
    note(f"about {count['prompt']} tokens" + (f" and {count['system']} in the system prompt" if session.system else ""))
    return 0
