"""Answer an agent's question. The story is open again, and the answer is in the next prompt.

Without a story the answer is for whoever works next: it also takes the file .ralph/WAITING away."""

from __future__ import annotations

import os
import time
from argparse import ArgumentParser, Namespace

from ralph.app import given
from ralph.app.answers import Answer, answers_path, read_answers, write_answers
from ralph.app.desk import WorkspaceDesk
from ralph.app.editing import find_story, reasons
from ralph.app.last_run import is_at_work
from ralph.app.trusting import refuse_inside_loop
from ralph.app.turns import turn
from ralph.app.workspace import open_ref, plan_state, store_for
from ralph.cli.arguments import add_workspace
from ralph.cli.output import say, warn
from ralph.core.changes import SetFields
from ralph.core.errors import UsageError
from ralph.core.plan import State
from ralph.core.ports import PlanRef
from ralph.plans.beside import Beside
from ralph.plans.store import Loaded

EXAMPLES = """
ralph answer US-003 "Use PostgreSQL; the password is in the vault"
ralph answer - "The design is fine, go on"
"""
_ASKS = "asks: "
"""How a run begins the sentence that it keeps beside a story with a question."""


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("story", metavar="STORY", help="the story that asked, or - for all of them")
    parser.add_argument("answer", metavar="ANSWER", help="what the agent is to know")
    add_workspace(parser)


def run(args: Namespace) -> int:
    refuse_inside_loop(os.environ, "answer its own questions")
    text = given.prose("the answer", args.answer).strip()
    if not text:
        raise UsageError("the answer is empty", hint='`ralph answer US-003 "…"`')
    ref, _ = open_ref(args)
    if is_at_work(plan_state(ref, os.environ)):
        warn("a run is at work on this plan: the answer is in the prompts after this iteration")
    story_id = "" if args.story == "-" else args.story
    with turn(ref, os.environ):
        _answer(ref, story_id, text)
    say(f"{story_id or 'every story'}: the answer is in the next prompt; `ralph run` goes on")
    return 0


def _answer(ref: PlanRef, story_id: str, text: str) -> None:
    """The answer is kept first: a story that is open again without it would ask once more."""
    store = store_for(ref, os.environ)
    loaded = store.load()
    story = find_story(loaded.plan, story_id) if story_id else None
    desk = WorkspaceDesk(ref.root, ref.folder)
    question = _question(loaded, story_id, desk.waiting())
    path = answers_path(plan_state(ref, os.environ))
    write_answers(path, read_answers(path).with_answer(story_id, Answer(question, text, time.time())))
    if story is not None and story.state is State.BLOCKED:
        changes = [SetFields(story.id, {"state": State.TODO})]
        store.save(loaded, changes, reasons(changes, ""))
    if question == desk.waiting():
        desk.answered()


def _question(loaded: Loaded, story_id: str, waiting: str) -> str:
    """What is answered: what the story asked, else what the file WAITING asks, unless that is another story's."""
    asked = {key: (one.why or "").removeprefix(_ASKS) for key, one in loaded.sidecar.stories.items() if _asks(one)}
    own = asked.pop(story_id, "")
    return own or ("" if story_id and waiting in asked.values() else waiting)


def _asks(beside: Beside) -> bool:
    return beside.state is State.BLOCKED and (beside.why or "").startswith(_ASKS)
