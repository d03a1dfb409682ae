"""A problem: what is wrong, where, and what to do about it."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


class Severity(StrEnum):
    ERROR = "error"
    WARNING = "warning"


class Place(Struct, frozen=True):
    """Where in a file. `path` is a key path such as `userStories[2].title`."""

    file: str = ""
    line: int | None = None
    column: int | None = None
    path: str = ""

    def __str__(self) -> str:
        text = self.file
        if self.line is not None:
            text += f":{self.line}"
            if self.column is not None:
                text += f":{self.column}"
        if self.path:
            text += f" ({self.path})" if text else self.path
        return text


class Problem(Struct, frozen=True):
    """`code` is a short stable word for tests, filters and documentation, e.g. `duplicate-id`."""

    code: str
    message: str
    where: Place = Place()
    hint: str = ""
    severity: Severity = Severity.ERROR
    story: str = ""

    def __str__(self) -> str:
        where = str(self.where)
        return f"{where}: {self.message}" if where else self.message
