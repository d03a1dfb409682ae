"""Answer an agent's question. The story is open again, and the answer is in the next prompt.

Without a story the answer is for whoever works next: it also takes the file .ralph/WAITING away."""

from __future__ import annotations

import os
import time
from argparse import ArgumentParser, Namespace

from ralph.app.answers import Answer, answers_path, read_answers, write_answers
from ralph.app.desk import WorkspaceDesk
from ralph.app.editing import find_story
from ralph.app.trusting import refuse_inside_loop
from ralph.app.workspace import open_plan, plan_state
from ralph.cli.arguments import add_workspace
from ralph.cli.output import say
from ralph.core.changes import SetFields
from ralph.core.errors import UsageError
from ralph.core.plan import State

EXAMPLES = """
ralph answer US-003 "Use PostgreSQL; the password is in the vault"
ralph answer - "The design is fine, go on"
"""


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("story", metavar="STORY", help="the story that asked, or - for all of them")
    parser.add_argument("answer", metavar="ANSWER", help="what the agent is to know")
    add_workspace(parser)


def run(args: Namespace) -> int:
    refuse_inside_loop(os.environ, "answer its own questions")
    if not args.answer.strip():
        raise UsageError("the answer is empty", hint='`ralph answer US-003 "…"`')
    opened = open_plan(args)
    desk = WorkspaceDesk(opened.root, opened.ref.folder)
    story_id = "" if args.story == "-" else args.story
    question = desk.waiting() if not story_id else ""
    if story_id:
        story = find_story(opened.plan, story_id)
        why = opened.loaded.sidecar.get(story_id).why or ""
        question = why.removeprefix("asks: ") if why.startswith("asks: ") else ""
        if story.state is State.BLOCKED:
            opened.store.save(opened.loaded, [SetFields(story_id, {"state": State.TODO})])
        if desk.waiting() == question or not question:
            question = question or desk.waiting()
            desk.answered()
    else:
        desk.answered()
    path = answers_path(plan_state(opened.ref, os.environ))
    write_answers(path, read_answers(path).with_answer(story_id, Answer(question, args.answer.strip(), time.time())))
    say(f"{story_id or 'every story'}: the answer is in the next prompt; `ralph run` goes on")
    return 0
