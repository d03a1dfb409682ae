"""Judge an iteration by its evidence. Pure: the same evidence gives the same verdict, now and in a replay.

The work is judged before the way the agent ended: a claim with a real change and passing checks is accepted even if
the agent timed out. Otherwise the way it ended decides what follows.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from functools import cache

import msgspec

from ralph.core.agent import Trouble
from ralph.core.changes import AddStory, Change, Edited, SetFields
from ralph.core.evidence import CheckResult, Claim, Ended, Evidence, How
from ralph.core.plan import Mode, State, Story
from ralph.core.proof import NO_LONGER_RUNS, Grade, Proof, Tamper
from ralph.core.review import NO_LEDGER, NO_REVIEW, Entry, Review, ReviewStatus, answer, rejects_all
from ralph.core.text import one_line, plural
from ralph.core.transitions import illegal_edits
from ralph.core.verdict import Kind, Verdict
from ralph.engine.judge_review import (
    conclude,
    meddling,
    objections,
    put_right,
    put_right_of_review,
    review_given,
    rewritten,
)

_MOST_LINES = 200
_FAILURE = (
    r"error|fail|exception|panic|fatal|assert|traceback|abort|undefined|unresolved|unexpected|expected|invalid|missing"
    r"|mismatch|denied|refused|killed|cannot|can't|could not|unable|not found|no such|segmentation|timed? ?out|✗|✘|×"
)
_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"
_DAY = r"(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*"
_TIME = r"\d{1,2}:\d\d(?::\d\d)?(?:[.,]\d+)?(?:\s?[ap]m)?(?:\s?(?:z|utc|gmt|[+-]\d\d:?\d\d))?"

_VARYING = (
    (r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-_])", ""),
    (r"([^\w\s])\1{3,}", r"\1\1\1"),
    (r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "<uuid>"),
    (rf"\b\d{{4}}[-/]\d\d[-/]\d\d(?:[t ]{_TIME})?", "<time>"),
    (rf"\b(?:{_DAY},? )?(?:\d{{1,2}} {_MONTH}|{_MONTH} +\d{{1,2}})(?:,? \d{{4}})?(?:,? {_TIME})?\b", "<time>"),
    (rf"(?<![\w:.]){_TIME}(?![\w:])", "<time>"),
    (r"\b0x[0-9a-f]+\b", "<address>"),
    (r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,128}\b", "<hash>"),
    # Where a file lies differs from machine to machine and from run to run; which one it is does not.
    (r"(?:file://)?(?<![\w<])(?:[a-z]:|~|\.{1,2})?(?:[\\/][^\s\\/:\"'`(),;<>|]+)*[\\/](?=[^\s\\/])", "…/"),
    (r"(?<![\w.@+…-])(?:[\w.@+-]+[\\/])+(?=[\w.@+-])", "…/"),
    (r"\b(?:tmp|temp)[-_.]?(?=\w*[0-9_])\w{4,}\b|(?<=…/)tmp\w{4,}\b|\bpytest-\d+\b", "<temporary>"),
    (r"(?<![\w.])\d+(?:[.,]\d+)*\s?(?:ns|[µu]s|ms|s|sec|secs|seconds?|m|mins?|minutes?|h|hours?)\b", "<n>"),
    (r"(?<![a-z_])\d+(?:[.,:_]\d+)*", "<n>"),
    (r"[^\S\n]+", " "),
)


@cache
def _compiled() -> tuple[re.Pattern[str], tuple[tuple[re.Pattern[str], str], ...]]:
    """Compiled on first use: only runs with failures pay for it."""
    varying = tuple((re.compile(pattern, re.IGNORECASE), word) for pattern, word in _VARYING)
    return re.compile(_FAILURE, re.IGNORECASE), varying


def fingerprint(text: str) -> str:
    """The fingerprint; empty for an empty text."""
    failure, varying = _compiled()
    for pattern, word in varying:
        text = pattern.sub(word, text)
    lines = [line.strip().lower() for line in text.splitlines()]
    told = [line for line in lines if failure.search(line)] or [line for line in lines if line]
    if not told:
        return ""
    return hashlib.sha256("\n".join(sorted(set(told[-_MOST_LINES:]))).encode("utf-8", "replace")).hexdigest()[:16]


_FREE_TO_EDIT = ("notes", "priority")
_MOST_DOUBTS = 10
_FEW = 3
_WAY_OUT = "do not change them; if the story cannot be done without that change, ask the user"
_FIXES = {
    Trouble.AUTHENTICATION: "log the agent in, or set its API key",
    Trouble.BILLING: "add credit to the agent's account, or use another account; logging in again does not help",
    Trouble.MODEL: "choose another model with --model",
    Trouble.UNGUARDED: "make sure the client runs hooks (no --bare, no disableAllHooks), or set canary to warn or off",
    Trouble.SETTINGS: "fix it, then run again",
    Trouble.PERMISSION: "set `permissions: guard`, or allow the tools it needs (agent.allowed_tools)",
}


def judge(evidence: Evidence) -> Verdict:
    if evidence.interrupted:
        return Verdict(Kind.INTERRUPTED, ("stopped before it finished",))
    if evidence.error:
        broken = msgspec.structs.replace(evidence, repository_trouble=evidence.error)
        return _by_cause(broken, [evidence.error], [], list(evidence.notices))
    if evidence.mode is Mode.REVIEW:
        return judge_review(evidence)
    if evidence.mode is Mode.ACCEPTANCE:
        return _judge_acceptance(evidence)
    if evidence.mode is Mode.EXAM:
        return _judge_exam(evidence)
    changes, notices = _sort_plan_edits(evidence)
    notices += evidence.notices
    missing = list(_what_is_missing(evidence))
    if not missing:
        return _by_proof(evidence, changes, notices)
    return _by_cause(evidence, missing, changes, notices)


def _claimed(evidence: Evidence) -> bool:
    if evidence.mode is Mode.SETUP:
        return evidence.ended.well and not evidence.outcome.trouble
    if evidence.claim is not None or evidence.outcome.promised:
        return True
    return evidence.rules.claim_is_implied and evidence.ended.well and not evidence.outcome.trouble


def _what_is_missing(evidence: Evidence) -> Iterator[str]:
    """The reasons not to accept this evidence, the most useful first."""
    if evidence.repository_trouble:
        yield evidence.repository_trouble
    for check in _failing(evidence):
        yield _describe(check)
    yield from evidence.objections
    if evidence.proof is not None and evidence.proof.objections:
        yield from evidence.proof.objections
        yield from _doubts(evidence.proof) if evidence.is_tampered else ()
    if evidence.unchecked and evidence.outcome.tests_failed and evidence.mode is not Mode.SETUP:
        yield f"the last test run of the session failed: {evidence.outcome.tests_failed}"
    if not _claimed(evidence):
        yield "the agent did not claim the story as done"
    is_work = evidence.changed or evidence.continues
    if not is_work and evidence.mode is not Mode.SETUP and not _turns_all_down(evidence):
        if evidence.story is not None and evidence.story.is_review_step and evidence.claim is not Claim.ALREADY:
            if not evidence.logged.strip():
                yield "a review step needs evidence: write what you checked and what you saw to the progress log"
        elif evidence.claim is not Claim.ALREADY:
            yield "no files changed"
        elif (not evidence.checks or not evidence.passed_before) and not evidence.may_review:
            yield "claimed as already satisfied, but no check proves it"  # one that may fail shows nothing


def _turns_all_down(evidence: Evidence) -> bool:
    """A fix may reject every finding if it says why. The next review sees the reasons."""
    story = evidence.story
    return evidence.mode is Mode.FIX and story is not None and rejects_all(story.ledger, evidence.replies)


def _failing(evidence: Evidence) -> list[CheckResult]:
    return [check for check in evidence.checks if check.required and not check.passed]


def _describe(check: CheckResult) -> str:
    before = " (it also failed before this story)" if check.failed_before else ""
    hint = f"; {check.hint}" if check.hint else ""
    broken = f"{check.proves} was done and is now broken: " if check.proves and not check.failed_before else ""
    if check.timed_out:
        return f"{broken}check {check.name!r} timed out after {check.seconds:.0f} s{before}"
    return f"{broken}check {check.name!r} failed with exit code {check.code}{_failed_tests(check)}{before}{hint}"


def _failed_tests(check: CheckResult) -> str:
    some = ", ".join(one_line(name, 100) for name in check.failed[:_FEW])
    more = f" and {len(check.failed) - _FEW} more" if len(check.failed) > _FEW else ""
    return f": {some}{more}" if some else ""


def _by_proof(evidence: Evidence, changes: list[Change], notices: list[str]) -> Verdict:
    """Passing checks are accepted as far as they prove the story; a review decides about the rest."""
    proof, story = evidence.proof, evidence.story
    if story is None or (proof is None and evidence.minimum is Grade.UNPROVEN):
        return _unless_tampered(evidence, _accept(evidence, changes, notices), notices)
    doubts: list[str] = []
    if proof is not None and evidence.is_tampered:
        doubts = _doubts(proof)
        if evidence.rules.tamper is Tamper.REJECT or not evidence.may_review:
            return _refused(Kind.REJECTED, [*doubts, _WAY_OUT], evidence, notices)
    elif (
        proof is not None
        and (gone := [each for each in proof.loosened if each.endswith(NO_LONGER_RUNS)])
        and (evidence.rules.tamper is Tamper.REJECT or not evidence.may_review)
    ):  # fewer tests are no pass where nobody looks at them
        return _refused(Kind.REJECTED, gone, evidence, notices)
    elif proof is not None and proof.changed_expectations and proof.excuse:
        notices = [*notices, f"the checks pass only with changed tests, which is allowed: {proof.excuse}"]
    is_short = not evidence.grade.reaches(evidence.minimum) and not story.is_review_step
    missing = list(proof.missing) if proof is not None else []
    if is_short and evidence.minimum in (Grade.PROVEN, Grade.WITNESSED):
        reasons = [f"the story is {evidence.grade.value}; proof.minimum is {evidence.minimum.value}", *missing]
        return _refused(Kind.REJECTED, reasons, evidence, notices)
    if is_short and not evidence.may_review:
        return _unproven(evidence, changes, notices, missing)
    if proof is not None and proof.loosened:
        changed = ": existing tests changed, although the checks pass without that"
        doubts += [each if each.endswith(NO_LONGER_RUNS) else f"{each}{changed}" for each in proof.loosened]
    to_review = evidence.may_review and bool(doubts or is_short or evidence.mode is Mode.FIX)
    shown = [f"for the reviewer to check: {doubt}" if to_review else doubt for doubt in doubts]
    return _accept(evidence, changes, [*notices, *shown], to_review=to_review)


def _doubts(proof: Proof) -> list[str]:
    return [f"the checks pass only with changed tests: {each}" for each in proof.changed_expectations[:_MOST_DOUBTS]]


def _unproven(evidence: Evidence, changes: list[Change], notices: list[str], missing: list[str]) -> Verdict:
    """Sound work that nothing proves, in a run without reviews: kept, and the story waits for a review."""
    assert evidence.story is not None
    mark = {"review": Review(ReviewStatus.NEEDS_REVIEW, evidence.story.review.count), "grade": Grade.UNPROVEN.value}
    reasons = ("kept, but unproven: no check is about this story, and reviews are off", *missing)
    kept = (*changes, SetFields(evidence.story.id, mark))
    return Verdict(Kind.ACCEPTED, reasons, kept, tuple(notices), grade=Grade.UNPROVEN.value)


def _accept(evidence: Evidence, changes: list[Change], notices: list[str], *, to_review: bool | None = None) -> Verdict:
    story = evidence.story
    if story is None:
        return Verdict(Kind.ACCEPTED, ("set up",), tuple(changes), tuple(notices))
    mark: dict[str, object]
    review = evidence.to_review or bool(to_review)
    is_judged = evidence.proof is not None or evidence.grade is not Grade.UNPROVEN
    grade = evidence.grade.value if is_judged else ""
    if review:
        mark = {"review": Review(ReviewStatus.NEEDS_REVIEW, story.review.count)}
        if story.ledger != NO_LEDGER:
            mark["ledger"], unanswered = answer(story.ledger, evidence.replies)
            notices = [*notices, *(_left_open(story.ledger.get(name), name) for name in unanswered)]
    else:
        mark = {"state": State.DONE} | ({"grade": grade} if grade else {})
    ended = "" if evidence.ended.well else f" (the agent {_ending(evidence.ended)}, but its work was complete)"
    return Verdict(
        Kind.ACCEPTED,
        (("ready for review" if review else _done(evidence)) + ended,),
        (*changes, SetFields(story.id, mark)),
        tuple(notices),
        completes=not review,
        grade=grade,
    )


def _left_open(entry: Entry | None, name: str) -> str:
    if entry is not None and entry.is_confirmed:
        return f"the fix does not fix finding {name}, which you confirmed"
    return f"the fix does not mention finding {name}"


def _done(evidence: Evidence) -> str:
    witnesses = evidence.proof.witnesses if evidence.proof is not None else ()
    if not witnesses:
        return "done"
    more = f" and {len(witnesses) - 1} more" if len(witnesses) > 1 else ""
    return f"done, {evidence.grade.value} by {one_line(witnesses[0].name, 80)}{more}"


def _unless_tampered(evidence: Evidence, accepted: Verdict, notices: list[str]) -> Verdict:
    """How older versions judged weakened tests; only their journals have suspicions. Kept for `ralph runs replay`."""
    grave = [str(doubt) for doubt in evidence.suspicions if doubt.is_grave]
    if not grave or evidence.rules.tamper is Tamper.OFF:
        return accepted
    is_decided = any(doubt.is_decisive for doubt in evidence.suspicions)
    if evidence.rules.tamper is Tamper.REVIEW and evidence.to_review and not is_decided:
        looked_at = tuple(f"for the reviewer to check: {doubt}" for doubt in grave[:_MOST_DOUBTS])
        return msgspec.structs.replace(accepted, notices=(*accepted.notices, *looked_at))
    reasons = ["the checks pass, but tests or checks were tampered with", *grave[:_MOST_DOUBTS]]
    if is_decided:
        reasons.append(_WAY_OUT)
    return _refused(Kind.REJECTED, reasons, evidence, notices)


def _ending(ended: Ended) -> str:
    match ended.how:
        case How.TIMED_OUT:
            return "timed out"
        case How.SILENT:
            return "stopped responding"
        case How.LINGERED:
            return "did not exit"
        case How.STOPPED:
            return f"was stopped: {ended.detail}" if ended.detail else "was stopped"
        case _:
            return f"ended with {f'signal {ended.signal}' if ended.signal else f'exit code {ended.code}'}"


def _cannot_execute(ended: Ended) -> bool:
    """A shell, env or a wrapper script exits with 126 or 127 when the program it should start cannot be executed."""
    if ended.how is not How.EXITED or ended.well:
        return False
    return ended.code in (126, 127) or ": cannot execute" in _last_words(ended)


def _last_words(ended: Ended) -> str:
    """The last line of stderr; empty for a stopped agent, whose detail is already shown."""
    lines = [line for line in ended.detail.splitlines() if line.strip()] if ended.how is not How.STOPPED else []
    return f": {one_line(lines[-1].strip(), 200)}" if lines else ""


def _by_cause(evidence: Evidence, missing: list[str], changes: list[Change], notices: list[str]) -> Verdict:
    outcome, ended = evidence.outcome, evidence.ended
    if evidence.question:
        return Verdict(Kind.BLOCKED, (f"asks: {evidence.question}",), question=evidence.question)
    if outcome.trouble in _FIXES:
        why = outcome.detail or outcome.text or outcome.trouble.value
        fix = next((denial.remedy for denial in outcome.denials if not denial.why), "") or _FIXES[outcome.trouble]
        return Verdict(Kind.MISCONFIGURED, (f"{why.strip()[:300]} — {fix}",))
    if outcome.trouble is Trouble.LIMIT:
        return Verdict(Kind.LIMIT, ("the usage limit is reached",), resets_at=outcome.resets_at)
    if outcome.trouble is Trouble.REFUSED:
        why = f"the service refused the agent's key, which had worked before: {outcome.detail or 'no reason given'}"
        return Verdict(Kind.TRANSPORT, (why,), fingerprint=fingerprint(why), resets_at=outcome.resets_at)
    if outcome.trouble in (Trouble.TRANSPORT, Trouble.EMPTY) and not evidence.changed:
        why = outcome.detail or (
            "the answer was empty" if outcome.trouble is Trouble.EMPTY else "the model could not be reached"
        )
        return Verdict(Kind.TRANSPORT, (why,), fingerprint=fingerprint(why))
    if ended.how is How.FAILED_TO_START:
        return Verdict(Kind.MISCONFIGURED, (f"the agent could not be started: {ended.detail}",))
    if not evidence.changed and _cannot_execute(ended) and not outcome.finished:
        what = f"the agent {_ending(ended)}: its program could not be executed{_last_words(ended)}"
        return Verdict(Kind.MISCONFIGURED, (f"{what} — check agent.command and what it starts",))
    if ended.how in (How.TIMED_OUT, How.SILENT):
        what = f"the agent {_ending(ended)} after {ended.ran or ended.seconds:.0f} s"
        return _refused(Kind.TIMED_OUT, [what, *missing], evidence, notices)
    spent = [f"the agent reached its spending limit: {outcome.detail}"] if outcome.trouble is Trouble.BUDGET else []
    if not ended.well and not spent:
        return _refused(Kind.CRASHED, [f"the agent {_ending(ended)}{_last_words(ended)}", *missing], evidence, notices)
    is_sound = evidence.changed and evidence.checks and not _failing(evidence) and not evidence.repository_trouble
    if is_sound and not _claimed(evidence) and evidence.mode is not Mode.REVIEW:
        if evidence.proof is not None and (evidence.is_tampered or evidence.proof.objections):
            doubts = [] if evidence.proof.objections else _doubts(evidence.proof)
            return _refused(Kind.REJECTED, [*missing, *doubts], evidence, notices)
        reasons = (*spent, "the checks pass, but the agent did not claim the story as done")
        return Verdict(Kind.PARTIAL, reasons, tuple(changes), tuple(notices), is_cut=bool(spent))
    if _is_kept_unchecked(evidence):
        reasons = (*spent, *missing, "no check is configured; the work is kept and the story continues")
        return Verdict(Kind.PARTIAL, reasons, tuple(changes), tuple(notices), is_cut=bool(spent))
    rejected = _refused(Kind.REJECTED, [*spent, *missing], evidence, notices)
    return msgspec.structs.replace(rejected, is_cut=bool(spent))


def _is_kept_unchecked(evidence: Evidence) -> bool:
    """Without a check there is no reason to undo unfinished work: the next attempt would only redo it."""
    is_work = evidence.mode in (Mode.IMPLEMENT, Mode.FIX) and evidence.unchecked
    return is_work and not evidence.objections and not evidence.repository_trouble


def _refused(kind: Kind, reasons: list[str], evidence: Evidence, notices: list[str]) -> Verdict:
    failing = _failing(evidence)
    identity = "\n".join(f"{c.name} {c.tail}" for c in failing) or "\n".join([*reasons, evidence.ended.detail])
    return Verdict(kind, tuple(reasons), notices=tuple(notices), fingerprint=fingerprint(identity))


def _wrong_with_tests(evidence: Evidence) -> list[str]:
    """Why the tests of a session that only writes tests cannot be used. Checks fail with them; hooks must not."""
    missing = [evidence.repository_trouble] if evidence.repository_trouble else []
    missing += [_describe(check) for check in _failing(evidence) if check.name.endswith(" hook")]
    return [*missing, *evidence.objections]


def _judge_exam(evidence: Evidence) -> Verdict:
    """An exam is good if its tests run. Those that fail become stories; a round without any is the last."""
    missing = _wrong_with_tests(evidence)
    if not missing and (not evidence.ended.well or evidence.outcome.trouble):
        missing.append("the session did not end normally")
    if missing:
        return _by_cause(evidence, missing, [], list(evidence.notices))
    passed = f"{plural(evidence.exam_passed, 'new test')} {'passes' if evidence.exam_passed == 1 else 'pass'}"
    if not evidence.exam:
        return Verdict(Kind.ACCEPTED, (f"the exam found no failure: {passed}",), notices=evidence.notices)
    count = len(evidence.acceptance)
    ids = ", ".join(change.story.id for change in evidence.exam)
    also = f"; {passed}" if evidence.exam_passed else ""
    reasons = [f"the exam found {plural(count, 'failing test')}, added as {ids}{also}"]
    reasons += [f"{change.story.id}: {one_line(change.story.title, 200)}" for change in evidence.exam]
    return Verdict(Kind.ACCEPTED, tuple(reasons), evidence.exam, evidence.notices)


def _judge_acceptance(evidence: Evidence) -> Verdict:
    """Acceptance tests are good if they run and fail. The session's claim does not matter."""
    missing = _wrong_with_tests(evidence)
    if missing or not evidence.acceptance:
        return _by_cause(evidence, missing or ["no acceptance test was written"], [], list(evidence.notices))
    count = plural(len(evidence.acceptance), "acceptance test")
    some = ", ".join(one_line(name, 80) for name in evidence.acceptance[:_FEW])
    more = " …" if len(evidence.acceptance) > _FEW else ""
    reason = f"wrote {count} that {'fails' if len(evidence.acceptance) == 1 else 'fail'} now: {some}{more}"
    return Verdict(Kind.ACCEPTED, (reason,), notices=evidence.notices)


