"""The events of the journal that are about money and tokens; `events` has the others."""

from __future__ import annotations

from msgspec import Struct

from ralph.core.spending import Amount, Basis, Elsewhere, Extent, Need


class Event(Struct, frozen=True, tag_field="type", tag=True):
    """Base of all events; the tag is the class name."""


class Reserved(Event, frozen=True, kw_only=True):
    """A reservation for a session that is about to start. It counts until the actual cost is recorded."""

    iteration: int
    id: str
    usd: float | None = None  # none: only tokens are bounded
    tokens: int = 0


class Charged(Event, frozen=True, kw_only=True):
    """The cost of a session, and where the figure comes from."""

    iteration: int
    story: str
    id: str
    basis: Basis
    usd: float | None = None
    tokens: int = 0
    model: str = ""
    extent: Extent = Extent.UNKNOWN


class SpendingSeen(Event, frozen=True, kw_only=True):
    """Spending of all runs of the workspace, before a decision that depends on it."""

    elsewhere: Elsewhere = Elsewhere()
    stories: dict[str, Amount] = {}  # spending of earlier runs on the stories of this plan; recorded once
    needs: dict[str, Need] = {}  # what their sessions cost at least; recorded once


class Foreseen(Event, frozen=True, kw_only=True):
    """The forecast to finish: figures for the 50% and the 90% case."""

    stories: int  # that are still open
    samples: int  # finished stories of this workspace it is based on; 0: a guess
    iterations: tuple[float, float]
    seconds: tuple[float, float]
    usd: tuple[float, float] | None = None
    tokens: tuple[float, float] | None = None
    chance: float | None = None  # of finishing within the budget. None: there is no budget, or too little is known
