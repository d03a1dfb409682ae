"""`ralph doctor`: one probe per topic, all in parallel. A probe that fails or hangs does not affect the others."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TypeVar

from msgspec import Struct

from ralph.core.errors import RalphError
from ralph.core.text import one_line

PATIENCE = 2.6
"""Seconds for all probes together. They run in parallel."""

T = TypeVar("T")


class Level(StrEnum):
    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


class Finding(Struct, frozen=True):
    level: Level
    text: str
    fix: str = ""


class Line(Struct, frozen=True):
    """A finding and the topic it belongs to."""

    topic: str
    level: Level
    text: str
    fix: str = ""


class Patient(Struct, frozen=True):
    """What the probes check."""

    here: Path
    root: Path | None
    """The workspace, if there is one."""
    env: Mapping[str, str]

    @property
    def folder(self) -> Path:
        return self.root or self.here


Probe = Callable[[Patient], Iterable[Finding]]


def ok(text: str) -> Finding:
    return Finding(Level.OK, text)


def warn(text: str, fix: str) -> Finding:
    return Finding(Level.WARN, text, fix)


def fail(text: str, fix: str) -> Finding:
    return Finding(Level.FAIL, text, fix)


def examine(patient: Patient, probes: Mapping[str, Probe], patience: float = PATIENCE) -> list[Line]:
    """The findings of every probe, in table order. A probe that takes too long is reported as such."""
    results = at_once({topic: partial(_findings, probe, patient) for topic, probe in probes.items()}, patience)
    late = [warn(f"no answer within {patience:g} seconds", "try again; check whether a drive or the network hangs")]
    return [
        Line(topic, finding.level, one_line(finding.text), one_line(finding.fix))
        for topic in probes
        for finding in results.get(topic, late)
    ]


def _findings(probe: Probe, patient: Patient) -> list[Finding]:
    try:
        return list(probe(patient))
    except RalphError as error:
        return [fail(str(error), error.hint or "see `ralph check`")]
    except Exception as error:  # noqa: BLE001 - one broken probe must not hide what the others found
        return [warn(f"the probe failed: {type(error).__name__}: {error}", "report this as a bug")]


def at_once(questions: Mapping[str, Callable[[], T]], patience: float) -> dict[str, T]:
    """Run all probes in parallel and return the answers that arrive in time."""
    answers: dict[str, T] = {}

    def ask(name: str, question: Callable[[], T]) -> None:
        answers[name] = question()

    # Daemons: one that hangs in the kernel, on a dead network drive say, must not keep Ralph from ending.
    threads = [threading.Thread(target=ask, args=item, daemon=True) for item in questions.items()]
    for thread in threads:
        thread.start()
    until = time.monotonic() + patience
    for thread in threads:
        thread.join(max(until - time.monotonic(), 0))
    return dict(answers)


def is_well(lines: Iterable[Line]) -> bool:
    return not any(line.level is Level.FAIL for line in lines)
