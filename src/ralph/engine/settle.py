"""Settle: keep the work or undo it, then one record that makes the iteration final.

Everything needed to finish after a kill is on disk before the first effect: the plan as it will be, the tree, the
message. `recover` calls the same functions.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from ralph.core import events
from ralph.core.changes import Change, SetFields
from ralph.core.events import Committed, IterationEnded, Judged, Noted, RescueSaved, Settling
from ralph.core.evidence import CheckResult, Evidence
from ralph.core.history import PREVIOUS_SESSION
from ralph.core.plan import Mode, Plan, State, Story
from ralph.core.ports import Reading
from ralph.core.review import Review, ReviewStatus
from ralph.core.run_ports import MOST_ACCEPTANCE_SESSIONS, Attempt
from ralph.core.text import one_line, plural
from ralph.core.verdict import Kind, Verdict
from ralph.core.work_tree import Commit, Inspection, RolledBack, Shared
from ralph.engine import proof_trailers
from ralph.engine.act import prove_again
from ralph.engine.evidence import share
from ralph.engine.judge import judge
from ralph.engine.plan_text import write_plan
from ralph.engine.prepare import TITLES
from ralph.engine.run import Run
from ralph.host.files import make_folder, write_bytes
from ralph.host.git.commits import commit_subject
from ralph.host.redaction import redact_struct
from ralph.prompts.foreign import fence_for, fenced
from ralph.state.names import PLAN_AFTER

_FEW = 5
NOT_UNDONE = RolledBack()
_NO_ATTEMPT = (Mode.REVIEW, Mode.ACCEPTANCE)
"""Modes whose failures are no attempts at the story."""


class Judgement(Struct, frozen=True):
    """An iteration that was judged and is not settled yet."""

    attempt: Attempt
    evidence: Evidence
    inspection: Inspection
    verdict: Verdict


def judge_and_record(run: Run, attempt: Attempt, evidence: Evidence, inspection: Inspection) -> Judgement:
    evidence = redact_struct(evidence)  # judged as it is recorded, so that a replay agrees
    verdict = judge(evidence)
    run.journal.write(Judged(attempt.number, evidence, verdict))
    return Judgement(attempt, evidence, inspection, verdict)


def settle(run: Run, judged: Judgement, *, commit: bool, is_again: bool = False) -> IterationEnded:
    """`is_again`: the result of a hook, judged like an agent's work."""
    evidence, verdict, inspection = judged.evidence, judged.verdict, judged.inspection
    attempt, notices = share(run, judged.attempt, files=False)  # somebody may have committed while the checks ran
    inspection = msgspec.structs.replace(inspection, notices=(*inspection.notices, *notices))
    target = plan_after(run, attempt, verdict)
    if verdict.completes and run.proof.acceptance.join(attempt.work.story):
        inspection = run.tree.inspect(attempt.checkpoint)
    judged = Judgement(attempt, evidence, inspection, verdict)
    if not verdict.kind.keeps_work:
        _announce(run, attempt, target, keep=False)
        undone = undo(run, attempt, verdict, target)
        track(run, attempt, target)
        return finish(run, judged, target, undone=undone)
    lost = run.tree.keep_uncommitted(attempt.checkpoint, inspection.tree, run.places.is_own)
    inspection = msgspec.structs.replace(inspection, notices=(*inspection.notices, *lost))
    judged = Judgement(attempt, evidence, inspection, verdict)
    message = message_for(attempt, verdict)
    proof = proof_trailers.written(evidence, verdict, inspection.tree, _plan_name(run), inspection.commits)
    _announce(run, attempt, target, keep=True, message=message, tree=inspection.tree, commit=commit, proof=proof)
    target = write_plan(run, attempt, target)
    track(run, attempt, target)
    made = keep(run, attempt, inspection, message, proof) if commit else None
    if made is not None and made.refused is not None:
        return settle_refused(run, judged, made.refused)
    if made is not None and made.changed:
        return settle_changed(run, judged, made, is_again=is_again)
    journal_agent_commits(run, attempt.number, inspection.commits)
    mark_setup(run, attempt)
    last = inspection.commits[-1] if inspection.commits else ""
    return finish(run, judged, target, commit=made.commit if made else last)


def settle_refused(run: Run, judged: Judgement, refused: CheckResult) -> IterationEnded:
    """The project's own pre-commit hook is a check like any other: judge again with its result.

    A hook that was killed because the run is stopping says nothing about the work.
    """
    evidence = judged.evidence
    interrupted = evidence.interrupted or run.control.stop.requested
    evidence = msgspec.structs.replace(evidence, checks=(*evidence.checks, refused), interrupted=interrupted)
    again = judge_and_record(run, judged.attempt, evidence, judged.inspection)
    return settle(run, again, commit=False)


