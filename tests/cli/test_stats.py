"""`ralph runs stats`, and the lines about reviews at the end of a run."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from ralph.cli.runs import lines, review_lines
from ralph.journal.statistics import Effort, Figures, FindingCounts, Reviews
from support.cli import ralph
from support.workspaces import workspace

SCRIPT = """
stories:
  "*":
    - implement:
        - append: {path: work.txt, text: "half\\n"}
        - cost: {usd: 0.02, input: 1000}
        - claim: done
      review:
        - cost: {usd: 0.01, input: 500}
        - verdict:
            what: changes_requested
            findings: [{text: the other half is missing, severity: major, criterion: it is whole}]
      fix:
        - append: {path: work.txt, text: "whole\\n"}
        - claim: done
    - review:
        - verdict: {what: approved, by: request}
"""


@pytest.fixture
def finished(tmp_path: Path, git_identity: tuple[str, str]) -> tuple[Path, str]:
    """A workspace with one run in it, and what that run said."""
    workspace(tmp_path, "feature", 2)
    (tmp_path / "script.yaml").write_text(SCRIPT)
    settings = {
        "agent": {"name": "scripted", "script": "script.yaml"},
        "review": {"enabled": True},
        "checks": [{"name": "there", "command": "test -d .ralph"}],
        "branch": {"auto_create": False},
        "archive": {"on_complete": False},
    }
    (tmp_path / ".ralph/config.yaml").write_text(json.dumps(settings))
    for command in ("init -q -b main", "add -A", "commit -qm start"):
        subprocess.run(["git", *command.split()], cwd=tmp_path, check=True)
    done = ralph("run", "--plain", cwd=tmp_path, env={"RALPH_TRUST": "1"})
    assert done.code == 0, done.out + done.err
    return tmp_path, done.out


def test_a_run_and_its_figures(finished: tuple[Path, str]) -> None:
    root, said = finished
    assert "reviews    2 reviews, 0 of 1 story approved in its first review, 1 finding (1 major)" in said
    assert re.search(r"^ +review: 2 sessions, .*; work: 2 sessions, ", said, re.MULTILINE)
    found = ralph("stats", cwd=root)
    assert found.code == 0
    assert "1 run, 4 iterations, 1 story finished" in found.out
    assert "reviews    2, 2.0 per story, 0 of 1 story approved in its first review" in found.out
    assert "findings   1: 1 major; 1 closed" in found.out
    assert "1 about: it is whole" in found.out
    document = json.loads(ralph("stats", "--json", cwd=root).out)
    assert document["reviews"]["first_time_rate"] == 0
    assert document["effort"]["review"]["calls"] == 2
    assert document["effort"]["review"]["usd"] == 0.01
    assert document["attempts"] == {"2": 1}
    run = json.loads(ralph("runs", "--json", cwd=root).out)[0]["run"]
    assert ralph("stats", "--run", run[:15], cwd=root).out == found.out
    wrong = ralph("stats", "--run", "2019", cwd=root)
    assert wrong.code == 64
    assert "no run matches" in wrong.err


def test_a_workspace_without_a_run_says_so(tmp_path: Path) -> None:
    workspace(tmp_path, "feature", 2)
    assert ralph("stats", cwd=tmp_path).out == "No runs yet.\n"
    assert json.loads(ralph("stats", "--json", cwd=tmp_path).out)["runs"] == 0


def test_a_run_without_reviews_says_nothing_about_them() -> None:
    plain = Figures(runs=1, iterations=1, finished=1, attempts={1: 1}, effort={"implement": Effort(1, 2.0, 10)})
    assert list(review_lines(plain)) == []
    assert "reviews    none" in list(lines(plain))


def test_words_from_a_reviewer_cannot_write_on_the_terminal() -> None:
    found = FindingCounts(1, {"major\x1b[2J": 1}, {"a\x1b]0;title\x07b": 1}, {})
    told = Figures(runs=1, reviews=Reviews(1, 0, 1, 0), findings=found)
    assert "\x1b" not in "".join([*lines(told), *review_lines(told)])
