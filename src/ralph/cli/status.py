"""Show the stories of a plan, their states, a progress bar and the last run."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from ralph.app.workspace import OpenPlan, open_plan
from ralph.cli.arguments import add_json, add_workspace, width
from ralph.cli.output import emit_json, paint, say, say_raw, warn
from ralph.cli.show import as_json, id_width, progress_bar, story_line
from ralph.core.plan import State
from ralph.core.select import next_story, why_nothing_is_ready
from ralph.core.text import one_line

EXAMPLES = """
ralph status                 the plan of this workspace
ralph status -f user-login   one of several
ralph status --json          for scripts
"""
_MOST = 40


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("-a", "--all", action="store_true", help=f"every story, also past the first {_MOST}")
    add_json(parser)
    add_workspace(parser)


def run(args: Namespace) -> int:
    opened = open_plan(args)
    for notice in opened.loaded.notices:
        warn(notice)
    if args.json:
        emit_json(_document(opened))
    else:
        _print(opened, everything=args.all)
    return 0


def _document(opened: OpenPlan) -> dict[str, object]:
    plan = opened.plan
    following = next_story(plan)
    return {
        "workspace": opened.root,
        "layout": opened.ref.layout,
        "plan": opened.ref.path,
        "name": plan.name or opened.ref.name,
        "branch": plan.branch,
        "total": len(plan.stories),
        "counts": {state.value: plan.count(state) for state in State},
        "finished": plan.is_finished,
        "next": following.id if following else None,
        "stories": [as_json(story) for story in plan.stories],
    }


def _print(opened: OpenPlan, everything: bool) -> None:
    plan = opened.plan
    done = plan.count(State.DONE)
    following = next_story(plan)
    name = one_line(plan.name or opened.ref.name, 60)
    say_raw(f"{paint(name, 'bold')}  {paint(str(opened.ref.path.relative_to(opened.root)), 'dim')}")
    bar = progress_bar(done, len(plan.stories))
    say_raw(
        f"{paint(bar, 'green' if plan.is_finished else 'cyan')} {one_line(following.title, 60) if following else ''}"
    )
    say()
    shown = plan.stories if everything else plan.stories[:_MOST]
    for story in shown:
        say_raw(story_line(story, width(), id_width(plan)))
    if len(shown) < len(plan.stories):
        say(f"… and {len(plan.stories) - len(shown)} more (`ralph status --all`)", "dim")
    say()
    if plan.is_finished:
        say("Every story is done.", "green")
    elif following:
        say(f"Next: {following.id}")
    else:
        say(f"Nothing is ready: {why_nothing_is_ready(plan)}", "yellow")