def settle_changed(run: Run, judged: Judgement, made: Commit, *, is_again: bool) -> IterationEnded:
    """A hook or a check changed files after they were judged: prove and judge the result once, then reject."""
    attempt, evidence, inspection = judged.attempt, judged.evidence, judged.inspection
    who = f"the {made.changed_by} hook" if made.changed_by else "running the checks"
    some = ", ".join(one_line(path, 60) for path in made.changed[:_FEW])
    more = f" and {len(made.changed) - _FEW} more" if len(made.changed) > _FEW else ""
    if is_again:
        trouble = f"{who} changed {some}{more} again: what would be committed is not what was checked"
        evidence = msgspec.structs.replace(evidence, repository_trouble=trouble)
    else:
        run.journal.write(Noted(f"{who} changed {some}{more}: the result is checked and judged again"))
        write_plan(run, attempt, attempt.shown or attempt.reading)
        evidence, inspection = prove_again(run, attempt, evidence)
    again = judge_and_record(run, attempt, evidence, inspection)
    return settle(run, again, commit=not is_again, is_again=True)


def track(run: Run, attempt: Attempt, target: Reading) -> None:
    """Update the tracker before the commit, so that the tracker's own file is committed too."""
    story = target.plan.story(attempt.work.story) if attempt.work.story else None
    if story is not None and (noted := run.tracker.settle(story)):
        run.journal.write(noted)


def mark_setup(run: Run, attempt: Attempt) -> None:
    """Record that the set-up is done. It runs once. A marker that exists may be a file of the user with content."""
    if attempt.mode is Mode.SETUP:
        for marker in run.rules.setup_markers:
            if not os.path.lexists(marker):
                make_folder(marker.parent)
                write_bytes(marker, b"")


def _fails(changes: Iterable[Change], story: str) -> bool:
    own = [change.fields for change in changes if isinstance(change, SetFields) and change.story == story]
    return any(fields.get("state") is State.FAILED for fields in own)


def plan_after(run: Run, attempt: Attempt, verdict: Verdict) -> Reading:
    """The plan after the iteration: the verdict's changes, the counted attempt, a story failed or set aside."""
    changes: list[Change] = list(verdict.changes)
    why: dict[str, str] = {}
    story = attempt.story
    if story is not None:
        fields: dict[str, Any] = {}
        if _uses_attempt(attempt, verdict):
            fields["attempts"] = story.attempts + 1
        if verdict.kind is Kind.BLOCKED:
            fields["state"] = State.BLOCKED
            why[story.id] = f"asks: {verdict.question}"
        elif _gives_up(run, attempt, verdict):
            fields["state"] = State.FAILED
            why[story.id] = f"{plural(story.attempts + 1, 'attempt')}; last failure: {one_line(verdict.headline, 200)}"
        elif verdict.completes:
            why[story.id] = ""
            fields["attempts"] = 0
            if attempt.reading.plan.reviewed:
                fields |= _as_reviewed(verdict, story, f"Done in iteration {attempt.number} of run {run.id}.")
        changes = _merged(changes, story.id, fields)
        if _fails(changes, story.id):
            opened, reasons = reopened(run, attempt.reading.plan, story.id)
            changes, why = [*changes, *opened], why | reasons
    return run.plan.planned(attempt.reading, changes, why)  # type: ignore[no-any-return]


def reopened(run: Run, plan: Plan, given_up: str) -> tuple[list[Change], dict[str, str]]:
    """Reopen stories that only a review shows to be done, once a story that was given up has changed their files: its
    work was kept for a review that never approved it. Returns the changes to the plan, and story → why."""
    changes: list[Change] = []
    why = {}
    for other, path in run.proof.prover.in_doubt(plan, given_up).items():
        story = plan.story(other)
        fields: dict[str, Any] = {"state": State.TODO, "attempts": 0, "grade": ""}
        if story is not None and story.review.status is not None:
            fields["review"] = Review(None, story.review.count)
        changes.append(SetFields(other, fields))
        why[other] = f"{given_up}, which was given up, changed {one_line(path, 80)} after {other} was approved"
        run.journal.write(Noted(f"{other} is open again: {why[other]}", warning=True))
    return changes, why


def _merged(changes: list[Change], story: str, fields: dict[str, Any]) -> list[Change]:
    """Merge all new values of a story into one change: a format may accept them only together."""
    own = [change for change in changes if isinstance(change, SetFields) and change.story == story]
    for change in own:
        fields = change.fields | fields
    rest = [change for change in changes if change not in own]
    return [*rest, SetFields(story, fields)] if fields else rest


