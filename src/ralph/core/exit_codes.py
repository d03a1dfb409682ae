"""The table of exit codes. `docs/exit-codes.md` is generated from it."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    meaning: str

    def __new__(cls, code: int, meaning: str) -> ExitCode:
        member = int.__new__(cls, code)
        member._value_ = code
        member.meaning = meaning
        return member

    COMPLETE = 0, "complete"
    UNFINISHED = 1, "stopped before completion (iteration cap, breaker, final checks, network, `ralph stop`)"
    USAGE_LIMIT = 2, "usage limit, and the user or the policy chose to exit"
    WAITING = 3, "waiting for the user"
    BUDGET = 4, "budget spent"
    FAILED_STORIES = 5, "the remaining stories failed; other attempts of this run may have been accepted"
    TIME_CAP = 6, "the run reached its time limit (`max_run_time`); nothing is wrong with the work so far"
    USAGE = 64, "command line usage error"
    BAD_DATA = 65, "invalid data (plan, config)"
    BUG = 70, "internal error; see the log file named in the message"
    LOCKED = 73, "lock held by another run"
    ENVIRONMENT = 78, "configuration or environment error (agent missing, check not installed, not a git repository)"
    TIMED_OUT = 124, "the single iteration (--once) timed out"
    INTERRUPTED = 130, "SIGINT"
    TERMINATED = 143, "SIGTERM"
