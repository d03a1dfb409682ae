"""The text of the plan after a session: what the agent edited is judged, and what the user edited is merged.

Where that is not possible, or where it cannot be known who it was, that version is kept beside and named.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec

from ralph.core.authorship import Author
from ralph.core.changes import Delta, delta
from ralph.core.errors import PlanEdited, PlanError
from ralph.core.events import Noted
from ralph.core.plan import State
from ralph.core.ports import Reading
from ralph.core.run_ports import Attempt
from ralph.engine.run import Run
from ralph.host.files import write_bytes
from ralph.state.names import PLAN_AFTER

_ROUNDS = 5


def is_edited_by_user(run: Run, attempt: Attempt) -> bool:
    """Whether the plan on disk is not the one shown to the agent, and certainly not by the agent."""
    now, shown = run.plan.source(), (attempt.shown or attempt.reading).source
    return now is not None and now != shown and run.tree.author_of(run.places.written[0]) is Author.OTHER


def write_plan(run: Run, attempt: Attempt, target: Reading) -> Reading:
    """Write `target` over what the agent left. Returns what was written."""
    book, shown = run.plan, (attempt.shown or attempt.reading).source
    bases = [book.last or shown, shown]
    known: Collection[bytes] = {attempt.reading.source, *bases, *filter(None, (attempt.plan_after,))}
    for _ in range(_ROUNDS):
        try:
            book.write(target, known)
        except PlanEdited:
            now = book.source()
            if now is None:
                break
            target, known, bases = _with_edits(run, attempt, bases, target, now), {now}, [now]
        else:
            return target
    if (now := book.source()) is not None and now not in known:
        keep_beside(run, attempt, now, "the plan was changed again and again while it was written")
    book.write(target)
    return target


def _with_edits(run: Run, attempt: Attempt, bases: Sequence[bytes], target: Reading, now: bytes) -> Reading:
    """The target with the user's edits of one of `bases`; where that fails, `now` is kept beside the journal."""
    is_users = run.tree.author_of(run.places.written[0]) is Author.OTHER
    for base in dict.fromkeys(bases) if is_users else ():
        merged = run.tree.merged(base, target.source, now)
        try:
            result: Reading | None = run.plan.rebuilt(target, merged) if merged is not None else None
        except PlanError:
            continue
        if result is not None and _state(result, attempt) == _state(target, attempt):
            write_bytes(run.places.folder / PLAN_AFTER, run.plan.dump(result), mode=0o600)
            run.journal.write(Noted("your changes to the plan during the iteration are kept"))
            return result
    keep_beside(run, attempt, now, "the plan was changed during the iteration in a way that could not be merged")
    return target


def _state(reading: Reading, attempt: Attempt) -> State | None:
    """Of the story that was worked on: an editor with an old text must not undo the verdict."""
    story = reading.plan.story(attempt.work.story) if attempt.work.story else None
    return story.state if story else None


def keep_beside(run: Run, attempt: Attempt, text: bytes, why: str) -> str:
    """Keep a version of the plan that is about to be overwritten. Returns a sentence about it."""
    plan = run.places.written[0]
    path = next(
        path
        for n in range(1, 10_000)
        if not (path := run.places.folder / f"plan-{attempt.number}-{n}{plan.suffix}").exists()
    )
    write_bytes(path, text, mode=0o600)
    sentence = f"{why}; that version is kept in {path}"
    run.journal.write(Noted(sentence, warning=True))
    return sentence


def with_plan(run: Run, attempt: Attempt) -> tuple[Attempt, tuple[str, ...]]:
    """The attempt with the plan as the agent left it, and a sentence if it may be the user who changed it."""
    shown, now = attempt.shown or attempt.reading, run.plan.source()
    if now is None or now == shown.source or is_edited_by_user(run, attempt):
        return attempt, ()
    attempt = msgspec.structs.replace(attempt, plan_after=now)
    if run.tree.author_of(run.places.written[0]) is Author.AGENT:
        return attempt, ()
    edits, problem = plan_edits(run, attempt)
    is_claim = edits is not None and not (edits.added or edits.removed or edits.checks_changed or problem)
    if is_claim and edits is not None and all(edited.new.id == attempt.work.story for edited in edits.edited):
        return attempt, ()
    why = "the plan was changed while the agent worked, and it cannot be known by whom"
    return attempt, (keep_beside(run, attempt, now, why),)


def plan_edits(run: Run, attempt: Attempt) -> tuple[Delta | None, str]:
    before = attempt.shown or attempt.reading
    if is_edited_by_user(run, attempt):
        return delta(before.plan, before.plan), ""
    try:
        after, problem = run.plan.understood(before)
    except PlanError as error:
        return None, str(error)
    return delta(before.plan, after.plan), problem
