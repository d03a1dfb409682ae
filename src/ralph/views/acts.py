"""What a person can do to a run from any view: the same requests as the command line's, with the same errors.

A view takes the run from its `RunStarted` record. Acts on a live run leave a file for it; acts on a run that has ended
change the plan at once, in the copy that a command in the user's folder would change.
"""

from __future__ import annotations

import platform
import shlex
from collections.abc import Mapping
from contextlib import suppress
from enum import StrEnum

from msgspec import Struct

from ralph.core import control
from ralph.core.errors import RalphError, UsageError
from ralph.core.events import RunEnded, RunStarted
from ralph.core.plan import State
from ralph.core.ports import PlanRef
from ralph.core.review import Entry, Fate
from ralph.core.text import one_line
from ralph.journal.records import pick
from ralph.journal.run_state import RunState
from ralph.state.clones import current, users_own
from ralph.state.locks import is_at_work
from ralph.state.places import plan_state, workspace_state
from ralph.state.runs import journal_path
from ralph.views.catalog import plan_ref
from ralph.workspace.find import store_for
from ralph.workspace.findings import decide, why_not
from ralph.workspace.messages import answer_text, give_order, put_note
from ralph.workspace.plan_edit import find_story
from ralph.workspace.skips import skip
from ralph.workspace.stuck_stories import SKIPPED, answer, retry
from ralph.workspace.trust import refuse_inside_loop


class ActVerb(StrEnum):
    PAUSE = "pause"
    RESUME = "resume"
    STOP = "stop"
    STOP_NOW = "stop-now"
    NOTE = "note"
    ANSWER = "answer"
    RETRY = "retry"
    SKIP = "skip"
    CONFIRM = "confirm"
    REJECT = "reject"


class Act(Struct, frozen=True, kw_only=True):
    verb: ActVerb
    story: str = ""
    text: str = ""
    """The note, the answer or the reason."""
    finding: str = ""
    """F2."""


class ActKind(Struct, frozen=True, kw_only=True):
    label: str
    command: str
    """What a person types instead; the fields of the act are filled in."""
    needs: tuple[str, ...] = ()
    takes: tuple[str, ...] = ()
    """Fields that may be empty."""
    question: str = ""
    """To ask before an act that cannot be taken back."""

    @property
    def is_destructive(self) -> bool:
        return bool(self.question)


KINDS = {
    ActVerb.PAUSE: ActKind(label="Pause", command="ralph pause --run {run}"),
    ActVerb.RESUME: ActKind(label="Resume", command="ralph resume --run {run}"),
    ActVerb.STOP: ActKind(
        label="Stop after this iteration",
        command="ralph stop --run {run}",
        question="Stop the run after the current iteration? This cannot be cancelled; `ralph run` continues later.",
    ),
    ActVerb.STOP_NOW: ActKind(
        label="Stop now",
        command="ralph stop --now --run {run}",
        question="Stop the run now? The work of its agent is saved and rolled back.",
    ),
    ActVerb.NOTE: ActKind(
        label="Note to the agent", command="ralph note {text} --story {story}", needs=("text",), takes=("story",)
    ),
    ActVerb.ANSWER: ActKind(label="Answer", command="ralph answer {story} {text}", needs=("text",), takes=("story",)),
    ActVerb.RETRY: ActKind(label="Retry", command="ralph retry {story}", needs=("story",)),
    ActVerb.SKIP: ActKind(
        label="Skip",
        command="ralph task skip {story} {text}",
        needs=("story",),
        takes=("text",),
        question="Skip {story}? The run continues with the other stories; a retry brings it back.",
    ),
    ActVerb.CONFIRM: ActKind(
        label="Confirm finding",
        command="ralph task finding {story} {finding} --confirm {text}",
        needs=("story", "finding"),
        takes=("text",),
    ),
    ActVerb.REJECT: ActKind(
        label="Reject finding",
        command="ralph task finding {story} {finding} --reject {text}",
        needs=("story", "finding", "text"),
    ),
}

_ORDERS = {
    ActVerb.PAUSE: (control.Verb.PAUSE, "run {run} pauses after the current iteration"),
    ActVerb.RESUME: (control.Verb.RESUME, "run {run} continues"),
    ActVerb.STOP: (control.Verb.STOP, "run {run} stops after the current iteration"),
    ActVerb.STOP_NOW: (control.Verb.STOP_NOW, "run {run} is stopping; the work of its agent is saved and rolled back"),
}


def command_line(act: Act, run: str) -> str:
    """The same act as a command. Options and arguments without a value are left out."""
    words: list[str] = []
    for word in KINDS[act.verb].command.split():
        if not word.startswith("{"):
            words.append(word)
        elif value := {"{run}": run}.get(word) or getattr(act, word[1:-1], ""):
            words.append(shlex.quote(value))
        elif act.verb is ActVerb.ANSWER:
            words.append("-" if word == "{story}" else "…")
        elif words[-1] in ("--story", "--run"):
            words.pop()
    return " ".join(words)


