"""Record something for later sessions, with date, story and commit. Duplicates are
skipped.

It goes to the plan's learnings.md or progress log; with --repo to CLAUDE.md or
AGENTS.md, which every session reads. Inside a session it becomes part of the
agent's request file."""

from __future__ import annotations

import os
import time
from argparse import ArgumentParser, Namespace

from ralph.cli.arguments import add_workspace
from ralph.cli.output import say
from ralph.cli.which_plan import working_ref
from ralph.cli.words import plural
from ralph.core.errors import UsageError
from ralph.core.learning import LONGEST
from ralph.memory.learn import learn, learn_for_repository, learn_in_session
from ralph.memory.store import memory_of
from ralph.workspace import plan_edit as given
from ralph.workspace.find import open_plan, opened_at
from ralph.workspace.plan_edit import find_story
from ralph.workspace.trust import refuse_inside_loop

EXAMPLES = """
ralph learn "The tests need a running Redis"
ralph learn --story US-003 "Prices are in cents everywhere"
ralph learn --repo "This project uses bun, not npm"
"""


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("text", nargs="+", metavar="TEXT", help="one learning per argument")
    parser.add_argument("--story", metavar="ID", default="", help="the story it belongs to")
    parser.add_argument("--repo", action="store_true", help="write to CLAUDE.md or AGENTS.md, for every plan")
    add_workspace(parser)


def run(args: Namespace) -> int:
    texts = [_sentence(text) for text in args.text]
    if args.repo and args.story:
        raise UsageError("--repo and --story exclude each other", hint="use one of them")
    if args.repo:
        refuse_inside_loop(os.environ, "write to files that every later session reads")
        return _for_repository(args, texts)
    if request := learn_in_session(texts, args.story, os.environ):
        say(f"added to {request.name}; the loop records it when this session ends")
        return 0
    opened = open_plan(args)
    opened = opened_at(working_ref(args, opened.ref), opened.settings, os.environ)
    story = find_story(opened.plan, args.story).id if args.story else ""
    kept = learn(opened, texts, story, time.time(), os.environ)
    where = memory_of(opened.ref, opened.layout.locations(opened.ref), os.environ).name
    for _ in range(kept.known):
        say("known already", "dim")
    if kept.new:
        later = "the current run will record it in" if kept.waits else "kept in"
        say(f"{plural(len(kept.new), 'learning')}: {later} {where}")
    return 0


def _for_repository(args: Namespace, texts: list[str]) -> int:
    opened = open_plan(args)
    path, count = learn_for_repository(opened, texts, time.time(), os.environ)
    say(f"{plural(count, 'learning')} kept in {path.relative_to(opened.root)}" if count else "known already")
    return 0


def _sentence(text: str) -> str:
    text = " ".join(given.prose("the learning", text).split())
    if not text:
        raise UsageError("the learning is empty", hint='`ralph learn "…"`')
    if len(text) > LONGEST:
        raise UsageError(
            f"the learning has {len(text)} characters, more than {LONGEST}",
            hint="write it to a file of the project, and record where that is",
        )
    return text
