"""How many tokens a text takes, by what agents have counted themselves. Pure.

A session's first answer says how much the model has read by then: the prompt, and what the client adds to it. Sessions
with prompts of different lengths tell the two apart.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

_ESTIMATE = 4.0
_FEWEST, _MOST = 2.0, 8.0
"""Characters a token. What is outside of this is no text, or no count of it."""
_ENOUGH = 3
_SPREAD = 1000
"""Characters by which prompts have to differ to tell anything."""


class Sample(Struct, frozen=True):
    chars: int
    """Of the prompt."""
    context: int
    """What the model had read with its first answer, in tokens."""


class Gauge(Struct, frozen=True):
    chars_per_token: float = _ESTIMATE
    overhead: int | None = None
    """What the client itself adds to every prompt, in tokens; None: nobody knows."""
    samples: int = 0
    """Sessions whose counts this comes from; 0: it is an estimate."""
    is_measured: bool = False
    """The ratio is measured, too."""

    def tokens(self, text: str) -> int:
        return self.of_length(len(text))

    def of_length(self, chars: int) -> int:
        return -int(-chars // self.chars_per_token)


def calibrate(samples: Iterable[Sample]) -> Gauge:
    known = [sample for sample in samples if sample.chars > 0 and sample.context > 0]
    if not known:
        return Gauge()
    ratio, is_measured = _ratio(known), True
    if ratio is None:
        ratio, is_measured = _ESTIMATE, False
    added = sorted(sample.context - sample.chars / ratio for sample in known)
    return Gauge(ratio, max(int(added[len(added) // 2]), 0), len(known), is_measured)


def _ratio(samples: list[Sample]) -> float | None:
    """The slope of the line through them, or nothing when they are too few, too alike, or make no sense."""
    lengths = [sample.chars for sample in samples]
    if len(samples) < _ENOUGH or max(lengths) - min(lengths) < _SPREAD:
        return None
    middle = sum(lengths) / len(samples)
    mean = sum(sample.context for sample in samples) / len(samples)
    rise = sum((sample.chars - middle) * (sample.context - mean) for sample in samples)
    if rise <= 0:
        return None
    ratio = sum((length - middle) ** 2 for length in lengths) / rise
    return ratio if _FEWEST <= ratio <= _MOST else None
