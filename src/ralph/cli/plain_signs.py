"""Signs in a locale that cannot encode them: each has an ASCII replacement; anything else is escaped."""

from __future__ import annotations

import codecs

NAME = "ralph-plain"
_PAIRS = "✓+ ✗! ▶> ·. ◐~ ⏸= ⏳~ ⌛! ⇄~ ■# ⊘! ⚙* ↳-> →-> ×x ≤<= …... —- –- −- •- █# ░- ─- │| ├| └` ‘' ’' “\" ”\""
_SIGNS = {pair[0]: pair[1:] for pair in _PAIRS.split()}


def register() -> str:
    """The name of an error handler for streams."""
    codecs.register_error(NAME, _replace)
    return NAME


def _replace(error: UnicodeError) -> tuple[str | bytes, int]:
    if isinstance(error, UnicodeEncodeError):
        sign = error.object[error.start]
        if sign in _SIGNS:
            return _SIGNS[sign], error.start + 1
        error.end = error.start + 1
    return codecs.backslashreplace_errors(error)
