"""Evidence for the judge, with the rules among its fields."""

from __future__ import annotations

from typing import Any

from ralph.core.evidence import Evidence
from ralph.core.rules import VerdictRules


def evidence_of(fields: dict[str, Any]) -> Evidence:
    names = set(VerdictRules.__struct_fields__)
    rules = VerdictRules(**{name: value for name, value in fields.items() if name in names})
    return Evidence(rules=rules, **{name: value for name, value in fields.items() if name not in names})
