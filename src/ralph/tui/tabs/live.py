"""Live: what the agent writes, and its calls with their results and durations."""

from __future__ import annotations

from collections.abc import Iterator

from ralph.core.text import one_line
from ralph.tui.rows import BLANK, Row, Rows, head, row, wrapped
from ralph.tui.scene import Scene, attempt_head
from ralph.views.attempts import AgentSession
from ralph.views.columns import cells, fit
from ralph.views.transcript import EntryKind, TranscriptEntry
from ralph.views.words import seconds

_MOST_SESSIONS = 20
_PREVIEW = 3
"""Lines of a failed call that are shown without unfolding it."""
_MOST_LINES = 2000


def rows(scene: Scene) -> Rows:
    return list(_rows(scene))


def _rows(scene: Scene) -> Iterator[Row]:
    yield from attempt_head(scene)
    attempt = scene.attempt
    if attempt is None:
        return
    for note in attempt.notes:
        yield from wrapped(note, scene.room, "warn", lead="✎ ")
    sessions = attempt.sessions[-_MOST_SESSIONS:]
    for number, session in enumerate(sessions):
        is_last = session is sessions[-1]
        yield BLANK
        if len(sessions) > 1:
            key = f"s{attempt.iteration}.{number}"
            model = f", {one_line(session.model, 40)}" if session.model else ""
            name = f"session {one_line(session.step, 40)} by {one_line(session.agent, 40)}{model}"
            yield Row((*row((f"{'▾' if is_last or key in scene.toggled else '▸'} {name}", "bold")).parts,), key, True)
        if is_last or scene.is_open(f"s{attempt.iteration}.{number}"):
            yield from _session(scene, session, f"{attempt.iteration}.{number}")
    if attempt.refused:
        yield BLANK
        yield head("Refused")
        for each in attempt.refused:
            yield from wrapped(each, scene.room, "warn", lead="  ")
    if attempt.ended is not None:
        yield BLANK
        for line in (attempt.ended.headline, *attempt.ended.reasons):
            yield from wrapped(line, scene.room, "" if line == attempt.ended.headline else "dim")
        for line in attempt.ended.notices:
            yield from wrapped(line, scene.room, "warn", lead="⚠ ")


def _session(scene: Scene, session: AgentSession, name: str) -> Iterator[Row]:
    assert scene.attempt is not None
    is_running = scene.is_running and session.until is None
    text = scene.source.session(scene.attempt, session, is_running=is_running)
    if text.dropped:
        yield row((f"… {text.dropped} earlier entries: ralph log --agent {scene.attempt.iteration}", "dim"))
    for entry in text.entries:
        yield from entry_rows(scene, entry, f"e{name}.{entry.number}", is_running=is_running)
    if text.is_reading:
        yield row(("reading the log …", "dim"))
    elif is_running:
        yield row(("▌", "info"))
    elif session.detail and not text.entries:
        yield from wrapped(session.detail, scene.room, "bad")


def entry_rows(scene: Scene, entry: TranscriptEntry, key: str, *, is_running: bool) -> Iterator[Row]:
    if entry.kind is EntryKind.CALL:
        yield from _call(scene, entry, key, is_running=is_running)
    elif entry.kind is EntryKind.TEXT:
        yield from wrapped(entry.text, scene.room, key=key)
        if entry.is_cut:
            yield row(("… cut here", "dim"), key=key)
    else:
        style = "bold" if entry.kind is EntryKind.RESULT else "dim"
        yield from wrapped(entry.text, scene.room, style, key=key)


def _near(scene: Scene, text: str) -> str:
    """Paths relative to where the agent works."""
    first = scene.view.first
    for place in (first.workspace, first.checkout) if first else ():
        text = text.replace(f"{place}/", "") if place else text
    return text


def _call(scene: Scene, entry: TranscriptEntry, key: str, *, is_running: bool) -> Iterator[Row]:
    took = seconds(entry.seconds) if entry.seconds is not None else ""
    sign, word, style = ("✓", "", "dim") if entry.ok else ("✗", "failed", "bad")
    if entry.ok is None:
        sign, word, style = ("…", "running", "info") if is_running else ("–", "no result", "dim")
    lines = entry.answer.splitlines()
    full = f"{entry.tool} {_near(scene, entry.text)}".strip()
    is_open = scene.is_open(key)
    mark = ("▾" if is_open else "▸") if lines or "\n" in full else " "
    end = " ".join(filter(None, (sign, word, took)))
    name = fit(full, max(scene.room - 4 - cells(end), 10))
    yield row((f"{mark} ", "dim"), (name, "key"), (f" {end}", style), key=key, folds=True, whole=full)
    if is_open:
        if "\n" in full or name.endswith("…"):
            yield from wrapped(full, scene.room, "key", lead="    ", key=key)
        yield from list(wrapped("\n".join(lines), scene.room, "", lead="  │ ", key=key))[:_MOST_LINES]
        if entry.is_cut:
            yield row(("  │ … cut here", "dim"), key=key)
    elif entry.ok is False:
        yield from (
            row(("  │ ", "dim"), (fit(line, scene.room - 4), "dim"), key=key, whole=line) for line in lines[-_PREVIEW:]
        )