def perform(started: RunStarted, act: Act, env: Mapping[str, str]) -> str:
    """Do it. Returns the sentence a person reads; raises RalphError with a hint."""
    refuse_inside_loop(env, f"act on a run ({act.verb.value})")
    _refuse_elsewhere(started)
    _refuse_incomplete(act)
    ref = plan_of(started, env)
    if not ref.path.exists():
        raise UsageError(
            f"the plan of run {started.run} is no longer there: {one_line(str(ref.path), 200)}",
            hint="it was moved, archived or removed since; `ralph plan archive list` lists archives",
        )
    match act.verb:
        case ActVerb.NOTE:
            return _leave_note(started, act, ref, env)
        case ActVerb.ANSWER:
            answered = answer(ref, act.story, answer_text(act.text), env)
            then = "the run reads it before its next iteration" if answered.waits else "`ralph run` continues"
            return f"answered for {one_line(act.story, 60) or 'all stories'}; {then}"
        case ActVerb.RETRY:
            story = one_line(act.story, 60)
            retried = retry(ref, [act.story], env)
            return (
                f"the run retries {story} before its next iteration"
                if retried.waits
                else f"reopened {story}; `ralph run` continues"
            )
        case ActVerb.SKIP:
            return skip(ref, act.story, act.text, env).sentence
        case ActVerb.CONFIRM | ActVerb.REJECT:
            fate = Fate.OPEN if act.verb is ActVerb.CONFIRM else Fate.REJECTED
            return decide(ref, act.story, act.finding, fate, act.text, env).sentence
        case _:
            return _give_order(started, act, ref, env)


def plan_of(started: RunStarted, env: Mapping[str, str]) -> PlanRef:
    """Where commands in the user's folder read the plan of this run now."""
    return current(users_own(plan_ref(started), env), env)


def is_of_this_machine(started: RunStarted) -> bool:
    return started.host in ("", platform.node())


def _refuse_elsewhere(started: RunStarted) -> None:
    if not is_of_this_machine(started):
        raise UsageError(
            f"run {started.run} is on {one_line(started.host, 80)}, not on this machine",
            hint=f"do it there: the commands and the views of {one_line(started.host, 80)} have it",
        )


def _refuse_incomplete(act: Act) -> None:
    names = {"text": "a text", "story": "a story", "finding": "a finding"}
    for name in KINDS[act.verb].needs:
        if not getattr(act, name).strip():
            raise UsageError(f"{act.verb.value} needs {names[name]}", hint=f"`{command_line(act, '')}`")


def _leave_note(started: RunStarted, act: Act, ref: PlanRef, env: Mapping[str, str]) -> str:
    story = find_story(store_for(ref, env).load().plan, act.story).id if act.story else ""
    state = plan_state(ref, env)
    put_note(state, act.text, story)
    whose = f"the next iteration on {one_line(story, 60)}" if story else "the next iteration"
    is_live = is_at_work(state, started.run)
    return f"saved for {whose} of {f'run {started.run}' if is_live else 'the next run'}"


def _give_order(started: RunStarted, act: Act, ref: PlanRef, env: Mapping[str, str]) -> str:
    state = plan_state(ref, env)
    if not is_at_work(state, started.run):
        journal = journal_path(workspace_state(ref.root, env), started.run)
        ends = [record for record in pick(journal, (b'"RunEnded"',)) if isinstance(record.event, RunEnded)]
        if ends:
            raise UsageError(f"run {started.run} has ended", hint="`ralph run` starts another one")
        raise UsageError(
            f"run {started.run} was killed", hint="the next `ralph run` finishes or undoes what it left open"
        )
    verb, sentence = _ORDERS[act.verb]
    give_order(state, started.run, verb)
    return sentence.format(run=started.run)


def done_since(started: RunStarted, story: str, env: Mapping[str, str]) -> bool:
    """Whether the plan says now that the story is done, or has it no more: a later run or the user did that."""
    with suppress(RalphError, OSError):
        known = store_for(plan_of(started, env), env).load().plan.story(story)
        return known is None or known.is_done
    return False


def possible(
    state: RunState,
    *,
    is_live: bool,
    is_here: bool = True,
    story: str = "",
    finding: Entry | None = None,
    is_settled: bool = False,
) -> frozenset[ActVerb]:
    """The acts that make sense now; on a story or a finding, if one is named. Pure.

    `is_live`: the run is at work. `is_here`: it is a run of this machine; see `is_of_this_machine`. `is_settled`: the
    story was finished or removed after the run; see `done_since`.
    """
    if not is_here:
        return frozenset()
    found = {ActVerb.NOTE}
    wish = state.wish
    if is_live and state.ended is None:
        found |= {ActVerb.STOP_NOW} if not wish.now else set()
        found |= {ActVerb.STOP, ActVerb.RESUME if wish.pause else ActVerb.PAUSE} if not wish.stop else set()
    if (known := state.stories.get(story)) is None:
        return frozenset(found)
    is_skipped = known.state is State.FAILED and state.reasons.get(story, "").startswith(SKIPPED)
    if not is_settled:
        found |= {ActVerb.ANSWER} if known.state is State.BLOCKED else set()
        found |= {ActVerb.RETRY} if known.state is State.FAILED else set()
        found |= {ActVerb.SKIP} if known.state is not State.DONE and not is_skipped else set()
    if finding is not None:
        found |= {ActVerb.REJECT} if not why_not(finding, Fate.REJECTED) else set()
        found |= {ActVerb.CONFIRM} if not why_not(finding, Fate.OPEN) else set()
    return frozenset(found)
