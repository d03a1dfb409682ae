"""The runs of a workspace: their folders in the state folder, their IDs, and which one an ID refers to."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Sequence
from pathlib import Path

from ralph.core.errors import UsageError
from ralph.core.text import one_line


def new_run_id(now: float) -> str:
    """Sorts by time: the last part is the fraction of a second and a random digit."""
    fraction = int(now % 1 * 0x1000)
    return f"{time.strftime('%Y%m%d-%H%M%S', time.gmtime(now))}-{fraction:03x}{os.urandom(1)[0] & 15:x}"


RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
"""What can be the folder of a run."""
NEW_RUN_ID = re.compile(r"\d{8}-\d{6}-[0-9a-f]{4}")
"""What `new_run_id` makes."""


def runs_folder(workspace_state: Path) -> Path:
    return workspace_state / "runs"


def journal_path(workspace_state: Path, run: str) -> Path:
    return runs_folder(workspace_state) / run / "events.jsonl"


RAW = "raw"
"""The subfolder of a run's folder that holds its agents' output."""


def raw_name(iteration: int, step: str) -> str:
    return f"{iteration:04}-{step}.log"


def list_runs(workspace_state: Path) -> list[str]:
    """Oldest first. Only folders with a journal count."""
    folder = runs_folder(workspace_state)
    if not folder.is_dir():
        return []
    return sorted(entry.name for entry in folder.iterdir() if (entry / "events.jsonl").is_file())


def find_run(workspace_state: Path, wanted: str = "", among: Sequence[str] | None = None) -> str:
    """The run with this ID or a unique prefix of it; the last run if none is given."""
    runs = list_runs(workspace_state) if among is None else among
    if not runs:
        raise UsageError("no runs yet", hint="start one with `ralph run`")
    if not wanted:
        return runs[-1]
    matching = [run for run in runs if run.startswith(wanted)]
    if wanted in runs:
        return wanted
    if len(matching) == 1:
        return matching[0]
    hint = "`ralph runs` lists the runs"
    if matching:
        raise UsageError(f"{len(matching)} runs start with {one_line(repr(wanted), 60)}", hint=hint)
    raise UsageError(f"no run matches {one_line(repr(wanted), 60)}", hint=hint)
