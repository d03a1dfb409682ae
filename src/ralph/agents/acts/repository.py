"""What an agent should not do to its git repository, and does."""

from __future__ import annotations

import os
from pathlib import Path

from ralph.agents.acts.action import Action
from ralph.agents.acts.files import remove
from ralph.agents.stage import Stage

_IDENTITY = ["-c", "user.name=Scripted Agent", "-c", "user.email=agent@localhost"]


def _git(stage: Stage, *words: str) -> bool:
    return stage.command(["git", *words])


def _commit(stage: Stage, *words: str) -> None:
    """Uses the configured git identity, else a fixed name."""
    known = stage.command(["git", "config", "--get", "user.email"])
    stage.command(["git", *([] if known else _IDENTITY), "commit", "--quiet", *words])


class Commit(Action, frozen=True):
    message: str = "Work of the agent"
    all: bool = True

    def play(self, stage: Stage) -> None:
        if self.all:
            _git(stage, "add", "--all")
        _commit(stage, "--message", self.message)


class Amend(Action, frozen=True):
    """Rewrites the last commit, regardless of its author."""

    message: str = "Rewritten by the agent"

    def play(self, stage: Stage) -> None:
        _git(stage, "add", "--all")
        _commit(stage, "--amend", "--message", self.message)


class Stash(Action, frozen=True):
    def play(self, stage: Stage) -> None:
        _git(stage, *_IDENTITY, "stash", "--include-untracked")


class Reset(Action, frozen=True):
    to: str = "HEAD~1"
    hard: bool = True

    def play(self, stage: Stage) -> None:
        _git(stage, "reset", "--quiet", "--hard" if self.hard else "--mixed", self.to)


class Switch(Action, frozen=True):
    branch: str
    create: bool = True

    def play(self, stage: Stage) -> None:
        _git(stage, "switch", "--quiet", *(["--create"] if self.create else []), self.branch)


class DeleteGit(Action, frozen=True):
    def play(self, stage: Stage) -> None:
        call = stage.begin("Bash", {"command": "rm -rf .git"})
        remove(Path(".git"))
        stage.end(call)


class ReplaceGit(Action, frozen=True):
    """A new repository in place of the old one; or, with `to`, a file that points to another one."""

    to: str = ""

    def play(self, stage: Stage) -> None:
        remove(Path(".git"))
        if self.to:
            call = stage.begin("Bash", {"command": f"echo 'gitdir: {self.to}' > .git"})
            Path(".git").write_text(f"gitdir: {self.to}\n", encoding="utf-8")
            stage.end(call)
            return
        _git(stage, "init", "--quiet")
        _git(stage, "add", "--all")
        _commit(stage, "--message", "A new history")


class GitConfig(Action, frozen=True):
    key: str = "core.fsmonitor"
    value: str = "touch fsmonitor-ran"

    def play(self, stage: Stage) -> None:
        _git(stage, "config", "--local", self.key, self.value)


class GitHook(Action, frozen=True):
    name: str = "pre-commit"
    script: str = "#!/bin/sh\ntouch hook-ran\n"

    def play(self, stage: Stage) -> None:
        path = Path(".git", "hooks", self.name)
        call = stage.edit("Write", str(path), content=self.script)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.script, encoding="utf-8")
        path.chmod(0o755)
        stage.end(call)


class LinkWorkspace(Action, frozen=True):
    """Moves the workspace elsewhere and leaves a link in its place."""

    to: str = ""

    def play(self, stage: Stage) -> None:
        target = stage.cwd.parent / (self.to or f"{stage.cwd.name}.moved")
        call = stage.begin("Bash", {"command": f"mv {stage.cwd} {target} && ln -s {target} {stage.cwd}"})
        os.rename(stage.cwd, target)  # noqa: PTH104 - one spelling for both lines
        os.symlink(target, stage.cwd)  # noqa: PTH211
        stage.end(call)
