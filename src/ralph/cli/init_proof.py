"""Where work will be proven, in `ralph init`: one sentence about the clean checkout, and what to copy to it."""

from __future__ import annotations

import json
import os
from pathlib import Path

from ralph.archive.commit import repository
from ralph.cli.output import note
from ralph.cli.questions import Questions
from ralph.config.layers import load
from ralph.core.text import one_line
from ralph.proof.dependencies import local_settings
from ralph.proof.place import expected_place, request_for
from ralph.setup.scaffold import Started


def ask_files(questions: Questions, flag: bool | None, root: Path) -> dict[str, str]:
    """The setting `proof.files`, if git ignores files that checks may need."""
    repo = repository(root, os.environ)
    files = local_settings(repo) if repo is not None and repo.root == root else ()
    if not files:
        return {}
    listed = ", ".join(one_line(path, 60) for path in files)
    text = f"Work is proven in a clean checkout, and git ignores {listed}. Copy it there for the checks?"
    if questions.yes(text, flag, unasked=False):
        return {"proof.files": json.dumps(files)}
    if not questions.asks and flag is None:
        note(f"git ignores {listed}; if the checks need it, set proof.files, or pass --proof-files")
    return {}


def show_place(started: Started) -> None:
    """What the first run does before the first story."""
    ref = started.ref
    repo = repository(ref.root, os.environ)
    if repo is None or not started.checks:
        return
    config = load(root=ref.root, layout=ref.layout, name=None, env=os.environ, flags={}).config
    note(expected_place(request_for(ref, repo, config, os.environ)), "dim")
