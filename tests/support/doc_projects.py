"""Projects in which the command blocks of the documentation are run: at default settings, with the scripted agent."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]

REASONS = (
    "it needs an account",
    "it needs another machine",
    "it needs another program",
    "it changes your system",
    "it waits for a person",
    "it takes minutes",
    "it is what an agent tries",
    "another test runs it: ",
)
"""Why a block is not run. The last one goes on with the file of that test."""

_FENCE = re.compile(r"^ *```(?P<kind>sh|yaml)\n(?P<text>.*?)^ *```", re.M | re.S)
SETTINGS = "# .ralph/config.yaml\n"
_MARK = re.compile(r"<!-- (?P<not>not )?run(?: in)?: (?P<what>[^>]+?) -->\n+\s*\Z")
_RUN = re.compile(r"\b20\d{6}-\d{4}(?:\d\d-[0-9a-f]{4}|\d\d)?\b")
_CODE = re.compile(r"#.*\bexit code (\d+)")

AGENT = """\
stories:
  plan: &planned
    - - answer:
          requirements: |
            # Hours

            ## 1. Summary

            A weekly report.
          stories:
            - id: US-001
              title: Report the hours of a week
              description: It adds them up.
              acceptanceCriteria: ["`make report` prints the sum"]
              verify: test -d work
  add: *planned
  fix:
    - - answer:
          stories:
            - id: US-001
              title: Do not charge for an empty cart
              description: The total is 0.
              acceptanceCriteria: [the total of an empty cart is 0]
              verify: test -d work
  US-002:
    - implement:
        - delete: README.md
        - claim: done
    - implement: &work
        - run: mkdir -p work && date > work/$RALPH_STORY.txt
        - cost: {usd: 0.02, input: 3000, output: 200}
        - claim: done
  "*":
    - implement: *work
      fix: *work
      acceptance:
        - run: sed "s/first/${RALPH_STORY#US-}/; s|README.md|work/$RALPH_STORY.txt|" tests/test_first.py >
            tests/test_acceptance_${RALPH_STORY#US-}.py
        - claim: done
      exam:
        - run: sed "s/first/all/; s/README.md/work/" tests/test_first.py > tests/test_all_$(date +%s).py
        - claim: done
      review:
        - verdict: {what: approved, by: request}
"""
FILES = {
    "Makefile": "test:\n\tpython3 -m unittest discover -s tests\n",
    "tests/test_first.py": """\
import pathlib, unittest


class Test(unittest.TestCase):
    def test_first(self):
        assert pathlib.Path("README.md").exists()
""",
    "README.md": "# A project\n",
    "packages/billing/Makefile": "test:\n\ttest -s ../../README.md\n",
    ".gitignore": "__pycache__/\n.ralph-active\n",
}
BESIDE = {
    "requirements.md": "# Hours\n\n## 1. Summary\n\nA weekly report.\n\n- It adds up the hours.\n",
    "demo.yaml": AGENT,
    "output.txt": "== 3 passed in 0.01s ==\n",
    "error.txt": "You've hit your limit · resets 3pm (Europe/Rome)\n",
    "runs.jsonl": '{"command": "pytest", "output": "3 passed in 0.1s", "exit_code": 0}\n',
    "errors.jsonl": '{"text": "You have hit your limit · resets 3pm", "agent": "claude"}\n',
    ".npmrc": "registry=https://npm.example.com/\n",
    "TODO.md": "# To do\n\n- [ ] Export orders as CSV\n- [x] Log in\n",
}
"""What a page may name, not committed: a command does not find more than it would find with a user."""

IDENTITY = "[user]\n\tname = Ada Tester\n\temail = ada@example.test\n[init]\n\tdefaultBranch = main\n"
STORIES = ("Log in by email", "Show the hours of a week", "Say so when a page is missing")


class Block(NamedTuple):
    page: str
    line: int
    text: str
    where: str
    """The project to start with; empty: the one of the block above."""
    why_not: str


def blocks(page: str) -> list[Block]:
    """The `sh` blocks of a page, and the settings between them that name their file.

    A comment above one says where it runs, or why it does not.
    """
    source = (ROOT / page).read_text()
    found = []
    for match in _FENCE.finditer(source):
        mark = _MARK.search(source[: match.start()])
        what = mark["what"] if mark else ""
        line = source.count("\n", 0, match.start()) + 1
        skipped = bool(mark and mark["not"])
        text = textwrap.dedent(match["text"])
        if match["kind"] == "yaml":
            if not text.startswith(SETTINGS):
                continue
            text = f"cat >>.ralph/config.yaml <<'END'\n{text}END\ngit commit -qm Settings .ralph/config.yaml\n"
        found.append(Block(page, line, text, "" if skipped else what, what if skipped else ""))
    return found


class DocProject:
    """`folder` holds a home with the project in it, and the state: all that a block can reach."""

    def __init__(self, folder: Path, where: str) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.root = self.home / "src" / "my-project"
        self.run_id = ""
        self.shell = ["sh", "-eux", "-c"]
        kept = {name: os.environ[name] for name in ("LC_ALL", "TERM", "TMPDIR") if name in os.environ}
        self.env = {
            **kept,
            "HOME": str(self.home),
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "RALPH_STATE_HOME": str(folder / "state"),
            "GIT_CONFIG_NOSYSTEM": "1",
            "PIP_NO_INDEX": "1",
        }
        shutil.rmtree(folder, ignore_errors=True)
        self.root.mkdir(parents=True)
        (self.home / ".gitconfig").write_text(IDENTITY)
        (self.home / "agent.yaml").write_text(AGENT)
        (self.home / ".ralph").mkdir()
        (self.home / ".ralph" / "config.yaml").write_text(
            f"agent: {{name: scripted, script: {self.home}/agent.yaml}}\n"
        )
        for name, text in FILES.items():
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            (self.root / name).write_text(text)
        self.do("git init -q", "git add -A", "git commit -qm Start")
        steps = ("a new project", "a plan", "a finished run")
        if where not in steps:
            raise ValueError(f"no such project: {where}; one of {', '.join(steps)}")
        if steps.index(where) >= 1:
            self.make_plan()
        if steps.index(where) >= 2:
            self.do("ralph run --plain")
            self.run_id = json.loads(self.do("ralph runs --json"))[0]["run"]
        exclude = self.root / ".git" / "info" / "exclude"
        for name, text in BESIDE.items():
            (self.root / name).write_text(text)
        exclude.write_text("".join(f"/{name}\n" for name in BESIDE))

    def make_plan(self) -> None:
        adding = [f'ralph task add "{title}" --criterion "GET / answers 200"' for title in STORIES]
        self.do("ralph init user-login --no-input --no-run-checks", *adding, "git add -A", "git commit -qm Plan")

    def wait(self, seconds: float = 120) -> None:
        """Until the runs in the background have ended."""
        until = time.monotonic() + seconds
        while self._is_used():
            assert time.monotonic() < until, "a block left something running"
            time.sleep(0.1)

    def _is_used(self) -> bool:
        for process in Path("/proc").glob("[0-9]*/cwd"):
            with contextlib.suppress(OSError):
                if process.readlink().is_relative_to(self.folder):
                    return True
        return False

    def do(self, *lines: str, timeout: int = 300) -> str:
        """Run lines as one script that ends at the first mistake, and return what it printed."""
        done = subprocess.run(
            [*self.shell, "\n".join(lines)],
            cwd=self.root,
            env=self.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        assert done.returncode == 0, f"exit code {done.returncode}\n{done.stdout[-1500:]}\n{done.stderr[-1500:]}"
        return done.stdout

    def play(self, block: Block) -> str:
        text = _RUN.sub(lambda found: self.run_id[: len(found[0])] if "-" in self.run_id else found[0], block.text)
        try:
            return self.do(*(expecting(line) for line in text.splitlines()))
        except AssertionError as error:
            raise AssertionError(f"{block.page}:{block.line}: {error}") from None


def expecting(line: str) -> str:
    """A line whose comment names an exit code has to end with it."""
    code = _CODE.search(line)
    command = line[: code.start()].rstrip() if code else ""
    return f"{{ {command}; }} || test $? = {code[1]}" if code and command and code[1] != "0" else line
