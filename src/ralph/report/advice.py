"""For every reason a run can end: what it means, what to do next, and the notification about it."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from ralph.core.events import (
    CLOSED_LATER,
    IterationEnded,
    IterationStarted,
    Paused,
    Record,
    RunEnded,
    StorySetAside,
    WaitStarted,
)
from ralph.core.exit_codes import ExitCode
from ralph.core.moves import Reason
from ralph.core.plan import State
from ralph.core.review import LOST_REVIEWS
from ralph.core.text import one_line, plural
from ralph.core.verdict import Kind
from ralph.journal.run_state import RunState
from ralph.notify.message import Message, Moment
from ralph.plans.registry import traits
from ralph.state.names import WORKTREES
from ralph.state.streams import stream_around

_MOST_NAMED = 3


class Advice(Struct, frozen=True):
    why: str
    """One or two sentences. The specifics of a run are in the record's detail."""
    next: str
    news: Moment


_GOES_ON = "`ralph run` continues where it stopped"
_KILLED = "It was killed, or its machine went down. The next run finished or undid the iteration that was open."

ADVICE: dict[Reason, Advice] = {
    Reason.COMPLETE: Advice(
        "Every story is done, and all checks passed on the final tree.",
        "review the commits, then merge or push them",
        Moment.DONE,
    ),
    Reason.NAMED_STORIES: Advice(
        "The stories named with --story are done. The rest of the plan was not touched.",
        "`ralph run` continues with the other stories",
        Moment.DONE,
    ),
    Reason.OPEN_FINDINGS: Advice(
        "Every story is done, and all checks passed on the final tree, but some stories were approved only because "
        "the review cap or a stalemate was reached. Their findings are still open.",
        "`ralph task show ID` shows the findings, `ralph task reopen ID` reopens the story; with `--on-cap approve` "
        "such a run is complete",
        Moment.FAILED,
    ),
    Reason.UNPROVEN: Advice(
        "Work was committed for stories that no check is about, and reviews are off, so nothing proves it. These "
        "stories are not done.",
        "`ralph run` without --skip-review reviews them; a check of their own (`verify`) or `--proof-minimum unproven` "
        "also settles them",
        Moment.FAILED,
    ),
    Reason.FINAL_CHECKS: Advice(
        "Every story is marked done, but not all checks pass on the final tree: stories conflict with each other, or a "
        "check that only runs at the end fails.",
        "`ralph log` shows which check failed; `ralph task reopen ID` reopens its story",
        Moment.FAILED,
    ),
    Reason.EXAM: Advice(
        "`ralph proof exam` ended without a pass: new tests fail, or its session had no result.",
        "`ralph run` works on the new stories; `ralph proof exam` repeats the exam once every story is done",
        Moment.FAILED,
    ),
    Reason.ITERATION_CAP: Advice(
        "The run reached its maximum number of iterations.",
        "`ralph run` continues; without max_iterations (-n) the cap follows from the plan",
        Moment.FAILED,
    ),
    Reason.NO_PROGRESS: Advice(
        "Several attempts in a row failed in the same way or changed nothing; more attempts would only cost money.",
        "`ralph log` shows why each attempt failed; change the story, the checks or the settings, or "
        "`ralph retry --all`, then `ralph run`",
        Moment.FAILED,
    ),
    Reason.SAME_ERROR: Advice(
        "The same error came back in several attempts in a row.",
        "`ralph log` shows the error; fix its cause, then `ralph retry --all` and `ralph run`",
        Moment.FAILED,
    ),
    Reason.CRASH_LOOP: Advice(
        "The agent exited right after each start, so the stories are not the cause.",
        "run `ralph doctor`, or start the agent by hand and read its output; then `ralph run`",
        Moment.FAILED,
    ),
    Reason.TIME_CAP: Advice(
        "The run reached its time limit. Paused time does not count.",
        "`ralph run` continues with a new time limit",
        Moment.FAILED,
    ),
    Reason.FAILED_STORIES: Advice(
        "The remaining stories failed (no attempts left, or no progress) or depend on a failed story.",
        "`ralph task show ID` shows why; change the story, the checks or the settings, or `ralph retry ID`, "
        "then `ralph run`",
        Moment.FAILED,
    ),
    Reason.NOTHING_READY: Advice(
        "There are open stories, but each depends on a story that is not done.",
        "`ralph status` shows which story waits for which",
        Moment.FAILED,
    ),
    Reason.TRANSPORT: Advice(
        "The model could not be reached or gave no answer, several times in a row, despite growing pauses.",
        "check the network and the model's service, then `ralph run`",
        Moment.FAILED,
    ),
    Reason.ONCE: Advice(
        "The one iteration of --once has ended. Its result is below.",
        "`ralph run` continues until everything is done",
        Moment.DONE,
    ),
    Reason.ONCE_TIMED_OUT: Advice(
        "The agent timed out in the one iteration of --once.",
        "`ralph run --once -t TIME` gives it more time, or split the story",
        Moment.FAILED,
    ),
    Reason.USAGE_LIMIT: Advice(
        "The usage limit of the agent's account is reached, and the run was set not to wait for its reset.",
        "`ralph run` continues once the limit has reset",
        Moment.LIMIT,
    ),
    Reason.BUDGET: Advice(
        "The budget (money or tokens) is used up. Work accepted before that is committed.",
        "`ralph runs cost` shows what was spent; `ralph run` with a higher limit continues",
        Moment.BUDGET,
    ),
    Reason.OUT_OF_REACH: Advice(
        "Judging by earlier stories, the rest is unlikely to be finished within the budget, so nothing more was spent.",
        "raise the budget or make the plan smaller, then `ralph run`",
        Moment.BUDGET,
    ),
    Reason.WAITING: Advice(
        "An agent asked a question that only you can answer, and there is nothing else to do meanwhile.",
        '`ralph answer` lists the questions, `ralph answer ID "…"` answers one; then `ralph run`',
        Moment.BLOCKED,
    ),
    Reason.MISCONFIGURED: Advice(
        "The agent cannot work with the current setup: it is not logged in, its model is unknown, it lacks a "
        "permission, or a template or step is invalid. Another attempt would fail too, so none was used up.",
        "fix the problem shown above, then `ralph run`; `ralph doctor` checks the setup",
        Moment.FAILED,
    ),
    Reason.BROKEN_CHECK: Advice(
        "A check cannot run at all, so it cannot prove any story. No agent was started.",
        "fix the check, then `ralph run`; `--allow-broken-checks` starts anyway, e.g. if a story adds what is missing",
        Moment.FAILED,
    ),
    Reason.RED_BASELINE: Advice(
        "A check fails before any work is done. With `baseline: strict` every story is rejected until it passes. "
        "No agent was started.",
        "fix it, or `ralph run --baseline no-worse` (do not reject stories for it), or `--allow-broken-checks`",
        Moment.FAILED,
    ),
    Reason.REPOSITORY: Advice(
        "The git repository is not the one the run started with: its folder was replaced or removed. Nothing else "
        "was touched.",
        "check the repository before you continue",
        Moment.FAILED,
    ),
    Reason.SHARED_TREE: Advice(
        "While an agent worked whose result was not accepted, commits were made or the branch was switched, and it "
        "cannot be known by whom. They were kept, and the agent's work is saved.",
        "look at the commits named above (`git log`); undo what is not yours, then `ralph run`",
        Moment.FAILED,
    ),
    Reason.BAD_PLAN: Advice(
        "The plan could not be read.",
        "`ralph check` lists the problems in the plan",
        Moment.FAILED,
    ),
    Reason.ON_REQUEST: Advice("You asked it to stop after its iteration.", _GOES_ON, Moment.STOPPED),
    Reason.INTERRUPTED: Advice(
        "It was interrupted by Ctrl-C or `ralph stop --now`. The agent's work was saved and rolled back, and no "
        "attempt was used up.",
        _GOES_ON,
        Moment.STOPPED,
    ),
    Reason.TERMINATED: Advice(
        "The process was terminated (SIGTERM). The agent's work was saved and rolled back, and no attempt was used up.",
        _GOES_ON,
        Moment.STOPPED,
    ),
    Reason.TERMINAL_CLOSED: Advice(
        "The run's terminal was closed (SIGHUP). The agent's work was saved and rolled back, and no attempt was used "
        "up.",
        "`ralph run --detach` continues and keeps going without a terminal",
        Moment.STOPPED,
    ),
}


