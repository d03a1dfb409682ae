"""A short description of a tool call, for people who watch: `Edit src/app.py`, `Bash pytest -q`."""

from __future__ import annotations

from typing import Any

from ralph.agents.untyped import text
from ralph.core.text import one_line

# What a call is about, the most telling input first.
_TELLING = (
    "file_path",
    "notebook_path",
    "command",
    "pattern",
    "url",
    "query",
    "description",
    "path",
    "skill",
    "subject",
    "prompt",
)
_LONGEST = 100


def summarise(name: str, given: dict[str, Any], cwd: str) -> str:
    """`cwd` is stripped from the front of paths."""
    found = next((word for key in _TELLING if (word := text(given.get(key)).strip())), "")
    # A command may be megabytes long: cut before cleaning.
    about = one_line(found.removeprefix(f"{cwd.rstrip('/')}/" if cwd else "")[:1000])
    return one_line(f"{name} {about}", _LONGEST)
