"""Errors that are sentences a user can act on.

    RalphError                 exit code  hint
    ├── UsageError             64         the command line is wrong
    ├── BadData                65         a file is wrong; carries every problem found in it
    │   ├── PlanError
    │   └── ConfigError
    ├── IllegalChange          65         a change to a plan that its rules do not allow
    ├── LockHeld               73         another run has the plan
    ├── StoppedNow             130, 143   a request to stop ended it in the middle
    └── SetupError             78         the environment is not ready
        ├── NotARepository
        ├── NotTrusted
        └── Unsupported        this platform cannot do it

One boundary, `cli.main`, catches `RalphError` and turns it into lines on stderr and an exit code.
"""

from __future__ import annotations

from collections.abc import Sequence

from ralph.core.exit_codes import ExitCode
from ralph.core.problems import Place, Problem


class RalphError(Exception):
    exit_code = ExitCode.UNFINISHED

    def __init__(self, message: str, *, hint: str = "", where: Place | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.where = where

    def __str__(self) -> str:
        where = str(self.where or "")
        return f"{where}: {self.message}" if where else self.message


class UsageError(RalphError):
    exit_code = ExitCode.USAGE


class BadData(RalphError):
    """One or more problems in a file. Nothing is written after this error."""

    exit_code = ExitCode.BAD_DATA

    def __init__(
        self,
        message: str,
        *,
        hint: str = "",
        where: Place | None = None,
        problems: Sequence[Problem] = (),
    ) -> None:
        super().__init__(message, hint=hint, where=where)
        self.problems = tuple(problems)

    @classmethod
    def of(cls, problems: Sequence[Problem]) -> BadData:
        """An error of this class that shows the first problem and carries all of them."""
        first = problems[0]
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        return cls(first.message + more, hint=first.hint, where=first.where, problems=problems)


class PlanError(BadData):
    pass


class PlanEdited(PlanError):
    """Somebody changed the plan since it was read."""


class ConfigError(BadData):
    pass


class IllegalChange(RalphError):
    exit_code = ExitCode.BAD_DATA


class LockHeld(RalphError):
    exit_code = ExitCode.LOCKED


class StoppedNow(RalphError):
    def __init__(self, message: str, exit_code: ExitCode, *, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.exit_code = exit_code


class SetupError(RalphError):
    exit_code = ExitCode.ENVIRONMENT


class NotARepository(SetupError):
    pass


class NotTrusted(SetupError):
    pass


class Unsupported(SetupError):
    pass
