"""What people can ask of a run that is under way, and what that adds up to. Pure."""

from __future__ import annotations

from enum import StrEnum

import msgspec
from msgspec import Struct


class Verb(StrEnum):
    PAUSE = "pause"
    RESUME = "resume"
    STOP = "stop"
    """When the iteration is over."""
    STOP_NOW = "stop-now"
    """As Ctrl-C does."""


class Order(Struct, frozen=True, kw_only=True):
    """One thing asked of one run. It means nothing to any other run."""

    verb: Verb
    run: str
    at: float


class Note(Struct, frozen=True, kw_only=True):
    """A person's guidance for the next iteration; with a story, for the next one on that story."""

    text: str
    at: float
    story: str = ""

    def is_for(self, story: str) -> bool:
        return not self.story or self.story == story


class Wish(Struct, frozen=True):
    """What people want of the run by now. Nothing takes a stop back."""

    pause: bool = False
    stop: bool = False
    now: bool = False

    @property
    def is_pause(self) -> bool:
        return self.pause and not self.stop

    @property
    def is_any(self) -> bool:
        return self.pause or self.stop

    def after(self, verb: Verb) -> Wish:
        match verb:
            case Verb.PAUSE:
                return msgspec.structs.replace(self, pause=True)
            case Verb.RESUME:
                return msgspec.structs.replace(self, pause=False)
            case Verb.STOP:
                return msgspec.structs.replace(self, stop=True)
            case Verb.STOP_NOW:
                return msgspec.structs.replace(self, stop=True, now=True)
