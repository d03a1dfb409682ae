"""Which copy of a plan a command changes: the workspace's, or that of a run in a worktree."""

from __future__ import annotations

import os
import shlex
from argparse import Namespace

from ralph.cli.output import note
from ralph.core.ports import PlanRef
from ralph.state.runs import live_ref


def working_ref(args: Namespace, ref: PlanRef) -> PlanRef:
    """The copy that a live run works on. `-d` is taken literally."""
    if getattr(args, "project_dir", None):
        return ref
    live = live_ref(ref, os.environ)
    if live != ref:
        root = shlex.quote(str(ref.root))
        note(f"this is for the run in the worktree {live.root}; `-d {root}` changes the plan of the workspace")
    return live