_WITH_REJECTIONS = (
    Reason.ITERATION_CAP,
    Reason.NO_PROGRESS,
    Reason.SAME_ERROR,
    Reason.FAILED_STORIES,
    Reason.TIME_CAP,
)
"""Where the rejected attempts explain why the stories are not done."""
_PROOF_MINIMUM = "proof.minimum is "
_MORE_PROOF = (
    "ask for a test in the story's criteria, or give the story a `verify` command that fails without the change; "
    "`ralph run --proof-minimum reviewed` accepts a review instead"
)
_LOST_REVIEWS = (
    "the reviewer is at fault, not the work: `ralph explain` shows its last sessions; set `review.agent` or "
    "`review.model` to one that answers, or review nothing (`--no-review`); then `ralph retry ID` and `ralph run`"
)
_NOT_MORE = (
    "more attempts alone may not help: `ralph log` shows why each was rejected; change the story, the checks or the "
    "settings, then `ralph run`"
)


def why_ended(state: RunState) -> str:
    """Why the run ended, and what its rejected attempts had in common."""
    if state.ended is None:
        return ""
    reason = state.ended.reason
    if state.ended.detail == CLOSED_LATER:
        return _KILLED
    rejected = _rejected(state) if reason in _WITH_REJECTIONS else []
    return f"{ADVICE[reason].why} {_rejections(state, rejected)}" if rejected else ADVICE[reason].why


