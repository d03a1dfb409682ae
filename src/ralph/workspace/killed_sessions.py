"""Sessions that never reported an end, because their loop was killed: what their raw log shows, and what that costs.

The raw log has the tokens of every message the model answered. They are priced at list prices and marked as estimated.
The journal of a killed run may say what its last session cost. If neither does, the reservation counts, but not more
than the most expensive session so far.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from ralph.config.prices import PriceTable
from ralph.core.agent import Outcome, Tokens
from ralph.core.errors import RalphError
from ralph.core.events import AgentEnded, AgentStarted, Charged, IterationStarted, Record, Reserved, RunStarted
from ralph.core.evidence import Ended, How
from ralph.core.money import MICROS, NOTHING, Amount, Basis, Elsewhere, amount_of, micros, whole_tokens
from ralph.core.text import estimate_tokens
from ralph.host import locks
from ralph.journal.ledger import Book, Reserve, Settle, local_day
from ralph.journal.records import Journal, read
from ralph.state.names import RAW
from ralph.state.runs import raw_name
from ralph.workspace.agent_stream import AgentStream

_KILLED = "the loop was killed"


def charge(prices: PriceTable, name: str, iteration: int, story: str, model: str, outcome: Outcome) -> Charged:
    """The cost the session reported; else its tokens at list prices; else unknown."""
    model = outcome.model or model
    reported, tokens = micros(outcome.cost_usd), outcome.used
    usd: float | None = None if reported is None else reported / MICROS
    basis = Basis.UNKNOWN if usd is None else Basis.REPORTED
    if (unpriced := outcome.heard if usd is not None else tokens).total:
        estimated = prices.cost(model, unpriced)
        if micros(estimated) is not None and estimated is not None:
            usd, basis = round((usd or 0) + estimated, 6), Basis.ESTIMATED
    return Charged(
        iteration=iteration,
        story=story,
        id=name,
        basis=basis,
        usd=usd,
        tokens=whole_tokens(tokens.total),
        model=model,
    )


def outcome_so_far(journal: Path, session: AgentStarted, agent: str) -> Outcome:
    """What the raw log of a session shows. A session that was killed before the first answer had sent its prompt.

    `agent`: the run's, for journals whose sessions do not name theirs.
    """
    raw = journal.parent / RAW / raw_name(session.iteration, session.step)
    stream = AgentStream(raw, session.agent or agent)
    stream.poll()
    stream.close()
    outcome = stream.outcome
    if outcome.model and not outcome.used.total and outcome.cost_usd is None:
        prompt = Tokens(input=estimate_tokens(" " * session.prompt))
        return msgspec.structs.replace(outcome, heard=prompt)
    return outcome


class _Session(Struct):
    """The last session of an iteration."""

    story: str
    started: AgentStarted | None = None
    ended: AgentEnded | None = None
    name: str = ""


def close_sessions(journal: Journal, records: Iterable[Record], prices: PriceTable) -> None:
    """Write the missing ends of a killed run's last sessions, and their cost, to the run's journal."""
    run = agent = ""
    count = 0
    sessions: dict[int, _Session] = {}
    for record in records:
        event = record.event
        match event:
            case RunStarted():
                run, agent = event.run, event.agent
            case IterationStarted():
                sessions[event.iteration] = _Session(event.story)
            case Reserved() if event.iteration in sessions:
                sessions[event.iteration].name = event.id
            case AgentStarted() if event.iteration in sessions:
                sessions[event.iteration].started, sessions[event.iteration].ended, count = event, None, count + 1
            case AgentEnded() if event.iteration in sessions:
                sessions[event.iteration].started, sessions[event.iteration].ended = None, event
            case Charged() if event.iteration in sessions:
                sessions[event.iteration] = _Session(sessions[event.iteration].story)
    for number, one in sessions.items():
        if one.started is not None:
            outcome = outcome_so_far(journal.path, one.started, agent)
            killed = Ended(How.STOPPED, detail=_KILLED)
            one.ended = AgentEnded(iteration=number, step=one.started.step, ended=killed, outcome=outcome)
            journal.write(one.ended)
        if one.ended is not None:
            name = one.name or f"{run}/{number}/{count}"
            journal.write(charge(prices, name, number, one.story, "", one.ended.outcome))


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
    alive = locks.is_alive(line.host, line.pid, line.start)
    return now - line.t < _BELIEVED if alive is None else alive


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
