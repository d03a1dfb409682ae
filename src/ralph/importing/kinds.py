"""The kinds of source that can be imported, by name. The command line reads these without the readers."""

from __future__ import annotations

from enum import StrEnum

from ralph.plans.registry import LAYOUTS

CHECKLIST = "checklist"
FIX_PLAN = "fix_plan"
TASK_PLAN = "plans"
BEADS = "beads"
GITHUB = "github"
TITLES = {
    GITHUB: "GitHub issues: `gh issue list --json number,title,body,labels,state,milestone,url`,"
    " or the REST API's list",
    CHECKLIST: "a Markdown checklist, with headings as parts of the work",
    BEADS: "beads: .beads/issues.jsonl, or `br list --json`",
    FIX_PLAN: "fix_plan.md: bullets in order of importance, with or without checkboxes",
    TASK_PLAN: "docs/plans/*.md: a heading per task, `### Task 1: …`, with steps below it",
}


class Done(StrEnum):
    """What to do with work that its source marks as done. That is a claim: no check has proven it."""

    KEEP = "keep"
    TODO = "todo"
    SKIP = "skip"


def names() -> list[str]:
    return [*TITLES, *LAYOUTS.names()]