def _rejected(state: RunState) -> list[IterationEnded]:
    return [event for event in state.iterations if event.kind is Kind.REJECTED]


def _rejections(state: RunState, rejected: list[IterationEnded]) -> str:
    total = sum(event.kind.uses_attempt for event in state.iterations)
    count = f"All {total} attempts" if 1 < total == len(rejected) else f"{len(rejected)} of {plural(total, 'attempt')}"
    verb = "was" if len(rejected) == 1 else "were"
    text, times = _most_frequent(rejected)
    text = one_line(text, 300).rstrip(".")
    if times == len(rejected):
        return f"{count} {verb} rejected{' for the same reason' if times > 1 else ''}: {text}."
    return f"{count} {verb} rejected, for different reasons; most often ({times} of {len(rejected)}): {text}."


def _most_frequent(rejected: list[IterationEnded]) -> tuple[str, int]:
    """The reason that most rejections share; the latest headline if they are equally frequent."""
    counts = Counter(text for event in rejected for text in dict.fromkeys((event.headline, *event.reasons)))
    return max(((event.headline, counts[event.headline]) for event in reversed(rejected)), key=lambda pair: pair[1])


def in_worktree(state: RunState, advice: str) -> str:
    """For a run in a worktree, `ralph run` alone would start over in the workspace."""
    workspace = Path(state.started.workspace) if state.started is not None else Path()
    if (stream := stream_around(workspace)) is not None:
        return advice.replace("`ralph run`", f"`ralph stream build {stream.name}`")
    is_there = state.started is not None and workspace.parent.name == WORKTREES
    return advice.replace("`ralph run`", "`ralph run --worktree`") if is_there else advice


def next_step(state: RunState) -> str:
    return in_worktree(state, _next_step(state))


def _next_step(state: RunState) -> str:
    """What to do after this run. Where it waits for answers, the commands name the stories that asked."""
    if state.ended is None:
        return ""
    rejected = _rejected(state) if state.ended.reason in _WITH_REJECTIONS else []
    if (
        len(rejected) > 1
        and _PROOF_MINIMUM in (frequent := _most_frequent(rejected))[0]
        and 2 * frequent[1] > len(rejected)
    ):
        return _MORE_PROOF
    is_cap = state.ended.reason is Reason.ITERATION_CAP
    if is_cap and 1 < len(rejected) == sum(event.kind.uses_attempt for event in state.iterations):
        return _NOT_MORE
    if state.ended.reason is Reason.FAILED_STORIES:
        return _about_failed(state)
    named = state.started.limits.stories if state.started else ()
    blocked = [s.id for s in state.stories.values() if s.state is State.BLOCKED and (not named or s.id in named)]
    if state.ended.reason is not Reason.WAITING or len(blocked) > _MOST_NAMED:
        return ADVICE[state.ended.reason].next
    commands = " and ".join(f'`ralph answer {one_line(story, 60)} "…"`' for story in blocked or ["-"])
    by_file = " (or delete .ralph/WAITING)" if state.started and traits(state.started.layout).waits_by_file else ""
    return f"{commands}{by_file}, then `ralph run`"


