"""Workspaces with a plan in any layout, without a git repository unless a test makes one."""

from __future__ import annotations

import difflib
import re
from pathlib import Path

from ralph.core.ports import PlanRef
from ralph.plans.registry import layout
from support.plans import plan_name, sample


def workspace(root: Path, name: str, stories: int = 6, *, odd: bool = False, source: bytes | str = b"") -> PlanRef:
    """A plan in this layout: a sample of so many stories, or what is given."""
    ref = layout(name).refer(root, plan_name(name))
    ref.folder.mkdir(parents=True, exist_ok=True)
    data = source.encode() if isinstance(source, str) else source
    ref.path.write_bytes(data or sample(name, stories, odd=odd))
    return ref


def story_id(name: str, number: int) -> str:
    """The id of a sample's story, counted from 1."""
    return f"1.{number}" if name == "spec.md" else f"US-{number:03}"


def difference(before: bytes, after: bytes) -> list[str]:
    """The lines that went and came, each with its sign."""
    lines = difflib.unified_diff(before.decode().splitlines(), after.decode().splitlines(), n=0, lineterm="")
    return [line for line in lines if not line.startswith(("---", "+++", "@@"))]


def write_first_story(root: Path, title: str = "Say hello") -> None:
    """Put a story of one's own in the place of the example that `ralph init` wrote."""
    example = re.compile(r"Replace this example with your first (?:story|task|step)|And this one with the next;[^\n]*")
    for path in (root / ".ralph").rglob("*"):
        if path.name in ("tasks.json", "prd.json", "plan.md", "spec.md") and path.is_file():
            path.write_text(example.sub(title, path.read_text()))
