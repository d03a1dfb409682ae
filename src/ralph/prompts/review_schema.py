"""The JSON schema of a review's and a fix's answer, for clients that can enforce one. The request file uses the
same.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

from ralph.core.plan import Mode

_TEXT = {"type": "string"}


def _object(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


_FINDING = _object(
    {
        "id": {"type": "string", "description": "ID of a known finding, to raise it again"},
        "place": {"type": "string", "description": "file:line"},
        "severity": {"enum": ["high", "medium", "low"]},
        "criterion": {"type": "string", "description": "the acceptance criterion it concerns"},
        "text": {"type": "string", "description": "what is wrong, and what would be right"},
        "evidence": {"type": "string", "description": "an input, an output, a failing command"},
    },
    "text",
)
_REVIEW = _object(
    {
        "verdict": {"enum": ["approved", "changes_requested"]},
        "feedback": _TEXT,
        "findings": {"type": "array", "items": _FINDING},
    },
    "verdict",
)
_REPLY = _object({"id": _TEXT, "fate": {"enum": ["fixed", "rejected"]}, "reason": _TEXT}, "id", "fate")
_LEARN = {"type": "array", "items": _TEXT, "description": "facts that later sessions would have to rediscover"}
_ASK = {"type": "string", "description": "a question only the user can decide"}


def _written(schema: dict[str, Any]) -> str:
    return msgspec.json.encode(schema).decode()


@cache
def schema_for(mode: Mode) -> str:
    """The schema for this mode; none for modes whose result is the working tree."""
    match mode:
        case Mode.REVIEW:
            return _written(_object({"review": _REVIEW, "ask": _ASK, "learn": _LEARN}))
        case Mode.FIX:
            fixes = {"type": "array", "items": _REPLY}
            return _written(_object({"claim": {"enum": ["done"]}, "fixes": fixes, "ask": _ASK, "learn": _LEARN}))
        case _:
            return ""
