"""Answer a question of the agent, or list the open questions.

The story that asked is open again, and the answer is in the prompts of its next sessions. `-` instead of a story
answers for all stories and removes .ralph/WAITING; `-` instead of the answer reads it from stdin."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace

from ralph.cli.arguments import add_json, add_workspace
from ralph.cli.output import ask_line, emit_json, is_interactive, note, say, say_raw
from ralph.cli.which_plan import working_ref
from ralph.core.errors import UsageError
from ralph.core.ports import PlanRef
from ralph.core.text import clean
from ralph.workspace import plan_edit as given
from ralph.workspace.answers import all_questions, answer, asking_ref, question_of
from ralph.workspace.find import open_ref, store_for
from ralph.workspace.own_files import WorkspaceDesk
from ralph.workspace.trust import refuse_inside_loop

EXAMPLES = """
ralph answer                                    list the open questions
ralph answer US-003 "Use PostgreSQL; the password is in the vault"
ralph answer US-003 - < decision.md             read the answer from stdin
ralph answer - "The design is fine, continue"   for all stories
"""


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("story", nargs="?", metavar="STORY", help="the story that asked, or - for all stories")
    parser.add_argument("answer", nargs="?", metavar="ANSWER", help="the answer, or - to read it from stdin")
    add_json(parser)
    add_workspace(parser)


def run(args: Namespace) -> int:
    story_id = "" if args.story in (None, "-") else args.story
    ref = asking_ref(working_ref(args, open_ref(args)[0]), story_id, os.environ)
    if args.story is None:
        return _list(ref, as_json=args.json)
    refuse_inside_loop(os.environ, "answer its own questions")
    text = given.prose("the answer", _text(args, ref, story_id)).strip()
    if not text:
        raise UsageError("the answer is empty", hint='`ralph answer US-003 "…"`')
    answered = answer(ref, story_id, text, os.environ)
    if args.json:
        emit_json({"story": story_id, "question": answered.question, "answer": text})
        return 0
    then = "the run reads it before its next iteration" if answered.waits else "`ralph run` continues"
    say(f"answered for {story_id or 'all stories'}; {then}")
    return 0


def _list(ref: PlanRef, *, as_json: bool) -> int:
    questions = all_questions(store_for(ref, os.environ).load(), WorkspaceDesk(ref.root, ref.folder).waiting())
    if as_json:
        emit_json([{"story": story, "question": question} for story, question in questions.items()])
        return 0
    for story, question in questions.items():
        first, *rest = clean(question).splitlines() or [""]
        say_raw("\n".join([f"{story or '-'}: {first}", *(f"    {line}" for line in rest)]))
    if questions:
        note(f'answer with `ralph answer {next(iter(questions)) or "-"} "…"`')
    else:
        say("No open questions.")
    return 0


def _text(args: Namespace, ref: PlanRef, story_id: str) -> str:
    if args.answer == "-":
        return sys.stdin.read()
    if args.answer is not None:
        return str(args.answer)
    if not is_interactive():
        raise UsageError("the answer is missing", hint=f'`ralph answer {args.story} "…"`, or - to read it from stdin')
    loaded = store_for(ref, os.environ).load()
    question = question_of(loaded, story_id, WorkspaceDesk(ref.root, ref.folder).waiting())
    return ask_line(f"{clean(question) or 'Answer'}\n> ")
