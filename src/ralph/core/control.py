"""Requests to a running run, and their combined effect. Pure."""

from __future__ import annotations

from enum import StrEnum

import msgspec
from msgspec import Struct


class Verb(StrEnum):
    PAUSE = "pause"
    RESUME = "resume"
    STOP = "stop"
    """After the current iteration."""
    STOP_NOW = "stop-now"
    """At once, like Ctrl-C."""


class Order(Struct, frozen=True, kw_only=True):
    """One request to one run. It has no effect on any other run."""

    verb: Verb
    run: str
    at: float


class Note(Struct, frozen=True, kw_only=True):
    """A note from the user for the next iteration; with a story, for the next iteration on that story."""

    text: str
    at: float
    story: str = ""

    def is_for(self, story: str) -> bool:
        return not self.story or self.story == story


class Wish(Struct, frozen=True):
    """The combined requests so far. A stop cannot be withdrawn."""

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
