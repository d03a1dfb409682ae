"""An estimate of how many tokens a text takes, from the counts that agents report. Pure.

A session's first answer reports how much the model has read so far: the prompt, and what the client adds to it.
Sessions with prompts of different lengths separate the two.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

_ESTIMATE = 4.0
_FEWEST, _MOST = 2.0, 8.0
"""Characters per token. Ratios outside this range are not plausible for text."""
_ENOUGH = 3
_SPREAD = 1000
"""The minimum difference between prompts, in characters, to derive a ratio."""


class Sample(Struct, frozen=True):
    chars: int
    """Length of the prompt in characters."""
    context: int
    """Tokens the model had read with its first answer."""


class Gauge(Struct, frozen=True):
    chars_per_token: float = _ESTIMATE
    overhead: int | None = None
    """Tokens the client adds to every prompt; None: unknown."""
    samples: int = 0
    """Sessions whose counts this is based on; 0: an estimate."""
    is_measured: bool = False
    """The ratio is measured as well."""

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
    """The slope of the line through the samples; None if they are too few, too similar or implausible."""
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
