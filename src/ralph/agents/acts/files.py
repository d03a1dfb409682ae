"""File edits. Paths are relative to the workspace, and may leave it if the script says so."""

from __future__ import annotations

from pathlib import Path

from ralph.agents.acts.action import Action
from ralph.agents.stage import CannotPlay, Stage


class Write(Action, frozen=True):
    path: str
    text: str = ""
    executable: bool = False

    def play(self, stage: Stage) -> None:
        call = stage.edit("Write", self.path, content=self.text)
        path = Path(self.path)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.text, encoding="utf-8")
        if self.executable:
            path.chmod(0o755)
        stage.end(call, "File created successfully")


class Append(Action, frozen=True):
    path: str
    text: str

    def play(self, stage: Stage) -> None:
        call = stage.edit("Edit", self.path, old_string="", new_string=self.text)
        path = Path(self.path)
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.write(self.text)
        stage.end(call, "The file has been updated successfully")


class Replace(Action, frozen=True):
    path: str
    old: str
    new: str

    def play(self, stage: Stage) -> None:
        call = stage.edit("Edit", self.path, old_string=self.old, new_string=self.new)
        path = Path(self.path)
        text = path.read_text(encoding="utf-8")
        if self.old not in text:
            raise CannotPlay(f"{self.old!r} is not in {self.path}")
        path.write_text(text.replace(self.old, self.new, 1), encoding="utf-8")
        stage.end(call, "The file has been updated successfully")


class Delete(Action, frozen=True):
    """A file, a link, or a folder with all its content."""

    path: str

    def play(self, stage: Stage) -> None:
        call = stage.begin("Bash", {"command": f"rm -rf {self.path}"})
        remove(Path(self.path))
        stage.end(call)


class Run(Action, frozen=True):
    """A shell command line. If it fails, that is shown and the script continues."""

    command: str

    def play(self, stage: Stage) -> None:
        stage.shell(self.command)


def remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        import shutil  # 3 ms that few plays need

        shutil.rmtree(path)
    else:
        path.unlink()
