"""The two actions of the scripted agent in bench/real_projects.py: an attempt at a story, and a review of it."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

from ralph.agents.acts import Action
from ralph.agents.stage import Stage

Edit = tuple[str, str, str]
"""Path, old text, new text. Without an old text, the new one is appended, or the file created."""


class Work(Action, frozen=True):
    """Undo what is there of earlier attempts at the story, then make these edits."""

    name: str
    edits: tuple[Edit, ...] = ()
    undo: tuple[tuple[Edit, ...], ...] = ()

    def play(self, stage: Stage) -> None:
        stage.say(f"attempt: {self.name}")
        for earlier in self.undo:
            if earlier and all(new in _text(path) for path, _, new in earlier):
                for path, old, new in reversed(earlier):
                    _change(stage, path, new, old)
        for path, old, new in self.edits:
            _change(stage, path, old, new)


class Judge(Action, frozen=True):
    """A perfect reviewer: in a copy, it runs tests that nobody else has, and the project's own as they were first.

    Without any, one that approves everything."""

    tests: tuple[tuple[str, str], ...] = ()
    """Path and text."""
    own: tuple[str, ...] = ()
    command: str = "true"

    def play(self, stage: Stage) -> None:
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder, "copy")
            shutil.copytree(".", copy, symlinks=True, ignore=shutil.ignore_patterns(".git", ".venv"))
            if Path(".venv").exists():
                (copy / ".venv").symlink_to(Path(".venv").resolve())
            if self.own:
                names = " ".join(self.own)
                _run(f"git archive $(git rev-list --max-parents=0 HEAD) -- {names} | tar -x -C {copy}", Path.cwd())
            for path, text in self.tests:
                (copy / path).write_text(text)
            done = _run(self.command, copy)
        if done.returncode == 0:
            stage.request(review={"verdict": "approved"})
            return
        finding = {"text": f"it is not what the story asks for: {(done.stdout + done.stderr)[-300:]}"}
        stage.request(review={"verdict": "changes_requested", "findings": [finding]})


def _run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, shell=True, cwd=folder, capture_output=True, text=True, check=False)


def _text(path: str) -> str:
    return Path(path).read_text() if Path(path).exists() else ""


def _change(stage: Stage, name: str, old: str, new: str) -> None:
    path, text = Path(name), _text(name)
    if old and old not in text:
        raise ValueError(f"{old!r} is not in {name}")
    text = text.replace(old, new, 1) if old else text + new
    call = stage.edit("Edit", name, old_string=old, new_string=new)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text) if text else path.unlink()
    stage.end(call)


ACTIONS = {"work": Work, "judge": Judge}
