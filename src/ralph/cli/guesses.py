"""Suggestions for unknown commands and options. Imported only when one is unknown.

An alias runs at once and only reads; for anything that would write files or spend money there is a hint instead.
"""

from __future__ import annotations

from collections.abc import Iterable

ALIASES = {
    "attach": ("watch",),
    "dashboard": ("watch",),
    "history": ("runs",),
    "lint": ("check",),
    "list": ("task", "list"),
    "logs": ("log",),
    "ls": ("task", "list"),
    "streams": ("stream", "list"),
    "tail": ("log", "--follow"),
    "tui": ("watch",),
    "validate": ("check",),
}

COMMANDS = {
    "abort": "`ralph stop --now` stops a run at once",
    "cancel": "`ralph stop --now` stops a run at once",
    "commit": "accepted work is committed by the run itself; `ralph report` lists the commits",
    "continue": "`ralph run` continues with the open stories; `ralph resume` resumes a paused run",
    "create": "`ralph init NAME` starts a plan; `ralph task add TITLE` adds a story",
    "done": "`ralph task done ID` marks a story done",
    "kill": "`ralph stop --now` stops a run at once",
    "login": "log in with the agent's own client, e.g. run `claude` once; `ralph doctor` checks it",
    "new": "`ralph init NAME` starts a plan; `ralph task add TITLE` adds a story",
    "next": "`ralph task next` shows the story a run would take next",
    "merge": "`ralph stream merge NAME` merges a stream",
    "parallel": "`ralph run --parallel N` works on N stories at a time; `ralph stream new NAME` lets plans run at once",
    "quit": "`ralph stop` stops a run after the current iteration",
    "review": "`ralph run --review` has each story reviewed in a fresh session",
    "rollback": "`ralph rescue list` shows rejected work; `git revert COMMIT` undoes an accepted story",
    "setup": "`ralph init` sets up a project; `ralph doctor` checks this machine",
    "show": "`ralph task show ID` shows a story; `ralph status` shows all of them",
    "start": "`ralph run` starts a run; `ralph init` starts a plan",
    "stories": "`ralph task list` lists the stories",
    "test": "`ralph verify` runs the checks now",
    "undo": "`git revert COMMIT` undoes an accepted story (`ralph proof ID` names its commit); "
    "`ralph rescue list` shows rejected work",
    "version": "`ralph --version` prints the version",
}  # fmt: skip

OPTIONS = {
    "--background": ("--detach",),
    "--dir": ("--project-dir",),
    "--id": ("--story",),
    "--iterations": ("--max-iterations",),
    "--max-budget": ("--max-cost",),
    "--name": ("--feature", "--label"),
    "--only": ("--story",),
    "--project": ("--project-dir",),
    "--task": ("--story",),
    "--tool": ("--agent",),
    "--yolo": ("--dangerously-skip-permissions",),
}
"""Guess → the options it may mean. The first one that the command has is suggested."""

OPTION_HINTS = {
    "--no-commit": "a run commits each accepted story; --worktree keeps the commits out of your checkout, "
    "--dry-run changes nothing",
    "--story": "`ralph run --story ID` works on one story; `ralph task show ID` shows it",
}  # fmt: skip


def closest(word: str, known: Iterable[str]) -> str:
    """The known word that this one misspells, or nothing: a far-fetched suggestion is worse than none."""
    from difflib import SequenceMatcher

    bare = word.lstrip("-").lower()

    def likeness(other: str) -> float:
        if sorted(other.lstrip("-")) == sorted(bare):
            return 1.0  # letters in the wrong order are the likeliest mistake
        return SequenceMatcher(None, bare, other.lstrip("-")).ratio()

    best = max(known, key=likeness, default="")
    return best if best and likeness(best) >= 0.75 else ""


def option_hint(word: str, known: Iterable[str]) -> str:
    """What to type instead of this option, or nothing."""
    flags = list(known)
    meant = next((flag for flag in OPTIONS.get(word, ()) if flag in flags), "") or closest(word, flags)
    return f"did you mean {meant}?" if meant else OPTION_HINTS.get(word, "")
