"""Beads, the issue tracker that the steps of a spec may refer to: `br`, or its older form `bd`, if one is on PATH.

A spec and its beads agree if a step is ticked exactly when its bead is closed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from ralph.core.errors import BadData, SetupError, UsageError
from ralph.core.lazy_pattern import lazy_pattern
from ralph.core.plan import Plan
from ralph.core.text import one_line
from ralph.host.process import start as proc
from ralph.host.process.programs import which

TOOLS = ("br", "bd")
FOLDER = ".beads"
EXPORT = ".beads/issues.jsonl"
"""The part of the beads that git tracks; the database beside it is ignored."""
STATUSES = ("open", "in_progress", "blocked", "deferred", "closed")
_ID = lazy_pattern(r"[A-Za-z][A-Za-z0-9_]*(?:-[A-Za-z0-9_]+)+(?:\.[0-9]+)*")
_AT_ONCE = 50


class NoSuchBead(BadData):
    pass


class Bead(Struct, frozen=True):
    """One issue. Nearly every field of the tool's answer may be missing or null."""

    id: str
    title: str = ""
    status: str = ""
    description: str = ""
    design: str = ""
    acceptance_criteria: str = ""
    notes: str = ""


class _Failure(Struct):
    code: str | None = None
    message: str | None = None
    hint: str | None = None


class _Failed(Struct):
    error: _Failure


def find(env: Mapping[str, str], root: Path, tool: str = "") -> Beads | None:
    """The tracker of this workspace: the named tool, or the first one installed."""
    for name in (tool,) if tool else TOOLS:
        if program := which(name, env.get("PATH", ""), outside=root):
            return Beads(program, root, env)
    return None


class Beads:
    def __init__(self, program: str, root: Path, env: Mapping[str, str], timeout: float = 30) -> None:
        self._program = program
        self._root = root
        self._env = dict(env)
        self._timeout = timeout

    @property
    def name(self) -> str:
        return Path(self._program).stem

    def show(self, bead_id: str) -> Bead:
        beads = self._show([bead_id])
        if not beads:
            raise NoSuchBead(f"{self.name} has no bead {bead_id}", hint=f"list the beads with `{self.name} list`")
        return beads[0]

    def statuses(self, ids: Iterable[str]) -> dict[str, str]:
        """The status of each existing bead. One call for many; if one is missing, each is asked for separately."""
        wanted = list(dict.fromkeys(ids))
        statuses: dict[str, str] = {}
        for start in range(0, len(wanted), _AT_ONCE):
            some = wanted[start : start + _AT_ONCE]
            with contextlib.suppress(NoSuchBead):
                statuses |= {bead.id: bead.status for bead in self._show(some)}
            for bead_id in some:
                if bead_id not in statuses:
                    with contextlib.suppress(NoSuchBead):
                        statuses[bead_id] = self.show(bead_id).status
        return {bead_id: statuses[bead_id] for bead_id in wanted if bead_id in statuses}

    def close(self, bead_id: str, reason: str) -> None:
        self._run("close", _checked(bead_id), f"--reason={one_line(reason)}")

    def set_status(self, bead_id: str, status: str) -> None:
        if status not in STATUSES:
            raise UsageError(f"{one_line(status, 40)!r} is not a valid bead status", hint=f"use {', '.join(STATUSES)}")
        self._run("update", _checked(bead_id), f"--status={status}")

    def _show(self, ids: list[str]) -> list[Bead]:
        """`show` answers with a list, or with the single bead."""
        out = self._run("show", *(_checked(bead_id) for bead_id in ids))
        try:
            answer = msgspec.json.decode(out, type=list[dict[str, Any]] | dict[str, Any])
            return [_bead(fields) for fields in (answer if isinstance(answer, list) else [answer])]
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            output = one_line(out.decode(errors="replace"), 80)
            raise BadData(
                f"{self.name} did not return beads as JSON ({error}): {output!r}",
                hint=f"run `{self.name} show {ids[0]} --json` to see what it prints",
            ) from None

    def _run(self, *words: str) -> bytes:
        done = proc.run([self._program, *words, "--json"], cwd=self._root, env=self._env, timeout=self._timeout)
        if done.timed_out:
            raise SetupError(
                f"{self.name} did not respond within {self._timeout:g} seconds",
                hint=f"run `{self.name} {' '.join(words[:2])}` yourself; another program may be holding its database",
            )
        if done.code != 0:
            raise self._failed(done.code, done.err, done.out)
        return done.out

    def _failed(self, code: int, err: bytes, out: bytes) -> BadData | SetupError:
        failure = _failure(err) or _failure(out)
        if failure is None:
            output = one_line((err or out).decode(errors="replace"), 200)
            return SetupError(f"{self.name} failed with exit code {code}" + (f": {output}" if output else ""))
        message = f"{self.name}: {one_line(failure.message or failure.code or 'failed', 200)}"
        error = NoSuchBead if failure.code == "ISSUE_NOT_FOUND" else SetupError
        return error(message, hint=one_line(failure.hint or "", 200))


def _checked(bead_id: str) -> str:
    """An ID that cannot be mistaken for an option."""
    if not _ID.fullmatch(bead_id):
        raise UsageError(f"{one_line(repr(bead_id), 60)} is not a valid bead ID", hint="use an ID such as proj-a1b2")
    return bead_id


def _bead(fields: dict[str, Any]) -> Bead:
    return msgspec.convert({name: value for name, value in fields.items() if value is not None}, Bead)


def _failure(text: bytes) -> _Failure | None:
    """The error as JSON: the whole text, or its last JSON line, since log lines may precede it."""
    for part in (text, *reversed(text.splitlines())):
        try:
            return msgspec.json.decode(part, type=_Failed).error
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue
    return None


class Kind(StrEnum):
    DIFFERS = "differs"
    UNKNOWN = "unknown-bead"
    UNTRACKED = "untracked"
    """The step names no bead. That is not a contradiction."""


class Difference(Struct, frozen=True):
    step: str
    ref: str
    kind: Kind
    spec: str
    """The state in the spec: `done` or `open`."""
    beads: str
    """The status of the bead; empty if there is none."""

    @property
    def is_contradiction(self) -> bool:
        return self.kind is not Kind.UNTRACKED

    def __str__(self) -> str:
        return f"{one_line(self.step)}: {self.sentence}"

    @property
    def sentence(self) -> str:
        ref, status = one_line(self.ref), one_line(self.beads, 20)
        match self.kind:
            case Kind.UNTRACKED:
                return f"{self.spec} in the spec, names no bead"
            case Kind.UNKNOWN:
                return f"{self.spec} in the spec, but the bead {ref} {'was deleted' if status else 'does not exist'}"
            case _:
                return f"{self.spec} in the spec, but the bead {ref} is {status}"


def compare(plan: Plan, beads: Mapping[str, str]) -> list[Difference]:
    """The disagreements, in the order of the spec. `beads`: ID → status."""
    differences = []
    for story in plan.stories:
        state = "done" if story.is_done else "open"
        status = beads.get(story.ref, "")
        if not story.ref:
            differences.append(Difference(story.id, "", Kind.UNTRACKED, state, ""))
        elif status in ("", "tombstone"):  # a deleted bead leaves a tombstone
            differences.append(Difference(story.id, story.ref, Kind.UNKNOWN, state, status))
        elif (status == "closed") != story.is_done:
            differences.append(Difference(story.id, story.ref, Kind.DIFFERS, state, status))
    return differences
