"""Sessions that never reported an end, because their loop was killed: what their raw log shows, and what that costs.

The raw log has the tokens of every message the model answered. They are priced at list prices and marked as estimated.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from ralph.config.prices import PriceTable
from ralph.core.agent import Outcome, Tokens
from ralph.core.events import AgentEnded, AgentStarted, Charged, IterationStarted, Record, Reserved, RunStarted
from ralph.core.evidence import Ended, How
from ralph.core.money import MICROS, Basis, micros, whole_tokens
from ralph.core.text import estimate_tokens
from ralph.journal.runs import RAW, raw_name
from ralph.journal.writing import Journal
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


def close_sessions(journal: Journal, records: Iterable[Record], prices: PriceTable) -> None:
    """Write the missing end of a killed run's last session, and its cost, to the run's journal."""
    run = agent = story = ""
    session: AgentStarted | None = None
    ended: AgentEnded | None = None
    name, count = "", 0
    for record in records:
        match record.event:
            case RunStarted():
                run, agent = record.event.run, record.event.agent
            case IterationStarted(story=of):
                story = of
            case Reserved(id=reserved):
                name = reserved
            case AgentStarted():
                session, ended, count = record.event, None, count + 1
            case AgentEnded():
                session, ended = None, record.event
            case Charged():
                session, ended, name = None, None, ""
    if session is not None:
        outcome = outcome_so_far(journal.path, session, agent)
        killed = Ended(How.STOPPED, detail=_KILLED)
        ended = AgentEnded(iteration=session.iteration, step=session.step, ended=killed, outcome=outcome)
        journal.write(ended)
    if ended is not None:
        journal.write(
            charge(prices, name or f"{run}/{ended.iteration}/{count}", ended.iteration, story, "", ended.outcome)
        )