def _about_failed(state: RunState) -> str:
    """It names the story, first of all one that failed because of its reviewer alone."""
    failed = [story.id for story in state.stories.values() if story.state is State.FAILED]
    unread = [story for story in failed if state.reasons.get(story, "").endswith(LOST_REVIEWS)]
    text = _LOST_REVIEWS if unread else ADVICE[Reason.FAILED_STORIES].next
    return _naming(unread or failed, text)


def _naming(stories: list[str], text: str) -> str:
    if not stories:
        return text
    first = one_line(stories[0], 60)
    return text.replace("retry ID", f"retry {first if len(stories) == 1 else '--all'}").replace(
        "show ID", f"show {first}"
    )


_LONG = 60.0
"""A shorter wait is over before a notification would be read."""
_MOST = 600


class News:
    """Takes the records in order and returns the messages to send."""

    def __init__(self) -> None:
        self._state = RunState()
        self._questions: list[str] = []
        self._given_up: dict[str, str] = {}

    def hear(self, record: Record) -> list[Message]:
        self._state.add(record)
        event, at = record.event, record.t
        match event:
            case IterationEnded(kind=Kind.BLOCKED, story=story, question=question):
                self._questions.append(f"{story} asks: {question}")
            case IterationEnded(story_state=State.FAILED, story=story, headline=headline):
                self._given_up[story] = f"gave up on {story}: {headline}"
            case StorySetAside(story=story, why=why, by_user=False):
                self._given_up[story] = f"{story} was set aside: {why}"
            case IterationStarted():  # the run continues; otherwise its end is reported
                return [*self._of_stories(at)]
            case WaitStarted(until=until, why=why) if until - at >= _LONG:
                clock = time.strftime("%H:%M", time.localtime(until))
                return [self._message(Moment.LIMIT, f"waiting until {clock}", why, at)]
            case Paused():
                return [self._message(Moment.PAUSED, "paused", "`ralph resume` continues it", at)]
            case RunEnded(reason=reason, detail=detail):
                return [self._ended(reason, detail, at)]
        return []

    def broken_off(self, why: str, at: float) -> Message | None:
        """The run ended without recording it. None if it did record it, or never started."""
        if self._state.started is None or self._state.ended is not None:
            return None
        return self._message(Moment.FAILED, "ended unexpectedly", why, at, code=ExitCode.UNFINISHED)

    def _of_stories(self, at: float) -> Iterator[Message]:
        if asked := self._questions:
            self._questions = []
            yield self._message(Moment.BLOCKED, "a story needs an answer", "; ".join(asked), at)
        if given_up := self._given_up:
            self._given_up = {}
            text = _naming([*given_up], "The run continues with the other stories. Next: `ralph retry ID`")
            text = f"{'; '.join(given_up.values())}\n{text}"
            yield self._message(Moment.FAILED, "a story failed", text, at)

    def _ended(self, reason: Reason, detail: str, at: float) -> Message:
        news = ADVICE[reason]
        done = {Reason.COMPLETE: "every story is done", Reason.NAMED_STORIES: "the stories you named are done"}
        done |= {Reason.UNPROVEN: "stopped: stories are unproven"}
        title = done.get(reason) or f"stopped: {reason.value.replace('-', ' ')}"
        text = f"{detail or why_ended(self._state)}\nNext: {next_step(self._state)}"
        return self._message(news.news, title, text, at, reason=reason.value, code=reason.exit_code)

    def _message(
        self, event: Moment, title: str, text: str, at: float, *, reason: str = "", code: ExitCode | None = None
    ) -> Message:
        state = self._state
        started = state.started
        name = one_line(started.name, 60) if started else ""
        done = f"{state.done}/{state.total} stories"
        text = "\n".join(one_line(line, _MOST) for line in text.splitlines() if line.strip())
        return Message(
            event=event,
            title=f"Ralph, {name}: {title}" if name else f"Ralph: {title}",
            text=f"{text}\n{done}" if state.total else text,
            run=started.run if started else "",
            plan=name,
            workspace=started.workspace if started else "",
            reason=reason,
            exit_code=int(code) if code is not None else None,
            done=state.done,
            total=state.total,
            cost_usd=state.cost_usd,
            at=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at)),
        )
