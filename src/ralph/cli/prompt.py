"""Print the prompt of the next session exactly as the agent would get it, with an
estimate of its tokens."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace

from ralph.cli.arguments import add_json, add_workspace
from ralph.cli.output import emit_json, note, say
from ralph.config.flags import add_options
from ralph.core.errors import UsageError
from ralph.core.moves import Work
from ralph.core.plan import Mode
from ralph.core.select import mode_of, next_story
from ralph.core.text import estimate_tokens
from ralph.run.dry_run import next_move, session_of
from ralph.run.launch import Launched
from ralph.session.steps import plan_steps
from ralph.workspace.find import open_ref, store_for
from ralph.workspace.plan_edit import find_story

EXAMPLES = """
ralph prompt                           for the next story
ralph prompt --story US-003            for this story
ralph prompt --mode review --json      for a reviewer, with the system prompt
"""


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("--story", metavar="ID", help="the story (default: the next one)")
    modes = [mode.value for mode in Mode]
    parser.add_argument("--mode", choices=modes, help="the kind of session (default: what the story needs next)")
    parser.add_argument("--config", metavar="NAME", help="also read .ralph/configs/NAME")
    add_options(parser, ["prompt"])
    add_json(parser)
    add_workspace(parser)


def run(args: Namespace) -> int:
    ref, settings = open_ref(args)
    prepared = Launched(ref=ref, settings=settings, plan=store_for(ref, os.environ).load().plan)
    work = _work(prepared, args.story, Mode(args.mode) if args.mode else None)
    steps = plan_steps(settings, ref.root)
    planned = steps.setup if work.mode is Mode.SETUP else steps.work
    config = next((dict(step.config) for step in planned if step.kind == "agent"), {})
    session = session_of(prepared, work, config, os.environ)
    count = {"prompt": estimate_tokens(session.prompt), "system": estimate_tokens(session.system)}
    if args.json:
        emit_json(
            {
                "story": work.story,
                "mode": work.mode,
                "prompt": session.prompt,
                "system": session.system,
                "tokens": count,
            }
        )
        return 0
    if session.system:
        say("--- appended to the system prompt", "dim")
        say(session.system)
        say("--- prompt", "dim")
    say(session.prompt.rstrip("\n"))
    note(f"about {count['prompt']} tokens" + (f" and {count['system']} in the system prompt" if session.system else ""))
    return 0


def _work(prepared: Launched, wanted: str | None, mode: Mode | None) -> Work:
    """The story and mode from the options, or those a run would choose."""
    if mode in (Mode.SETUP, Mode.EXAM):
        return Work("", mode)
    plan, review = prepared.plan, prepared.settings.config.review.enabled
    if wanted is None and mode is None and isinstance(move := next_move(prepared, os.environ), Work):
        return move
    if wanted is not None:
        story = find_story(plan, wanted)
        return Work(story.id, mode or mode_of(story, review=review))
    found = next((s for s in plan.stories if s.is_open and mode is mode_of(s, review=review)), None) or next_story(plan)
    if found is None:
        raise UsageError("no story is ready", hint="`ralph status` shows what each story waits for; --story names one")
    return Work(found.id, mode or mode_of(found, review=review))
