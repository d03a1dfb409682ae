"""Adds up hours. A line of the log is `date,project,hours`; lines that begin with `#` are notes.

python3 tally.py total hours.csv
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable
from datetime import date
from typing import NamedTuple


class Entry(NamedTuple):
    day: date
    project: str
    hours: float


def read(lines: Iterable[str]) -> list[Entry]:
    """The entries of a log. Raises ValueError for a line that is none, with its number."""
    entries = []
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith("#"):
            continue
        try:
            day, project, hours = next(csv.reader([line]))
            entries.append(Entry(date.fromisoformat(day.strip()), project.strip(), float(hours)))
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from None
    return entries


def totals(entries: Iterable[Entry]) -> dict[str, float]:
    """Project → hours, in the order they first appear."""
    found: dict[str, float] = {}
    for entry in entries:
        found[entry.project] = found.get(entry.project, 0) + entry.hours
    return found


def main(argv: list[str]) -> int:
    if len(argv) != 2 or argv[0] != "total":
        print("usage: tally.py total FILE", file=sys.stderr)
        return 2
    with open(argv[1], encoding="utf-8") as stream:
        for project, hours in totals(read(stream)).items():
            print(f"{project:<20} {hours:6.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
