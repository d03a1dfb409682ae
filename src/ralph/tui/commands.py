"""The command that shows the same on a command line, for the clipboard."""

from __future__ import annotations

import shlex

from ralph.views.attempts import Attempt
from ralph.views.run_view import RunView


def command_for(tab: str, view: RunView, attempt: Attempt | None, story: str) -> str:
    run = view.first.run if view.first else ""
    match tab:
        case "Live" if attempt is not None:
            return f"ralph log {run} --agent {attempt.iteration}"
        case "Diff" if attempt is not None and (commit := attempt.commit or attempt.rescue_commit):
            return f"git show {commit}"
        case "Checks" if attempt is not None and attempt.failing:
            return f"ralph log {run} --check {shlex.quote(attempt.failing[0].result.name)}"
        case "Checks" | "Review" if story:
            return f"ralph proof {shlex.quote(story)}" if tab == "Checks" else f"ralph log {shlex.quote(story)}"
        case "Cost":
            return "ralph runs cost"
    return f"ralph log {run}"
