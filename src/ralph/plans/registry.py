"""The layouts, by name."""

from __future__ import annotations

from ralph.core.ports import Layout
from ralph.core.registry import Registry

LAYOUTS = Registry(
    "layout",
    {
        "plan.md": "ralph.plans.plan_md",
        "tasks.json": "ralph.plans.tasks_json",
        "steps": "ralph.plans.steps_json",
        "feature": "ralph.plans.feature_json",
        "spec.md": "ralph.plans.spec_md",
    },
    group="ralph.layouts",
)


def layout(name: str) -> Layout:
    """The layout of this name. Raises UsageError, with the closest name, when there is none."""
    found: Layout = LAYOUTS.get(name)
    return found


def all_layouts() -> list[Layout]:
    return [layout(name) for name in LAYOUTS.names()]
