"""What is done here is marked as done where it came from; nothing else there changes."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from support.cli import Completed, ralph_here
from support.proven import Proven, write

BR = Path(__file__).resolve().parents[1] / "support" / "beads" / "br"
GH = """#!/usr/bin/env python3
import json, os, sys
from pathlib import Path
states = Path(os.environ["GH_STATES"])
issue, verb, number, *options = sys.argv[1:]
assert issue == "issue", sys.argv
found = json.loads(states.read_text())
if number not in found:
    sys.exit("GraphQL: Could not resolve to an issue or pull request with the number of " + number)
if verb == "view":
    print(json.dumps({"state": found[number]}))
else:
    assert verb == "close" and "--reason=completed" in options, sys.argv
    found[number] = " ".join(options)
    states.write_text(json.dumps(found))
"""
TASKS = """\
{
  "master": {
    "tasks": [
      {"id": 1, "title": "One", "status": "pending", "dependencies": [], "testStrategy": "é", "odd":  [1,2] },
      {
        "id": 2, "title": "Two", "status": "pending", "dependencies": [1],
        "subtasks": [
          {"id": 1, "title": "Half", "status": "in-progress", "dependencies": []},
          {"id": 2, "title": "Rest", "dependencies": [1]},
          {"id": 3, "title": "No", "status": "cancelled", "dependencies": []}
        ]
      },
      {"id": 3, "title": "Three", "status": "done", "dependencies": [], "testStrategy": ""}
    ]
  }
}
"""
BEADS = [
    {"id": "a-1", "title": "One", "status": "open", "description": "<b> é"},
    {"id": "a-2", "title": "Two", "status": "closed"},
    {"id": "a-3", "title": "Three", "status": "open"},
]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "shop"
    (root / ".git").mkdir(parents=True)
    return root


def imported(root: Path, file: str, text: str) -> Path:
    path = root / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    assert ralph_here("import", file, "--layout", "plan.md", cwd=root).code == 0
    return path


def done(root: Path, *stories: str) -> None:
    for story in stories:
        assert ralph_here("task", "done", story, cwd=root).code == 0


def export(root: Path, to: str, *options: str, **env: str) -> Completed:
    return ralph_here("export", "--status", to, *options, cwd=root, env=env)


def test_taskmaster_gets_done_and_every_other_byte_stays(root: Path) -> None:
    path = imported(root, ".taskmaster/tasks/tasks.json", TASKS)
    done(root, "US-001", "US-003")
    assert export(root, "taskmaster", "--dry-run").out.splitlines()[0].startswith("1  US-001: One")
    assert path.read_text() == TASKS
    assert export(root, "taskmaster").code == 0
    first = TASKS.replace('"One", "status": "pending"', '"One", "status": "done"')
    first = first.replace('"in-progress"', '"done"')
    assert path.read_text() == first
    done(root, "US-004")
    marks = export(root, "taskmaster", "--json").json
    assert [(mark["item"], mark["story"]) for mark in marks["marked"]] == [("2.2", "US-004"), ("2", "")]
    assert marks["same"] == 3
    last = first.replace('"Rest", "dependencies": [1]', '"Rest", "dependencies": [1], "status": "done"')
    assert path.read_text() == last.replace('"Two", "status": "pending"', '"Two", "status": "done"')
    assert export(root, "taskmaster").err.splitlines()[-1].endswith("0 items marked as done, 4 done before")


def test_what_is_ahead_or_gone_there_is_said_and_left(root: Path) -> None:
    path = imported(root, ".taskmaster/tasks/tasks.json", TASKS)
    assert ralph_here("task", "set", "US-002", "--state", "todo", cwd=root).code == 0
    changed = TASKS.replace('"id": 1, "title": "One"', '"id": 9, "title": "One"')
    path.write_text(changed)
    done(root, "US-001")
    told = export(root, "taskmaster")
    assert "done there, open here: 3 (US-002); not touched" in told.err
    assert "not there any more: 1 (US-001); not touched" in told.err
    assert path.read_text() == changed


def test_beads_are_closed_in_their_file_where_no_program_is_installed(root: Path) -> None:
    lines = [json.dumps(bead, ensure_ascii=False, separators=(",", ":")) for bead in BEADS]
    path = imported(root, ".beads/issues.jsonl", "\n".join(lines) + "\n")
    done(root, "US-001")
    assert export(root, "beads", PATH="/nowhere").code == 0
    now = path.read_text().split("\n")
    assert now[1:] == [*lines[1:], ""]
    first = json.loads(now[0])
    assert list(first)[:4] == ["id", "title", "status", "description"]
    assert (first["status"], first["description"]) == ("closed", "<b> é")
    assert first["closed_at"] == first["updated_at"]


def test_beads_are_closed_by_their_program_where_there_is_one(root: Path, tmp_path: Path) -> None:
    imported(root, ".beads/issues.jsonl", "\n".join(map(json.dumps, BEADS)))
    (root / ".beads" / "stand-in.json").write_text(json.dumps(BEADS))
    done(root, "US-001", "US-003")
    programs = tmp_path / "programs"
    programs.mkdir()
    shutil.copy(BR, programs / "br")
    told = export(root, "beads", PATH=f"{programs}{os.pathsep}{os.environ['PATH']}")
    assert told.err.splitlines()[-1] == "br: 2 items marked as done, 1 done before"
    now = json.loads((root / ".beads" / "stand-in.json").read_text())
    assert [bead["status"] for bead in now] == ["closed"] * 3
    assert now[0]["close_reason"] == "marked as done in the plan; no run has proven it"


class Hosted:
    """Issues on a GitHub that a stand-in for `gh` plays."""

    def __init__(self, folder: Path, **states: str) -> None:
        self.states = folder / "states.json"
        self.states.write_text(json.dumps({name.removeprefix("n"): state for name, state in states.items()}))
        programs = folder / "programs"
        programs.mkdir()
        (programs / "gh").write_text(GH)
        (programs / "gh").chmod(0o755)
        self.env = {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "GH_STATES": str(self.states)}

    def now(self) -> Any:
        return json.loads(self.states.read_text())


def issues(*numbers: int) -> str:
    url = "https://github.com/acme/shop/issues/"
    return json.dumps([{"number": n, "title": f"Say @ada {n}", "state": "OPEN", "url": f"{url}{n}"} for n in numbers])


def test_an_issue_is_closed_with_the_commit_that_proves_it(tmp_path: Path) -> None:
    made = Proven(tmp_path, stories=[{"title": "Say @ada 7", "verify": ["test -f src/one.py"]}])
    (made.root / "issues.json").write_text(issues(7))
    note = "Source: github:acme/shop#7"
    assert made.ask("task", "set", "US-001", "--notes", note).code == 0
    made.git("add", "-A")
    made.git("commit", "-q", "-m", "where it comes from")
    made.run(US_001=[[write("src/one.py", "ONE = 1\n"), "claim"]])
    hosted = Hosted(tmp_path, n7="OPEN")
    assert made.ask("export", "--status", "github", env=hosted.env).code == 0
    told = hosted.now()["7"]
    commit = made.git("log", "-1", "--format=%H", "--grep=US-001").strip()
    assert "--repo=acme/shop" in told
    assert re.search(rf"\(commit {commit}, \w+; 2 checks passed\)", told)
    assert "@<!-- -->ada" in told  # nobody is notified


def test_closed_issues_are_not_closed_again_and_a_failure_names_the_rest(root: Path, tmp_path: Path) -> None:
    imported(root, "issues.json", issues(1, 2, 3, 4))
    done(root, "US-001", "US-002", "US-003")
    hosted = Hosted(tmp_path, n1="CLOSED", n2="OPEN", n4="OPEN")
    told = export(root, "github", **hosted.env)
    assert told.code != 0
    assert "the rest was not marked: acme/shop#3: gh issue view: GraphQL: Could not resolve" in told.err
    now = hosted.now()
    assert (now["1"], now["4"]) == ("CLOSED", "OPEN")
    assert "no run has proven it" in now["2"]


def test_an_agent_cannot_write_to_other_tools(root: Path) -> None:
    imported(root, ".taskmaster/tasks/tasks.json", TASKS)
    told = export(root, "taskmaster", RALPH_LOOP="1")
    assert told.code != 0
    assert "an agent in a loop cannot write to other tools" in told.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "choose what to export"),
        (("--status", "github"), "no story of"),
        (("--json", "--dry-run"), "--dry-run goes with --status"),
        (("--json", "--markdown"), "--json is a form of its own"),
        (("--status", "taskmaster", "--to", "other.json"), "other.json does not exist"),
    ],
)
def test_what_cannot_be_meant_is_refused(root: Path, arguments: tuple[str, ...], words: str) -> None:
    imported(root, ".taskmaster/tasks/tasks.json", TASKS)
    told = ralph_here("export", *arguments, cwd=root)
    assert told.code == 64
    assert words in told.err
