"""A plan that was imported, or converted, is one that a run works through to its end."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ralph.plans.registry import LAYOUTS
from support.cli import ralph_here

NAMES = LAYOUTS.built_in()
NEXT = list(zip(NAMES, [*NAMES[1:], NAMES[0]], strict=True))
FILES = {
    "TODO.md": "# Words\n\n## A\n- [ ] Say one\n  - a file says it\n\n## B\n- [x] Say two\n",
    "script.yaml": """\
stories:
  "*":
    - implement:
        - run: echo "$RALPH_STORY" > src/"$RALPH_STORY".txt
        - claim: done
      review: [{verdict: approved}]
""",
    ".ralph/config.yaml": """\
agent: {name: scripted, script: script.yaml}
archive: {on_complete: false}
checks:
  - {name: words, command: "! grep -rq BROKEN src"}
""",
    "src/base.txt": "base\n",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "words"
    for name, text in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    git(folder, "init", "-q")
    git(folder, "config", "user.name", "Ada")
    git(folder, "config", "user.email", "ada@example.test")
    return folder


def git(folder: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True, text=True).stdout


def run(root: Path) -> None:
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "the plan")
    assert ralph_here("trust", "--yes", cwd=root).code == 0
    done = ralph_here("run", cwd=root)
    assert done.code == 0, done.err
    assert [story["state"] for story in ralph_here("export", "--json", cwd=root).json] == ["done"] * 2
    assert len(git(root, "ls-files", "src").split()) == 2


@pytest.mark.parametrize("name", NAMES)
def test_an_imported_plan_runs_to_its_end(root: Path, name: str) -> None:
    assert ralph_here("import", "TODO.md", "--layout", name, cwd=root).code == 0
    run(root)


@pytest.mark.parametrize(("one", "other"), NEXT)
def test_a_converted_plan_runs_to_its_end(root: Path, one: str, other: str) -> None:
    assert ralph_here("import", "TODO.md", "--layout", one, cwd=root).code == 0
    assert ralph_here("convert", "--layout", other, cwd=root).code == 0
    run(root)
