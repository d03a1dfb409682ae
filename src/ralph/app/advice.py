"""For every reason a run can end for: what it means in plain words, what to do, and what kind of news it is."""

from __future__ import annotations

from msgspec import Struct

from ralph.core.moves import Reason
from ralph.notify.message import Moment


class Advice(Struct, frozen=True):
    why: str
    """One or two sentences. What was special this time is in the detail of the record."""
    next: str
    news: Moment


_GOES_ON = "`ralph run` goes on where it was stopped"

ADVICE: dict[Reason, Advice] = {
    Reason.COMPLETE: Advice(
        "Every story is done, and the last act of the run was one full pass of the checks on the final tree.",
        "look at the commits, then merge or push them yourself",
        Moment.DONE,
    ),
    Reason.NAMED_STORIES: Advice(
        "The stories that were named with --story are done. The rest of the plan was left alone.",
        "`ralph run` continues with the other stories",
        Moment.DONE,
    ),
    Reason.FINAL_CHECKS: Advice(
        "Every story is marked done, but on the final tree not all checks pass: stories that were right by themselves "
        "are not right together, or a check that only runs at the end fails.",
        "`ralph log` shows which check failed; `ralph task reopen ID` reopens its story",
        Moment.FAILED,
    ),
    Reason.ITERATION_CAP: Advice(
        "The run has had as many iterations as it may have. Nothing is wrong with the work so far.",
        "`ralph run` continues; without max_iterations (-n) the cap follows from the plan",
        Moment.FAILED,
    ),
    Reason.NO_PROGRESS: Advice(
        "Attempt after attempt failed in the same way or changed nothing; more of the same would only have cost money.",
        "`ralph log` shows what each attempt ran into; change the story, the checks or the settings, or "
        "`ralph retry --all`, then `ralph run`",
        Moment.FAILED,
    ),
    Reason.SAME_ERROR: Advice(
        "The same error came back again and again, whatever the agent tried.",
        "`ralph log` shows the error that came back; fix its cause, then `ralph retry --all` and `ralph run`",
        Moment.FAILED,
    ),
    Reason.CRASH_LOOP: Advice(
        "The agent died right after each start, so it cannot have been the work that was wrong.",
        "start the agent by hand and see what it says; `ralph doctor` helps, then `ralph run`",
        Moment.FAILED,
    ),
    Reason.TIME_CAP: Advice(
        "The run has taken as long as it may take. Time in which it was paused is not counted.",
        "`ralph run` goes on, with a new allowance of time",
        Moment.FAILED,
    ),
    Reason.FAILED_STORIES: Advice(
        "What is left are stories that failed, after their last attempt or because they got nowhere, and stories that "
        "depend on these.",
        "`ralph task show ID` tells why; change the story, the checks or the settings, or `ralph retry ID`, "
        "then `ralph run`",
        Moment.FAILED,
    ),
    Reason.NOTHING_READY: Advice(
        "There are open stories, but none of them can be worked on: each depends on one that is not done.",
        "`ralph status` shows what waits for what",
        Moment.FAILED,
    ),
    Reason.TRANSPORT: Advice(
        "The model could not be reached, or answered nothing, several times in a row with growing pauses in between.",
        "check the network and the model's service, then `ralph run`",
        Moment.FAILED,
    ),
    Reason.ONCE: Advice(
        "One iteration was asked for (--once), and it is over. What came of it is below.",
        "`ralph run` goes on until everything is done",
        Moment.DONE,
    ),
    Reason.ONCE_TIMED_OUT: Advice(
        "One iteration was asked for (--once), and the agent ran out of time in it.",
        "`ralph run --once -t TIME` gives it more time; a smaller story needs less",
        Moment.FAILED,
    ),
    Reason.USAGE_LIMIT: Advice(
        "The usage limit of the agent's account is reached, and the run was not to wait for its reset.",
        "`ralph run` goes on when the limit has reset",
        Moment.LIMIT,
    ),
    Reason.BUDGET: Advice(
        "The money or the tokens that may be spent are used up. What was accepted before that is committed.",
        "`ralph cost` shows what they went into; `ralph run` with a higher limit goes on",
        Moment.BUDGET,
    ),
    Reason.OUT_OF_REACH: Advice(
        "By what earlier stories took, the rest would hardly be finished within the budget, so nothing more was spent.",
        "raise the budget or make the plan smaller, then `ralph run`",
        Moment.BUDGET,
    ),
    Reason.WAITING: Advice(
        "An agent has asked something that only a person can decide, and nothing else is left to do meanwhile.",
        '`ralph answer STORY "…"` answers a story, `ralph answer - "…"` the file WAITING; then `ralph run`',
        Moment.BLOCKED,
    ),
    Reason.MISCONFIGURED: Advice(
        "No agent can work as things are set up: it is not logged in, its model is unknown, it lacks a permission, or "
        "a template or step cannot be used. Another attempt would fail alike, so none was used up.",
        "fix what is said above, then `ralph run`; `ralph doctor` helps",
        Moment.FAILED,
    ),
    Reason.BROKEN_CHECK: Advice(
        "A check cannot run at all, so it could not prove any story. No agent was started.",
        "fix what is named above, then `ralph run`; `--allow-broken-checks` starts anyway, e.g. when a story adds it",
        Moment.FAILED,
    ),
    Reason.RED_BASELINE: Advice(
        "A check fails before any work is done. With `baseline: strict` a story is only accepted once it passes, so "
        "every story would be rejected. No agent was started.",
        "fix it, or `ralph run --baseline no-worse` (do not reject stories for it), or `--allow-broken-checks`",
        Moment.FAILED,
    ),
    Reason.REPOSITORY: Advice(
        "The git repository is not the one the run began with: its folder was replaced or removed. Nothing more was "
        "touched.",
        "look at the repository before anything else",
        Moment.FAILED,
    ),
    Reason.BAD_PLAN: Advice(
        "The plan cannot be read.",
        "`ralph check` shows every problem of the plan",
        Moment.FAILED,
    ),
    Reason.ON_REQUEST: Advice("A person asked it to stop when its iteration was over.", _GOES_ON, Moment.STOPPED),
    Reason.INTERRUPTED: Advice(
        "It was interrupted by Ctrl-C, or by `ralph stop --now`. What the agent was doing is saved and undone, and "
        "used up no attempt.",
        _GOES_ON,
        Moment.STOPPED,
    ),
    Reason.TERMINATED: Advice(
        "The process was told to end (SIGTERM). What the agent was doing is saved and undone, and used up no attempt.",
        _GOES_ON,
        Moment.STOPPED,
    ),
    Reason.TERMINAL_CLOSED: Advice(
        "The terminal of the run was closed (SIGHUP). What the agent was doing is saved and undone, and used up no "
        "attempt.",
        "`ralph run --detach` continues and keeps going without a terminal",
        Moment.STOPPED,
    ),
}
