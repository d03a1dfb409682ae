"""The kinds of source that can be imported: one line each. The command line reads these without the readers."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from ralph.plans.registry import LAYOUTS


class Kind(NamedTuple):
    title: str
    module: str
    """In `formats`: `recognise(Sample) -> bool` and `read(text, file) -> Batch`."""
    places: tuple[str, ...] = ()
    """Where its files are in a project, as patterns."""


KINDS = {
    "github": Kind(
        "GitHub issues: `gh issue list --json number,title,body,labels,state,milestone,url`, or the REST API's list",
        "github",
    ),
    "gitlab": Kind("GitLab issues: the CSV export, `glab issue list -O json`, or the API's list", "gitlab"),
    "linear": Kind("Linear: the CSV export", "linear"),
    "jira": Kind("Jira: the CSV export", "jira"),
    "beads": Kind(
        "beads: .beads/issues.jsonl, or `br list --json`",
        "beads",
        (".beads/issues.jsonl", "issues.jsonl", ".beads/beads.jsonl"),
    ),
    "taskmaster": Kind(
        "Taskmaster: tasks.json, with tags or without",
        "taskmaster",
        (".taskmaster/tasks/tasks.json", "tasks/tasks.json"),
    ),
    "snarktank": Kind("snarktank/ralph: prd.json", "snarktank", ("scripts/ralph/prd.json", "prd.json")),
    "feature_list": Kind("feature_list.json: features that pass or do not", "feature_list", ("feature_list.json",)),
    "backlog": Kind(
        "Backlog.md: a file for each task",
        "backlog",
        ("backlog/tasks/*.md", "backlog/completed/*.md", ".backlog/tasks/*.md"),
    ),
    "bmad": Kind(
        "BMAD: a file for each story",
        "bmad",
        ("docs/stories/*.md", "_bmad-output/implementation-artifacts/*.md", "_bmad-output/stories/*.md"),
    ),
    "spec-kit": Kind(
        "spec-kit: specs/NNN-name/tasks.md", "spec_kit", ("specs/*/tasks.md", ".specify/specs/*/tasks.md")
    ),
    "kiro": Kind("Kiro: .kiro/specs/NAME/tasks.md", "kiro", (".kiro/specs/*/tasks.md",)),
    "openspec": Kind("OpenSpec: openspec/changes/NAME/tasks.md", "openspec", ("openspec/changes/*/tasks.md",)),
    "plans": Kind(
        "docs/plans/*.md: a heading per task, `### Task 1: …` or `### Iteration 1: …`, with steps below it",
        "task_plan",
        ("docs/plans/*.md", "docs/superpowers/plans/*.md"),
    ),
    "claude-plan": Kind("a plan of Claude Code: ~/.claude/plans/NAME.md", "claude_plan", (".claude/plans/*.md",)),
    "fix_plan": Kind(
        "fix_plan.md, IMPLEMENTATION_PLAN.md or plain bullets, in order of importance, with or without checkboxes",
        "fix_plan",
        ("fix_plan.md", "@fix_plan.md", "IMPLEMENTATION_PLAN.md"),
    ),
    "checklist": Kind("a Markdown checklist, with headings as parts of the work", "checklist"),
}
"""In the order in which a file is tried. Of these, only one recognises a file."""
FALLBACKS = ("checklist", "fix_plan")
"""For Markdown that no format claims: with checkboxes, and with bullets only."""
WRITTEN_BACK = ("github", "beads", "taskmaster")
"""Where `ralph plan export --status` can mark what is done."""
OWN = "a plan of Ralph"
TITLES = {name: kind.title for name, kind in KINDS.items()}


class Done(StrEnum):
    """What to do with work that its source marks as done. That is a claim: no check has proven it."""

    KEEP = "keep"
    TODO = "todo"
    SKIP = "skip"


def names() -> list[str]:
    return list(dict.fromkeys((*KINDS, *LAYOUTS.names())))
