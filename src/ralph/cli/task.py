"""List, show, add and change the stories of a plan, in any layout. Only legal changes are made, and a change
touches only the bytes that say it.

Called by an agent inside a run, `done` is a claim: in a plan with review it submits the story for review."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from typing import Any, cast

from ralph.app.editing import change_state, find_story, finish, is_agent, new_story, reopen
from ralph.app.workspace import OpenPlan, open_plan
from ralph.cli.arguments import Parser, add_json, add_workspace, width
from ralph.cli.output import emit_json, paint, say, say_raw, warn
from ralph.cli.show import as_json, id_width, story_line
from ralph.core.changes import AddStory, Change, SetFields
from ralph.core.errors import UsageError
from ralph.core.exit_codes import ExitCode
from ralph.core.plan import State, Story
from ralph.core.select import next_story, why_nothing_is_ready
from ralph.core.surgery import move, split
from ralph.core.text import clean, one_line

EXAMPLES = """
ralph task list --state todo
ralph task show US-003
ralph task add "Log in with a passkey" --criterion "POST /passkey answers 201" --after US-003
ralph task done US-003 --note "passkeys work, see tests/test_passkey.py"
"""


def configure(parser: ArgumentParser) -> None:
    commands = parser.add_subparsers(dest="action", metavar="ACTION", required=True, parser_class=Parser)
    states = [state.value for state in State]

    one = _command(commands, "list", "the stories, one a line", "ralph task list --state failed")
    one.add_argument("--state", choices=states, help="only the stories in this state")
    one.add_argument("--ids", action="store_true", help="only the ids")

    one = _command(commands, "show", "everything about one story", "ralph task show US-001")
    one.add_argument("id", metavar="ID")

    _command(commands, "next", "the story a run would take next", "ralph task next --json")

    one = _command(commands, "add", "a new story with a fresh id", 'ralph task add "Log in" --criterion "GET / is 200"')
    one.add_argument("title", metavar="TITLE")
    one.add_argument("--id", dest="new_id", metavar="ID", default="", help="the id (default: the next free one)")
    one.add_argument("--after", metavar="ID", help="put it after this story (default: at the end)")
    _fields(one)

    one = _command(commands, "set", "change fields of a story", "ralph task set US-001 --priority 1 --state blocked")
    one.add_argument("id", metavar="ID")
    one.add_argument("--title", metavar="TEXT")
    one.add_argument("--state", choices=states)
    one.add_argument("--notes", metavar="TEXT")
    one.add_argument("--force", action="store_true", help="even if it depends on open stories")
    _fields(one)

    one = _command(commands, "done", "mark a story done", 'ralph task done US-001 --note "what was done"')
    one.add_argument("id", metavar="ID")
    one.add_argument("--note", metavar="TEXT", default="", help="what was done, kept in the story's notes")
    one.add_argument("--force", action="store_true", help="even if it depends on open stories")

    one = _command(commands, "reopen", "a done or failed story is to be done again", "ralph task reopen US-001")
    one.add_argument("id", metavar="ID")

    one = _command(commands, "split", "cut a story into parts", 'ralph task split US-003 "The API" "The page"')
    one.add_argument("id", metavar="ID")
    one.add_argument("titles", nargs="+", metavar="TITLE", help="one title for each part, two or more")

    one = _command(commands, "move", "change the order", "ralph task move US-005 --before US-002")
    one.add_argument("id", metavar="ID")
    where = one.add_mutually_exclusive_group(required=True)
    where.add_argument("--before", metavar="ID")
    where.add_argument("--after", metavar="ID")
    where.add_argument("--first", action="store_true")
    where.add_argument("--last", action="store_true")


def _command(commands: Any, name: str, summary: str, example: str) -> ArgumentParser:
    parser = cast(ArgumentParser, commands.add_parser(name, help=summary, description=summary, examples=example))
    add_json(parser)
    add_workspace(parser)
    return parser


def _fields(parser: ArgumentParser) -> None:
    parser.add_argument("--description", metavar="TEXT")
    parser.add_argument("--criterion", dest="criteria", action="append", metavar="TEXT", help="repeat for several")
    parser.add_argument("--priority", type=float, metavar="N", help="1 is the highest")
    parser.add_argument("--depends-on", action="append", metavar="ID", help="repeat for several")
    parser.add_argument("--verify", action="append", metavar="COMMAND", help="a command that proves the story")


def run(args: Namespace) -> int:
    opened = open_plan(args)
    for notice in opened.loaded.notices:
        warn(notice)
    shows = {"list": _list, "show": _show, "next": _next}
    if args.action in shows:
        return shows[args.action](opened, args)
    makes = {"add": _add, "set": _set, "done": _done, "reopen": _reopen, "split": _split, "move": _move}
    changes = makes[args.action](opened, args)
    _save(opened, changes, args)
    return 0


def _list(opened: OpenPlan, args: Namespace) -> int:
    stories = [s for s in opened.plan.stories if args.state in (None, s.state.value)]
    if args.json:
        emit_json([as_json(story) for story in stories])
        return 0
    for story in stories:
        say_raw(one_line(story.id) if args.ids else story_line(story, width(), id_width(opened.plan)))
    return 0


def _show(opened: OpenPlan, args: Namespace) -> int:
    story = find_story(opened.plan, args.id)
    why = opened.loaded.sidecar.get(story.id).why or ""
    if args.json:
        emit_json(as_json(story) | {"why": why})
    else:
        _print(story, why)
    return 0


def _next(opened: OpenPlan, args: Namespace) -> int:
    story = next_story(opened.plan)
    if args.json:
        emit_json(as_json(story) if story else None)
    elif story:
        _print(story, "")
    elif opened.plan.is_finished:
        say("Every story is done.")
    else:
        say(f"Nothing is ready: {why_nothing_is_ready(opened.plan)}")
    return ExitCode.COMPLETE if story or opened.plan.is_finished else ExitCode.UNFINISHED


def _print(story: Story, why: str) -> None:
    say_raw(paint(f"{one_line(story.id)}  {one_line(story.title)}", "bold"))
    lines = {
        "state": story.state.value + (f" ({why})" if why else ""),
        "priority": f"{story.priority:g}",
        "after": ", ".join(story.depends_on),
        "review": f"{story.review.status.value}, {story.review.count} so far" if story.review.status else "",
        "attempts": str(story.attempts or ""),
        "tracker": story.ref,
    }
    for name, value in lines.items():
        if value:
            say(f"{name:<10} {one_line(value)}")
    texts = {"description": story.description, "notes": story.notes, "feedback": story.review.feedback}
    for title, text in texts.items():
        if text.strip():
            say(f"\n{title}:")
            say("\n".join(f"  {line}" for line in clean(text).strip().splitlines()))
    for title, items in (("criteria", story.criteria), ("verify", story.verify)):
        if items:
            say(f"\n{title}:")
            for item in items:
                say(f"  - {one_line(item)}")


def _given(args: Namespace, names: Sequence[str]) -> dict[str, Any]:
    values = {name: getattr(args, name) for name in names if getattr(args, name) is not None}
    return {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}


_SHARED = ("description", "criteria", "priority", "depends_on", "verify")


def _add(opened: OpenPlan, args: Namespace) -> list[Change]:
    story = new_story(opened.plan, args.title, args.new_id, **_given(args, _SHARED))
    return [AddStory(story, args.after)]


def _set(opened: OpenPlan, args: Namespace) -> list[Change]:
    fields = _given(args, (*_SHARED, "title", "notes"))
    if not fields and args.state is None:
        raise UsageError("nothing to set", hint="`ralph task set --help` lists the fields")
    find_story(opened.plan, args.id)
    changes: list[Change] = [SetFields(args.id, fields)] if fields else []
    if args.state is not None:
        agent = is_agent(os.environ)
        note = args.notes or ""
        changes.append(change_state(opened.plan, args.id, State(args.state), agent=agent, note=note, force=args.force))
    return changes


def _done(opened: OpenPlan, args: Namespace) -> list[Change]:
    return [finish(opened.plan, args.id, args.note, agent=is_agent(os.environ), force=args.force)]


def _reopen(opened: OpenPlan, args: Namespace) -> list[Change]:
    return [reopen(opened.plan, args.id, agent=is_agent(os.environ))]


def _split(opened: OpenPlan, args: Namespace) -> list[Change]:
    return split(opened.plan, args.id, args.titles)


def _move(opened: OpenPlan, args: Namespace) -> list[Change]:
    ids = [story.id for story in opened.plan.stories if story.id != args.id]
    find_story(opened.plan, args.before or args.after or args.id)
    before = args.before
    if args.first:
        before = ids[0] if ids else None
    elif args.after:
        following = ids.index(args.after) + 1 if args.after in ids else len(ids)
        before = ids[following] if following < len(ids) else None
    return move(opened.plan, args.id, before)


def _save(opened: OpenPlan, changes: list[Change], args: Namespace) -> None:
    after = opened.store.save(opened.loaded, changes).plan
    touched = {c.story.id if isinstance(c, AddStory) else c.story for c in changes}
    stories = [story for story in after.stories if story.id in touched]
    if args.json:
        emit_json([as_json(story) for story in stories])
        return
    for story in stories:
        say_raw(story_line(story, width(), id_width(after)))
