"""Sessions that are not settled: of active runs and of killed ones.

The journal of a killed run may say what its last session cost, or else its raw log. If neither does, the reservation
counts, but not more than the most expensive session so far.
"""

from __future__ import annotations

import contextlib
import platform
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from ralph.core.agent import Outcome
from ralph.core.errors import RalphError
from ralph.core.events import AgentEnded, AgentStarted, Charged, Reserved, RunStarted
from ralph.core.money import NOTHING, Amount, Basis, Elsewhere, amount_of
from ralph.host.process import tree
from ralph.host.process.table import ProcessId
from ralph.journal.ledger import Book, Reserve, Settle, local_day
from ralph.journal.reading import read
from ralph.workspace.killed_sessions import outcome_so_far

_BELIEVED = 24 * 3600.0
"""Seconds for which a run on another machine is assumed to be active."""

Charge = Callable[[str, int, str, str, Outcome], Charged]


def elsewhere_in(book: Book, run: str, now: float) -> Elsewhere:
    """What all runs have spent, as `run` sees it: reservations of killed runs count as spent."""
    today = local_day(now)
    day, ever, held = book.since(today), book.ever, NOTHING
    for line in book.open:
        amount = Amount(line.micros or 0, line.tokens)
        if line.run != run and is_alive(line, now):
            held += amount
            continue
        ever += amount
        day += amount if local_day(line.t) >= today else NOTHING
    return Elsewhere(day, ever, held)


def is_alive(line: Reserve, now: float) -> bool:
    if line.host != platform.node():
        return now - line.t < _BELIEVED
    return tree.is_alive(ProcessId(line.pid, line.start))


def settle_dead(lines: Iterable[Reserve], charge: Charge, now: float, most: int = 0) -> Iterator[Settle]:
    """`most`: micros of the most expensive session so far; 0: none is known."""
    for line in lines:
        basis, micros, tokens = Basis.RESERVED, line.micros, line.tokens
        if micros is not None and most:
            micros = min(micros, most)
        found = _what_it_cost(line, charge)
        if found is not None:
            amount = amount_of(found)
            basis, micros, tokens = found.basis, None if amount.unknown else amount.micros, amount.tokens
        yield Settle(
            id=line.id,
            t=min(line.t, now),
            run=line.run,
            plan=line.plan,
            story=line.story,
            basis=basis,
            micros=micros,
            tokens=tokens,
        )


def _what_it_cost(line: Reserve, charge: Charge) -> Charged | None:
    """None: neither the journal nor the raw log can be read."""
    reserved: Reserved | None = None
    running: AgentStarted | None = None
    agent = ""
    with contextlib.suppress(RalphError, OSError):
        for record in read(Path(line.journal)):
            match record.event:
                case Charged(id=name) as event if name == line.id:
                    return event
                case RunStarted() as event:
                    agent = event.agent
                case Reserved(id=name) as event if name == line.id:
                    reserved = event
                case AgentStarted() as event if reserved:
                    running = event
                case AgentEnded(outcome=outcome) if reserved:
                    return charge(line.id, reserved.iteration, line.story, "", outcome)
        if running is not None:
            so_far = outcome_so_far(Path(line.journal), running, agent)
            return charge(line.id, running.iteration, line.story, "", so_far) if so_far.used.total else None
    return None
