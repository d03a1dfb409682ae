"""Error identity: the same failure has the same fingerprint, whatever its paths, numbers, times and addresses. Pure.

Of a long output only the lines that report a failure count, each once and in any order: the captured tail starts at an
arbitrary line, and tests that run in parallel fail in varying order.
"""

from __future__ import annotations

import hashlib
import re
from functools import cache

_MOST_LINES = 200
_FAILURE = (
    r"error|fail|exception|panic|fatal|assert|traceback|abort|undefined|unresolved|unexpected|expected|invalid|missing"
    r"|mismatch|denied|refused|killed|cannot|can't|could not|unable|not found|no such|segmentation|timed? ?out|✗|✘|×"
)
_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"
_DAY = r"(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*"
_TIME = r"\d{1,2}:\d\d(?::\d\d)?(?:[.,]\d+)?(?:\s?[ap]m)?(?:\s?(?:z|utc|gmt|[+-]\d\d:?\d\d))?"

_VARYING = (
    (r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-_])", ""),
    (r"([^\w\s])\1{3,}", r"\1\1\1"),
    (r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "<uuid>"),
    (rf"\b\d{{4}}[-/]\d\d[-/]\d\d(?:[t ]{_TIME})?", "<time>"),
    (rf"\b(?:{_DAY},? )?(?:\d{{1,2}} {_MONTH}|{_MONTH} +\d{{1,2}})(?:,? \d{{4}})?(?:,? {_TIME})?\b", "<time>"),
    (rf"(?<![\w:.]){_TIME}(?![\w:])", "<time>"),
    (r"\b0x[0-9a-f]+\b", "<address>"),
    (r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,128}\b", "<hash>"),
    # Where a file lies differs from machine to machine and from run to run; which one it is does not.
    (r"(?:file://)?(?<![\w<])(?:[a-z]:|~|\.{1,2})?(?:[\\/][^\s\\/:\"'`(),;<>|]+)*[\\/](?=[^\s\\/])", "…/"),
    (r"(?<![\w.@+…-])(?:[\w.@+-]+[\\/])+(?=[\w.@+-])", "…/"),
    (r"\b(?:tmp|temp)[-_.]?(?=\w*[0-9_])\w{4,}\b|(?<=…/)tmp\w{4,}\b|\bpytest-\d+\b", "<temporary>"),
    (r"(?<![\w.])\d+(?:[.,]\d+)*\s?(?:ns|[µu]s|ms|s|sec|secs|seconds?|m|mins?|minutes?|h|hours?)\b", "<n>"),
    (r"(?<![a-z_])\d+(?:[.,:_]\d+)*", "<n>"),
    (r"[^\S\n]+", " "),
)


@cache
def _compiled() -> tuple[re.Pattern[str], tuple[tuple[re.Pattern[str], str], ...]]:
    """Compiled on first use: only runs with failures pay for it."""
    varying = tuple((re.compile(pattern, re.IGNORECASE), word) for pattern, word in _VARYING)
    return re.compile(_FAILURE, re.IGNORECASE), varying


def fingerprint(text: str) -> str:
    """The fingerprint; empty for an empty text."""
    failure, varying = _compiled()
    for pattern, word in varying:
        text = pattern.sub(word, text)
    lines = [line.strip().lower() for line in text.splitlines()]
    told = [line for line in lines if failure.search(line)] or [line for line in lines if line]
    if not told:
        return ""
    return hashlib.sha256("\n".join(sorted(set(told[-_MOST_LINES:]))).encode("utf-8", "replace")).hexdigest()[:16]
