"""A short tour: the same few commands on a plan in each of the five layouts, in a throw-away folder."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BIN = Path(sys.executable).parent

USAGE = """\
usage: scripts/demo --layouts

Sets up .venv when needed, then starts a plan in each of the five layouts, shows it, marks a story and shows what that
changed in the file. Everything happens in a temporary folder that is removed at the end.
"""

NOTE = ("--note", "the first story works")

# Layout → what it is, arguments of `ralph init`, of `ralph task done`, and the lines of the file that say "done".
# A reviewed story says it three times: that it passes, that it is approved, and what was done.
LAYOUTS: dict[str, tuple[str, tuple[str, ...], tuple[str, ...], int]] = {
    "plan.md": ("a checklist and a block for each story", ("1",), (), 1),
    "tasks.json": ("stories that are reviewed before they count", ("user-login",), NOTE, 3),
    "steps": ("tasks worked on by a pipeline of steps", (), (), 1),
    "feature": ("a feature with its specs", ("user-login",), (), 1),
    "spec.md": ("a numbered specification, also for beads", (), (), 1),
}


class Tour:
    """One workspace after the other, with temporary home and state folders."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.surprises: list[str] = []
        own = {"HOME": str(folder / "home"), "RALPH_STATE_HOME": str(folder / "state")}
        foreign = ("RALPH_", "GIT_", "XDG_")
        kept = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
        path = f"{BIN}{os.pathsep}{kept.get('PATH', os.defpath)}"
        self.environment = {**kept, **own, "PATH": path, "GIT_CONFIG_NOSYSTEM": "1", "GIT_PAGER": "cat"}
        (folder / "home").mkdir()
        (folder / "home" / ".gitconfig").write_text("[user]\nname = A Visitor\nemail = visitor@localhost\n")

    def visit(self, number: int, layout: str) -> None:
        what, init, done, lines = LAYOUTS[layout]
        heading(f"{number} of {len(LAYOUTS)} · {layout}: {what}")
        self.workspace = self.folder / layout.replace(".", "-")
        self.workspace.mkdir()
        (self.workspace / "Makefile").write_text("test:\n\t@echo all tests pass\n")
        self.git("init", "-q", "-b", "main")

        self.show("ralph", "init", *init, "--layout", layout)
        self.git("add", "-A")
        self.git("commit", "-q", "-m", f"Start a plan ({layout})")
        self.show("ralph", "status")
        story = self.ask("ralph", "task", "list", "--ids").split()[0]
        self.show("ralph", "task", "done", story, *done)
        self.show("git", "diff", "-U0")
        self.count_changes(story, lines)
        self.show("ralph", "check", allowed=(0, 1, 65))

    def count_changes(self, story: str, lines: int) -> None:
        files = [line.split("\t") for line in self.ask("git", "diff", "--numstat").splitlines()]
        if [file[:2] for file in files] == [[str(lines), str(lines)]]:
            changed = "one line" if lines == 1 else f"the {lines} lines that say so"
            print(paint(f"✓ marking {story} changed {changed} in {files[0][2]}, and nothing else\n", "32"))
        else:
            self.surprises.append(f"marking {story} changed something else: {files}")
            print(paint(f"✗ {self.surprises[-1]}\n", "31"))

    def show(self, *command: str, allowed: tuple[int, ...] = (0,)) -> None:
        """Run a command as a visitor would, with what it prints."""
        print(paint(f"$ {shlex.join(command)}", "1;36"), flush=True)
        code = subprocess.run(command, cwd=self.workspace, env=self.environment, check=False).returncode
        if code not in allowed:
            self.surprises.append(f"{shlex.join(command)} ended with exit code {code}")
        print(flush=True)

    def ask(self, *command: str) -> str:
        return subprocess.run(
            command, cwd=self.workspace, env=self.environment, stdout=subprocess.PIPE, text=True, check=True
        ).stdout

    def git(self, *arguments: str) -> None:
        self.ask("git", *arguments)


def main(arguments: list[str]) -> int:
    if arguments:
        print(USAGE, end="")
        return 0 if arguments[0] in ("-h", "--help") else 64
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="ralph-demo-") as folder:
        tour = Tour(Path(folder))
        for number, layout in enumerate(LAYOUTS, start=1):
            tour.visit(number, layout)
    heading(f"{len(LAYOUTS)} layouts, one model; {time.monotonic() - started:.1f} s")
    for surprise in tour.surprises:
        print(paint(f"unexpected: {surprise}", "31"))
    print("The temporary folder was removed. Start your own plan with `ralph init`.")
    return 1 if tour.surprises else 0


def heading(text: str) -> None:
    print(paint(f"── {text} {'─' * max(3, 96 - len(text))}\n", "1"), flush=True)


def paint(text: str, code: str) -> str:
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR"):
        return text
    return f"\x1b[{code}m{text}\x1b[0m"


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
