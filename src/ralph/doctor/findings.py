"""Findings of `ralph doctor` and its `preflight`: one probe per topic. One that fails does not affect the others."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct

from ralph.core.errors import RalphError
from ralph.core.text import one_line

if TYPE_CHECKING:
    from ralph.run.spec import Launched

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


class Subject(Struct, frozen=True):
    """What the probes look at."""

    here: Path
    root: Path | None
    """The workspace, if there is one."""
    env: Mapping[str, str]
    prepared: Launched | None = None
    """The run that would start; `ralph doctor` looks at every plan instead."""

    @property
    def folder(self) -> Path:
        return self.root or self.here


Probe = Callable[[Subject], Iterable[Finding]]


def ok(text: str) -> Finding:
    return Finding(Level.OK, text)


def warn(text: str, fix: str) -> Finding:
    return Finding(Level.WARN, text, fix)


def fail(text: str, fix: str) -> Finding:
    return Finding(Level.FAIL, text, fix)


def examine(subject: Subject, probes: Mapping[str, Probe], patience: float | None = PATIENCE) -> list[Line]:
    """The findings of every probe, in table order. A probe that takes too long is reported as such.

    `patience` None: one after the other, each for as long as it takes."""
    questions = {topic: partial(_findings, probe, subject) for topic, probe in probes.items()}
    if patience is None:
        results = {topic: question() for topic, question in questions.items()}
    else:
        results = at_once(questions, patience)
    late = [warn(f"no answer within {patience} seconds", "try again; check whether a drive or the network hangs")]
    return [
        Line(topic, finding.level, one_line(finding.text, 400), one_line(finding.fix, 300))
        for topic in probes
        for finding in results.get(topic, late)
    ]


def _findings(probe: Probe, subject: Subject) -> list[Finding]:
    findings: list[Finding] = []
    try:
        findings.extend(probe(subject))
    except RalphError as error:
        findings.append(fail(listed(error), error.hint or "see `ralph check`"))
    except Exception as error:  # noqa: BLE001 - one broken probe must not hide what the others found
        text, fix = f"the probe failed: {type(error).__name__}: {error}", "report this as a bug"
        findings.append(fail(text, fix) if subject.prepared else warn(text, fix))  # a run must not start on a guess
    return findings


def listed(error: RalphError) -> str:
    """On one line, with commas between the entries of a list."""
    head, *entries = str(error).splitlines() or [""]
    return f"{head} {', '.join(entry.strip() for entry in entries)}" if entries else head


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
