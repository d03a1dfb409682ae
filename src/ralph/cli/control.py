"""What a person tells a run: `ralph pause`, `resume`, `stop`, `note`, `retry` and `answer`."""

from __future__ import annotations

import os
import shlex
import sys
import time
from argparse import Namespace
from difflib import get_close_matches
from pathlib import Path

from ralph.cli.output import ask_line, emit_json, is_interactive, note, say, say_raw, warn
from ralph.core.control import Verb
from ralph.core.errors import UsageError
from ralph.core.exit_codes import ExitCode
from ralph.core.ports import PlanRef
from ralph.core.text import clean, one_line, plural
from ralph.journal.records import Follower
from ralph.journal.run_state import RunState
from ralph.state.places import plan_state
from ralph.state.runs import live_ref
from ralph.workspace.find import open_plan, open_ref, root_of, store_for
from ralph.workspace.messages import answer_text, give_order, note_text, put_note
from ralph.workspace.own_files import RequestFiles
from ralph.workspace.plan_edit import Editor, find_story
from ralph.workspace.runs import ActiveRun, active_runs, choice_of, the_active_run
from ralph.workspace.stuck_stories import all_questions, answer, asking_ref, listed, question_of, retry
from ralph.workspace.trust import refuse_inside_loop


def working_ref(args: Namespace, ref: PlanRef) -> PlanRef:
    """The copy that a live run works on. `-d` is taken literally."""
    if getattr(args, "project_dir", None):
        return ref
    live = live_ref(ref, os.environ)
    if live != ref:
        root = shlex.quote(str(ref.root))
        note(f"this is for the run in the worktree {live.root}; `-d {root}` changes the plan of the workspace")
    return live


_PATIENCE = 3.0
"""Seconds to wait for the run to react to an order. It polls several times a second."""
_TICK = 0.05


def give(args: Namespace, verb: Verb) -> int:
    refuse_inside_loop(os.environ, f"{verb.value.partition('-')[0]} its own run")
    target = the_active_run(root_of(args, os.environ), choice_of(args), args.run, os.environ)
    before, now, news = RunState(), RunState(), Follower(target.journal)
    for record in news.news():
        before.add(record)
        now.add(record)
    order = give_order(target.state, target.run, verb)
    deadline = time.monotonic() + _PATIENCE
    is_taken = False
    while now.ended is None and not (is_taken and _is_settled(verb, now)) and time.monotonic() < deadline:
        time.sleep(_TICK)
        is_taken = not order.exists()  # asked first: what follows from it is written before it is looked for
        for record in news.news():
            now.add(record)
    if now.ended is not None:
        is_taken = is_taken or not order.exists()
        order.unlink(missing_ok=True)
    if args.json:
        emit_json({"run": target.run, "order": verb, "taken": is_taken, "state": _state(now)})
    elif is_taken or now.ended is not None:
        say(_outcome(verb, target, before, now))
    else:
        warn(f"run {target.run} has not reacted yet; the order stays pending")
    return 0


def _is_settled(verb: Verb, now: RunState) -> bool:
    if now.current is not None and verb is not Verb.STOP_NOW:
        return now.wish.after(verb) == now.wish
    if verb is Verb.PAUSE:
        return now.paused_since is not None
    return verb is Verb.RESUME and now.paused_since is None


def _state(now: RunState) -> str:
    if now.ended is not None:
        return "ended"
    if now.paused_since is not None:
        return "paused"
    return "stopping" if now.wish.stop else "pausing" if now.wish.pause else "running"


def _outcome(verb: Verb, target: ActiveRun, before: RunState, now: RunState) -> str:
    run = f"run {target.run}"
    if now.ended is not None:
        return f"{run} has ended: {now.ended.reason.value}"
    busy = (
        plural(len(now.parallel.open), "running iteration")
        if now.is_parallel and now.parallel.open
        else f"iteration {now.current.iteration} ({one_line(now.current.story, 40) or now.current.mode.value})"
        if now.current
        else ""
    )
    match verb:
        case Verb.PAUSE if now.paused_since is not None:
            return f"{run} is {'already ' if before.paused_since else ''}paused; `ralph resume` continues it"
        case Verb.PAUSE:
            return f"{run} pauses after {busy or 'this step'}; `ralph resume` cancels the pause"
        case Verb.RESUME:
            return f"{run} {'continues' if before.wish.pause else 'was not paused'}"
        case Verb.STOP:
            return f"{run} stops after {busy or 'this step'}; `ralph stop --now` stops it at once"
        case Verb.STOP_NOW:
            return f"{run} is stopping; the work of its agent is saved and rolled back"


def pause(args: Namespace) -> int:
    return give(args, Verb.PAUSE)


def resume(args: Namespace) -> int:
    return give(args, Verb.RESUME)


def stop(args: Namespace) -> int:
    return give(args, Verb.STOP_NOW if args.now else Verb.STOP)


def leave_note(args: Namespace) -> int:
    refuse_inside_loop(os.environ, "leave notes for itself")
    text = note_text(args.text)
    root = root_of(args, os.environ)
    at_work = None
    if args.run or active_runs(root, choice_of(args), os.environ):
        at_work = the_active_run(root, choice_of(args), args.run, os.environ)
    state = _of_run(at_work, args.story) if at_work else _of_plan(args)
    put_note(state, text, args.story)
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


def retry_stories(args: Namespace) -> int:
    Editor.of(os.environ).refuse_to("retry a story")
    if args.ids and args.all:
        raise UsageError("--all and story IDs exclude each other", hint="name the stories, or pass --all")
    ref, _ = open_ref(args)
    done = retry(ref, args.ids, os.environ, everything=args.all)
    if args.json:
        emit_json({"stories": done.stories, "queued": done.waits})
    elif not done.stories:
        say("No failed stories.")
    elif done.waits:
        say(f"The run retries {listed(done.stories)} before its next iteration.")
    else:
        say(f"Reopened {listed(done.stories)}; `ralph run` continues.")
    return ExitCode.COMPLETE


def answer_question(args: Namespace) -> int:
    story_id = "" if args.story in (None, "-") else args.story
    ref = asking_ref(working_ref(args, open_ref(args)[0]), story_id, os.environ)
    if args.story is None:
        return _list(ref, as_json=args.json)
    refuse_inside_loop(os.environ, "answer its own questions")
    text = answer_text(_text(args, ref, story_id))
    answered = answer(ref, story_id, text, os.environ)
    if args.json:
        emit_json({"story": story_id, "question": answered.question, "answer": text})
        return 0
    then = "the run reads it before its next iteration" if answered.waits else "`ralph run` continues"
    say(f"answered for {story_id or 'all stories'}; {then}")
    return 0


def _list(ref: PlanRef, *, as_json: bool) -> int:
    questions = all_questions(store_for(ref, os.environ).load(), RequestFiles(ref.root, ref.folder).waiting())
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
    question = question_of(loaded, story_id, RequestFiles(ref.root, ref.folder).waiting())
    return ask_line(f"{clean(question) or 'Answer'}\n> ")
