"""What an agent can say to the loop in a file of its own: a claim, a question. Read leniently, believed never."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from ralph.core.evidence import Claim
from ralph.core.text import clean

_LONGEST = 2000


class Request(Struct, frozen=True):
    claim: Claim | None = None
    ask: str = ""
    complete: bool = False
    """A COMPLETE file was left: a claim about the whole plan."""
    waiting: str = ""
    """The text of a WAITING file."""


class _Wire(Struct):
    claim: str = ""
    ask: str = ""


def read_request(data: bytes) -> Request:
    """Anything that cannot be understood is no request."""
    try:
        wire = msgspec.json.decode(data, type=_Wire)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return Request()
    word = wire.claim.strip().lower().replace("_", "-").replace(" ", "-")
    claim = Claim(word) if word in set(Claim) else None
    return Request(claim, clean(wire.ask).strip()[:_LONGEST])