def judge_review(evidence: Evidence) -> Verdict:
    """A review says approved or changes requested and must change nothing else."""
    story = evidence.story
    if story is None or (evidence.delta is None and evidence.answer is None):
        return _refused(Kind.REJECTED, [f"the plan could not be read: {evidence.plan_problem}"], evidence, [])
    given = review_given(evidence, story)
    notices = [*evidence.notices, *_promised_too_soon(evidence), *put_right_of_review(evidence, story)]
    if given is None:
        return _by_cause(evidence, [*meddling(evidence, story), "the reviewer gave no verdict"], [], notices)
    failing = [_describe(check) for check in _failing(evidence)]
    if wrong := list(objections(evidence, story, given, failing)):
        return _refused(Kind.REJECTED, wrong, evidence, notices)
    verdict = conclude(evidence, story, given, failing)
    return msgspec.structs.replace(verdict, notices=(*verdict.notices, *notices))


def _sort_plan_edits(evidence: Evidence) -> tuple[list[Change], list[str]]:
    """Sort the agent's plan edits: legal ones become changes, the others are undone with a notice."""
    if evidence.delta is None:
        return [], [f"the plan could not be read and was restored: {evidence.plan_problem}"]
    changes: list[Change] = []
    notices = [evidence.outcome.note] if evidence.outcome.note else []
    if evidence.plan_problem:
        notices.append(f"an edit made the plan unreadable; it was repaired: {evidence.plan_problem}")
    notices += _missing_note(evidence)
    illegal = illegal_edits(evidence.delta, evidence.mode) if evidence.to_review and evidence.has_review_fields else []
    notices += [put_right(each) for each in illegal]
    told = {each.story for each in illegal}
    notices += _promised_too_soon(evidence)
    for edited in evidence.delta.edited:
        legal = {n: getattr(edited.new, n) for n in _FREE_TO_EDIT if getattr(edited.new, n) != getattr(edited.old, n)}
        if legal:
            changes.append(SetFields(edited.new.id, legal))
        notices += _illegal_edits(edited, evidence, is_told=edited.new.id in told)
    refused: dict[str, str | None] = {}
    """New stories that are not kept → the story before them."""
    for added in evidence.delta.added:
        story, after = added.story, refused.get(added.after or "", added.after)
        if story.state is State.TODO and story.review == NO_REVIEW:
            changes.append(AddStory(story, after))
            continue
        refused[story.id] = after
        if story.id not in told:
            notices.append(f"new story {story.id} was marked {_mark(story)}; new stories start open")
    notices += [f"story {story} was removed; restored" for story in evidence.delta.removed if story not in told]
    if evidence.delta.checks_changed:
        notices.append("the plan's check commands were changed; restored")
    return changes, notices


