"""What an action is."""

from __future__ import annotations

from msgspec import Struct

from ralph.agents.stage import Stage


class Action(Struct, frozen=True, forbid_unknown_fields=True):
    """One thing a scripted agent does. Its fields are its settings; the first one may be given without its name."""

    def play(self, stage: Stage) -> None:
        raise NotImplementedError