def _as_reviewed(verdict: Verdict, story: Story, note: str) -> dict[str, Any]:
    """A format with review fields requires notes on every finished story and no open review."""
    written = [c.fields for c in verdict.changes if isinstance(c, SetFields) and c.story == story.id]
    fields: dict[str, Any] = {}
    is_waiting = story.review.status not in (None, ReviewStatus.APPROVED)
    if is_waiting and not any("review" in given for given in written):  # a run without reviews
        fields["review"] = Review(None, story.review.count)
    if not story.notes.strip() and not any(str(given.get("notes") or "").strip() for given in written):
        fields["notes"] = note
    return fields


def _gives_up(run: Run, attempt: Attempt, verdict: Verdict) -> bool:
    """A bad review is not an attempt at the story; the circuit breaker counts it."""
    most = run.rules.limits.max_attempts
    failed = attempt.story.attempts + 1 if attempt.story else attempt.attempt
    return bool(most) and _uses_attempt(attempt, verdict) and failed >= most


def _uses_attempt(attempt: Attempt, verdict: Verdict) -> bool:
    """Accepted work and sessions that a budget cut short do not count towards giving up."""
    is_failure = verdict.kind.uses_attempt and verdict.kind is not Kind.ACCEPTED
    return is_failure and not verdict.is_cut and attempt.mode not in _NO_ATTEMPT


def _announce(
    run: Run,
    attempt: Attempt,
    target: Reading,
    *,
    keep: bool,
    message: str = "",
    tree: str = "",
    commit: bool = False,
    proof: proof_trailers.Trailers | None = None,
) -> None:
    write_bytes(run.places.folder / PLAN_AFTER, run.plan.dump(target), mode=0o600)
    run.journal.write(
        Settling(
            iteration=attempt.number,
            keep=keep,
            message=message,
            tree=tree,
            commit=commit,
            plan_digest=target.digest,
            proof=proof or {},
        )
    )


def _plan_name(run: Run) -> str:
    """The plan's path for the commit trailers: two plans of one repository may share a story ID."""
    inside = os.path.relpath(run.places.written[0], run.places.repo)
    return "" if inside.startswith("..") else inside


def trailers_for(run: str, iteration: int, story: str) -> dict[str, str]:
    trailers = {"Ralph-Run": run, "Ralph-Iteration": str(iteration)}
    return trailers | ({"Ralph-Story": story} if story else {})


def message_for(attempt: Attempt, verdict: Verdict) -> str:
    if attempt.story is None:
        return commit_subject("", TITLES[attempt.mode], attempt.mode)
    story = attempt.story
    if verdict.kind is Kind.PARTIAL:
        return one_line(f"wip({story.id}): {story.title}", 72)
    outcome = _review_outcome(attempt, verdict) if attempt.mode is Mode.REVIEW else ""
    return commit_subject(story.id, story.title, attempt.mode, outcome)


def _review_outcome(attempt: Attempt, verdict: Verdict) -> str:
    settles = any("review" in change.fields for change in verdict.changes if isinstance(change, SetFields))
    if not settles and attempt.reviewer:  # one of several, and not the last
        return f"{attempt.reviewer} reviewed"
    return "approved" if verdict.completes else "changes requested"


def keep(
    run: Run,
    attempt: Attempt,
    inspection: Inspection,
    message: str,
    proof: Mapping[str, tuple[str, ...]],
) -> Commit | None:
    """Commit the story's change. None: nothing changed. After the agent's own commits there is always a commit, if
    necessary an empty one: it carries their proof to clones."""
    trailers = {**trailers_for(run.id, attempt.number, attempt.work.story), **proof}
    extra = [path for path in run.places.written if path.exists()]
    made = run.tree.commit(attempt.checkpoint, inspection.tree, extra, message, trailers, attempt.parents)
    put_rules_back(run, attempt.number, attempt.story)  # hooks may run the agent's code
    if made is not None and made.commit:
        run.journal.write(Committed(iteration=attempt.number, commit=made.commit, message=message, files=made.files))
    for notice in made.notices if made is not None else ():
        run.journal.write(Noted(notice))
    return made


def put_rules_back(run: Run, number: int, story: Story | None = None) -> None:
    page = run.watchers.put_back(number, story)
    for text in filter(None, (page.told, page.left)):
        run.journal.write(Noted(text, warning=True))


def journal_agent_commits(run: Run, number: int, commits: Iterable[str]) -> None:
    """The agent's own commits that are kept."""
    for commit in commits:
        run.journal.write(Committed(iteration=number, commit=commit, message="(by the agent)", by_agent=True))


