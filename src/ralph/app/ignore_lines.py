"""What a run leaves behind in a workspace and nobody needs in git, and how it gets into a `.gitignore`."""

from __future__ import annotations

from collections.abc import Iterable

_EVERY = (".ralph/WAITING",)
_OF_LAYOUT = {
    "plan.md": (
        ".ralph/.checkpoint",
        ".ralph/.agent-lock",
        ".ralph/current-story",
        ".ralph/session.log",
        ".ralph/sessions.log",
        ".ralph/failure-context.log",
        ".ralph/failure-context.log.1",
        ".ralph/activity.log",
        ".ralph/PRD-*/runs/",
        ".ralph/locks/",
        ".ralph/worktrees/",
    ),
    "tasks.json": (".ralph-active",),
    "steps": (
        ".ralph/logs/",
        ".ralph/run_state.json",
        ".ralph/aggregate.json",
        ".ralph/.ralph_lock",
        ".ralph/.setup_done",
    ),
    "spec.md": (".ralph/COMPLETE",),
}


def ignore_lines(layout: str) -> tuple[str, ...]:
    return (*_OF_LAYOUT.get(layout, ()), *_EVERY)


def with_lines(text: bytes, lines: Iterable[str]) -> bytes:
    """A `.gitignore` with the missing lines appended, in its own line endings. Nothing else changes."""
    ending = b"\r\n" if b"\r\n" in text else b"\n"
    present = {line.strip().removeprefix(b"/") for line in text.splitlines()}
    covered = any(whole in present for whole in (b".ralph", b".ralph/", b".ralph/*", b".ralph/**"))
    missing = []
    for line in lines:
        if line.encode() in present or (covered and line.startswith(".ralph/")):
            continue
        missing.append(line.encode())
    if not missing:
        return text
    start = text + ending if text and not text.endswith(b"\n") else text
    title = b"# Ralph: what a run leaves behind and nobody needs in git"
    return start + (ending if start else b"") + ending.join([title, *missing]) + ending
