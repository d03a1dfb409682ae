"""Error identity: the same failure has the same fingerprint, whatever its paths, numbers, times and addresses."""

from __future__ import annotations

import hashlib
import re

_VARYING = (
    (re.compile(r"\x1b\[[0-9;]*m"), ""),
    (re.compile(r"\b[0-9a-f]{7,64}\b", re.IGNORECASE), "<hash>"),
    (re.compile(r"\b0x[0-9a-f]+\b", re.IGNORECASE), "<address>"),
    (re.compile(r"(?:[A-Za-z]:)?(?:[\\/][\w.@+-]+){2,}[\\/]?"), "<path>"),
    (re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?"), "<time>"),
    (re.compile(r"\d+(?:[.,]\d+)*"), "<n>"),
    (re.compile(r"\s+"), " "),
)


def fingerprint(text: str) -> str:
    for pattern, word in _VARYING:
        text = pattern.sub(word, text)
    text = text.strip().lower()
    return hashlib.sha256(text.encode()).hexdigest()[:16] if text else ""
