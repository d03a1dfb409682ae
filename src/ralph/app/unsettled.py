"""Sessions of runs that were killed: their journals may tell what they cost; else what was set aside counts."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from ralph.core.agent import Outcome
from ralph.core.errors import RalphError
from ralph.core.events import AgentEnded, Charged, Reserved
from ralph.core.ledger import Reserve, Settle
from ralph.core.purse import amount_of
from ralph.core.spending import Basis
from ralph.journal.reading import read

Charge = Callable[[str, int, str, str, Outcome], Charged]


def settle_dead(lines: Iterable[Reserve], charge: Charge, now: float) -> Iterator[Settle]:
    for line in lines:
        basis, micros, tokens = Basis.RESERVED, line.micros, line.tokens
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
    """None: the session was under way when its run was killed."""
    reserved: Reserved | None = None
    with contextlib.suppress(RalphError, OSError):
        for record in read(Path(line.journal)):
            match record.event:
                case Charged(id=name) as event if name == line.id:
                    return event
                case Reserved(id=name) as event if name == line.id:
                    reserved = event
                case AgentEnded(outcome=outcome) if reserved:
                    return charge(line.id, reserved.iteration, line.story, "", outcome)
    return None
