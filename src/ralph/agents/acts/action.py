"""The base class of actions."""

from __future__ import annotations

from msgspec import Struct

from ralph.agents.stage import Stage


class Action(Struct, frozen=True, forbid_unknown_fields=True):
    """One action of a scripted agent. Its fields are its settings; the first one may be passed without its name."""

    def play(self, stage: Stage) -> None:
        raise NotImplementedError
