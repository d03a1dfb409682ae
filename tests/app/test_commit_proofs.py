"""`ralph proof` and `ralph audit` in a fresh clone: what the commits alone can tell, and what they cannot."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from support.cli import Completed, ralph_here
from support.proven import CODE, Proven, write

AWAY = {"RALPH_TRUST": "1"}


def work(number: int) -> list[Any]:
    return [write(f"src/part{number}.py", f"PART = {number}\n"), "claim"]


@pytest.fixture
def made(tmp_path: Path) -> Proven:
    made = Proven(tmp_path, stories=[{}, {}], checks=[{"name": "odd:\tname", "command": "test -d src"}])
    assert made.run(US_001=[work(1)], US_002=[work(2)]).code == 0
    return made


def in_clone(made: Proven, *arguments: str) -> Completed:
    """Where no run has ever been."""
    clone = made.folder / "clone"
    if not clone.exists():
        made.git("clone", "-q", str(made.root), str(clone))
    return ralph_here(*arguments, cwd=clone, env={"RALPH_STATE_HOME": str(made.folder / "elsewhere"), **AWAY})


def test_the_commit_of_a_story_says_what_proved_it(made: Proven) -> None:
    body = made.git("log", "-1", "--grep=Ralph-Story: US-002", "--format=%B", "HEAD")
    for line in ("Ralph-Verdict: done", "Ralph-Plan: .ralph/shop/prd.json", "Ralph-Check: passed exit=0 time="):
        assert line in body
    proof = made.ask("proof", "US-002", "--json").json
    assert f"Ralph-Tree: {proof['tree'][:12]}" in body
    assert f"Ralph-Check-Set: {proof['check_set']}" in body
    assert f"output={proof['checks'][0]['digest'][:12]} odd: name" in body


def test_proof_in_a_fresh_clone_is_the_commits_word(made: Proven) -> None:
    here, there = made.ask("proof", "US-001", "--json").json, in_clone(made, "proof", "US-001", "--json").json
    assert (there["run"], there["iteration"], there["commit"]) == (here["run"], here["iteration"], here["commit"])
    assert here["tree"].startswith(there["tree"])
    assert (here["is_from_commit"], there["is_from_commit"]) == (False, True)
    told = in_clone(made, "proof", "US-001")
    assert told.code == 0
    assert "all of this is from the commit" in told.out
    assert "odd: name" in told.out


def test_audit_in_a_fresh_clone_has_lapsed_until_the_checks_have_run_there(made: Proven) -> None:
    assert made.ask("audit").code == 0
    first = in_clone(made, "audit")
    assert first.code == 1
    assert first.out.count("proven as commit ") == 2
    assert "there has been no full pass" in first.out
    assert in_clone(made, "verify", "--final").code == 0
    second = in_clone(made, "audit", "--json")
    assert second.code == 0
    assert [story["standing"] for story in second.json["stories"]] == ["holds", "holds"]
    assert all(story["is_from_commit"] for story in second.json["stories"])


def test_a_journal_that_is_here_is_believed_and_not_the_commit(made: Proven) -> None:
    """Somebody took the name of a real run for a story that it never accepted."""
    forged = made.git("log", "-1", "--grep=Ralph-Story: US-002", "--format=%B", "HEAD").replace("US-002", "US-003")
    made.write("src/three.py", CODE)
    made.git("add", "-A", "src")
    made.git("commit", "-qm", forged)
    plan = made.read(".ralph/shop/prd.json")
    added = plan.replace('"id": "US-002"', '"id": "US-003"')
    assert added != plan
    made.write(".ralph/shop/prd.json", added)
    (one, two) = made.ask("audit", "--json").json["stories"]
    assert (one["standing"], two["story"], two["standing"]) == ("lapsed", "US-003", "by hand")


def test_another_plans_story_of_the_same_name_proves_nothing(made: Proven) -> None:
    clone = made.folder / "clone"
    made.git("clone", "-q", str(made.root), str(clone))
    shutil.move(clone / ".ralph/shop", clone / ".ralph/other")
    found = in_clone(made, "audit", "--json", "--feature", "other").json["stories"]
    assert {story["standing"] for story in found} == {"by hand"}


def test_a_branch_without_a_commit_and_a_folder_without_git_have_nothing_to_say(tmp_path: Path) -> None:
    made = Proven(tmp_path)
    shutil.rmtree(made.root / ".git")
    assert "no run has accepted it" in made.ask("proof", "US-001").out
    made.git("init", "-q", "-b", "main")
    assert "no run has accepted it" in made.ask("proof", "US-001").out
