"""Show which agent and model would work on a story, and the fallbacks.

With routing on, the model depends on how hard the story looks: its text, its
criteria, its failed attempts. `-m`, or a model set for a step, overrides that.
`fallback:` lists what to use when the first choice hits a usage limit, has
spent its budget or keeps failing."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace

from ralph.cli.arguments import add_json, add_workspace
from ralph.cli.output import emit_json, say
from ralph.config.flags import add_options
from ralph.core.errors import UsageError
from ralph.core.select import next_story
from ralph.core.text import one_line
from ralph.run.launch import Launched
from ralph.run.route import Route, route
from ralph.workspace.find import open_ref, store_for
from ralph.workspace.plan_edit import find_story

EXAMPLES = """
ralph route                   for the next story
ralph route US-003            for this story
ralph route US-003 --routing  with routing switched on
"""


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("story", nargs="?", metavar="STORY", help="the ID of the story (default: the next one)")
    parser.add_argument("--config", metavar="NAME", help="also read .ralph/configs/NAME")
    add_options(parser, ["agent.name", "agent.model", "routing.enabled", "fallback"])
    add_json(parser)
    add_workspace(parser)


def run(args: Namespace) -> int:
    ref, settings = open_ref(args)
    prepared = Launched(ref=ref, settings=settings, plan=store_for(ref, os.environ).load().plan)
    story = find_story(prepared.plan, args.story) if args.story else next_story(prepared.plan)
    if story is None:
        raise UsageError("no story is ready", hint="`ralph status` shows what each story waits for; or name a story")
    found = route(prepared, story, os.environ)
    if args.json:
        emit_json(found)
        return 0
    _show(found)
    return 0


def _show(found: Route) -> None:
    say(f"{one_line(found.story, 40)} {one_line(found.title, 80)}", "bold")
    say(f"  {'works':<10} {_who(found.agent, found.model)} ({one_line(found.why, 100)})")
    say(f"  {'looks':<10} {found.complexity.level.value}, {found.points} points")
    for part in found.complexity.parts:
        say(f"  {'':<10} {part.points:+d}  {one_line(part.why, 100)}")
    if not found.routing:
        say(f"  {'routing':<10} is off; it would choose {found.routed_to or 'the client’s own model'}")
    for at, each in enumerate(found.lineup if len(found.lineup) > 1 else ()):
        note = f": not now, {one_line(each.in_the_way, 100)}" if each.in_the_way else ""
        say(f"  {'then' if at else 'first':<10} {_who(each.agent, each.model)}{note}")


def _who(agent: str, model: str) -> str:
    return f"{one_line(agent, 40)}, {one_line(model, 60) if model else 'its own model'}"
