"""Exit codes: the one table of them. `docs/exit-codes.md` is generated from it."""

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
    UNFINISHED = 1, "stopped unfinished (cap, breaker, failed stories, `ralph stop`)"
    USAGE_LIMIT = 2, "usage limit, and the user or the policy chose to exit"
    WAITING = 3, "waiting for a human"
    BUDGET = 4, "budget used up"
    USAGE = 64, "wrong usage of the command line"
    BAD_DATA = 65, "bad data (plan, config)"
    BUG = 70, "an internal error; see the log it names"
    LOCKED = 73, "lock held by another run"
    ENVIRONMENT = 78, "configuration or environment (agent missing, check not installed, not a git repository)"
    TIMED_OUT = 124, "the single iteration of --once timed out"
    INTERRUPTED = 130, "SIGINT"
    TERMINATED = 143, "SIGTERM"
