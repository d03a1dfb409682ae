"""Read JSON written by others: a value of an unexpected type counts as missing. Nothing raises."""

from __future__ import annotations

import json
import math
from typing import Any

import msgspec

_LARGEST = 2**53


def decode(line: bytes) -> dict[str, Any]:
    """The object on a line; empty if there is none."""
    if line.lstrip()[:1] != b"{":
        return {}
    try:
        value = msgspec.json.decode(line)
    except (msgspec.DecodeError, ValueError):
        value = _decode_loosely(line)
    except RecursionError:
        return {}
    return value if isinstance(value, dict) else {}


def _decode_loosely(line: bytes) -> Any:
    """Replace lone surrogates: JavaScript writes them when a tool's output was cut inside an emoji."""
    try:
        return json.loads(line.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None


def text(value: Any) -> str:
    """Can always be encoded again."""
    if not isinstance(value, str):
        return ""
    return value if value.isascii() else value.encode("utf-8", "replace").decode()


def count(value: Any) -> int:
    """A whole number from 0 up that every JSON reader can hold."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < _LARGEST:
        return 0
    return value


def number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not -_LARGEST < value < _LARGEST:
        return None
    return None if math.isnan(value) else float(value)


def members(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def items(value: Any) -> list[dict[str, Any]]:
    """The objects in a list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