def undo(run: Run, attempt: Attempt, verdict: Verdict, target: Reading) -> RolledBack:
    """Save the agent's work under a rescue ref, return to the checkpoint, and correct the plan.

    Where that would undo somebody else's work, everything is saved and left as it is, and the run stops.
    """
    number = attempt.number
    run.proof.acceptance.withdraw()
    name, message = f"{run.id}/{number}", f"ralph: iteration {number}, {verdict.kind.value}: {verdict.headline}"
    shared = attempt.shared
    if shared is not None and not shared.can_undo:
        done = run.tree.save(attempt.checkpoint, name, message)
    else:
        done = run.tree.roll_back(attempt.checkpoint, name, message, run.places.written[:1])
    done = msgspec.structs.replace(done, ask=_question(shared, done.ref) if shared else "")
    write_plan(run, attempt, target)
    if done.ref:
        run.journal.write(RescueSaved(number, done.ref, done.commit))
    if shared is None or shared.can_undo:
        run.journal.write(events.RolledBack(iteration=number, removed=done.removed, rewritten=done.rewritten))
    for notice in done.notices:
        run.journal.write(Noted(notice, warning=True))
    return done


def finish(
    run: Run, judged: Judgement, target: Reading, *, commit: str = "", undone: RolledBack = NOT_UNDONE
) -> IterationEnded:
    attempt, evidence, verdict = judged.attempt, judged.evidence, judged.verdict
    if waiting := evidence.waiting or (verdict.question if run.requests.asks_by_file else ""):
        run.requests.keep_waiting(waiting)
    story = target.plan.story(attempt.work.story) if attempt.work.story else None
    outcome = evidence.outcome
    ended = IterationEnded(
        iteration=attempt.number,
        story=attempt.work.story,
        title=attempt.story.title if attempt.story else "",
        mode=attempt.mode,
        kind=verdict.kind,
        headline=verdict.headline,
        reasons=verdict.reasons[1:],
        notices=(*verdict.notices, *judged.inspection.notices),
        fingerprint=verdict.fingerprint,
        story_state=story.state if story else None,
        attempts=story.attempts if story else 0,
        question=verdict.question,
        resets_at=verdict.resets_at,
        proven=verdict.kind is Kind.ACCEPTED and any(check.required and check.passed for check in evidence.checks),
        completes=verdict.completes,
        grade=verdict.grade,
        feedback=feedback_for(evidence, verdict, undone.ref) if _has_feedback(attempt, verdict) else "",
        seconds=round(max(run.control.clock() - attempt.begun, 0), 3),
        tokens=outcome.used,
        cost_usd=outcome.cost_usd,
        agent=outcome.agent,
        model=outcome.model,
        files=evidence.changed[:100],
        commit=commit,
        rescue=undone.ref,
        undone=undone.notices,
        ask=undone.ask,
        learned=evidence.learned,
    )
    run.journal.write(ended)
    return ended


def _has_feedback(attempt: Attempt, verdict: Verdict) -> bool:
    """What is said about acceptance tests is for the session that writes them, not for the one that follows."""
    is_last = verdict.kind is Kind.ACCEPTED or attempt.attempt >= MOST_ACCEPTANCE_SESSIONS
    return attempt.mode is not Mode.ACCEPTANCE or not is_last


def _question(shared: Shared, ref: str) -> str:
    """A sentence for the user, if the run cannot continue without one."""
    if not shared.ask:
        return ""
    where = f"; the agent's work is saved in {ref}" if ref else ""
    if shared.can_undo:
        return f"{shared.ask}; they were kept{where}"
    return f"{shared.ask}, so nothing was rolled back{where} and is still in the working tree"


def feedback_for(evidence: Evidence, verdict: Verdict, rescue: str) -> str:
    """What the next attempt needs to know: the reasons, the end of each failing output, what was restored."""
    if verdict.completes:
        by = f"{PREVIOUS_SESSION}, on {evidence.story.id}" if evidence.story else PREVIOUS_SESSION
        return "\n".join(f"- {by}: {notice}" for notice in verdict.notices)
    if verdict.kind in (Kind.LIMIT, Kind.TRANSPORT, Kind.MISCONFIGURED):
        return "\n".join(verdict.notices)
    no_result = verdict.kind in (Kind.ACCEPTED, Kind.BLOCKED)  # a question is shown with its answer
    parts = [] if no_result else [f"- {reason}" for reason in verdict.reasons]
    failing = [check for check in evidence.checks if check.required and not check.passed and check.tail]
    fence = fence_for(*(check.tail for check in failing))
    for check in failing:
        parts.append(f"\nThe output of `{check.command}` ended with:\n\n{fenced(check.tail[-4000:], fence=fence)}")
    parts += [f"- {notice}" for notice in verdict.notices]
    if rescue and evidence.changed:
        parts.append(f"- that attempt was rolled back; read its files with `git show {rescue}:PATH`")
    return "\n".join(parts)
