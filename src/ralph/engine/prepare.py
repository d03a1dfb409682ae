"""Prepare: record the plan and the tree so that the iteration can be undone."""

from __future__ import annotations

from collections.abc import Sequence

from ralph.core.errors import PlanEdited
from ralph.core.events import IterationStarted, Noted
from ralph.core.fallback import next_reviewer
from ralph.core.moves import Work
from ralph.core.plan import Mode, Plan, Story
from ralph.core.ports import Reading
from ralph.core.run_ports import Attempt
from ralph.engine.run import Run
from ralph.host.files import write_bytes
from ralph.state.names import PLAN_BEFORE

TITLES = {Mode.SETUP: "set up the project", Mode.EXAM: "write end-to-end tests"}
"""Of iterations without a story."""


def prepare(run: Run, work: Work, reading: Reading, number: int, free: int, most: int = 0) -> Attempt:
    """`most`: the current cap on iterations."""
    story = reading.plan.story(work.story) if work.story else None
    write_bytes(run.places.folder / PLAN_BEFORE, run.plan.dump(reading), mode=0o600)
    if run.requests.says_complete():
        told = "removed .ralph/COMPLETE: there are open stories"
        run.journal.write(Noted(told, warning=True))
    run.requests.clear()
    shown = run.plan.in_progress(reading, work.story)
    if shown is not reading:  # after a kill the copy above puts it right
        try:
            run.plan.write(shown, {reading.source})
        except PlanEdited:  # by the user, just now: it is merged when the iteration ends
            shown = reading
    checkpoint = run.tree.checkpoint()
    attempt = Attempt(
        number=number,
        work=work,
        story=story,
        attempt=_attempt_number(run, reading.plan, story, work.mode),
        free=free,
        reading=reading,
        shown=shown,
        checkpoint=checkpoint,
        begun=run.control.clock(),
        reviewer=next_reviewer(run.rules.verdict.reviewers, story) if work.mode is Mode.REVIEW else "",
        most=most,
    )
    run.journal.write(
        IterationStarted(
            iteration=number,
            story=work.story,
            title=story.title if story else TITLES[work.mode],
            mode=work.mode,
            attempt=attempt.attempt,
            checkpoint=checkpoint,
            plan_digest=reading.digest,
            choice=work.choice,
            most=most,
        )
    )
    return attempt


def _attempt_number(run: Run, plan: Plan, story: Story | None, mode: Mode) -> int:
    if story is not None and mode is Mode.ACCEPTANCE:
        return run.proof.acceptance.sessions(story) + 1
    if mode is Mode.EXAM:
        return run.proof.exam.rounds(plan) + 1
    return attempt_number(story, mode, run.rules.verdict.reviewers)


def attempt_number(story: Story | None, mode: Mode, reviewers: Sequence[str] = ()) -> int:
    """For a review: its number among the story's reviews, by any reviewer. For a fix: the reviews before it, and the
    attempts that failed."""
    if story is None:
        return 1
    if mode is Mode.FIX:
        return story.attempts + max(story.review.count, 1)
    if mode is not Mode.REVIEW:
        return story.attempts + 1
    return story.review.count * max(len(reviewers), 1) + len(story.ledger.heard) + 1