def _missing_note(evidence: Evidence) -> Iterator[str]:
    """Seed 001 requires notes on every finished story. A claim without them still counts."""
    story = evidence.story
    edited = evidence.delta.of(story.id) if evidence.delta and story and evidence.has_review_fields else None
    if edited is not None and edited.new.is_done and not edited.new.notes.strip() and not evidence.to_review:
        yield f"story {edited.new.id} was claimed with empty notes; describe what was done in its notes"


def _promised_too_soon(evidence: Evidence) -> Iterator[str]:
    if evidence.outcome.promised and evidence.rules.promises_all and evidence.open_after:
        left = f"{evidence.open_after} stor{'y is' if evidence.open_after == 1 else 'ies are'} still open"
        yield f"the agent claimed everything is complete; {left}"


def _illegal_edits(edited: Edited, evidence: Evidence, *, is_told: bool) -> Iterator[str]:
    old, new = edited.old, edited.new
    own = evidence.story is not None and new.id == evidence.story.id
    if (new.state, new.review) != (old.state, old.review) and not own and not is_told:
        yield f"story {new.id} was marked {_mark(new)}; restored to {_mark(old)}: one story per iteration"
    for name in rewritten(edited):
        yield f"{name} of story {new.id} changed; restored"


def _mark(story: Story) -> str:
    """A story's mark: its review status if it has one, else its state."""
    return story.review.status.value if story.review.status and not story.is_done else story.state.value
