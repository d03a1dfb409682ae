"""`ralph proof` and `ralph proof audit` in a fresh clone: what the commits alone can tell, and what they cannot."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from support.cli import Completed, ralph_here
from support.loops import CONFIG, PLANS, LoopProject, Scenario, run_ralph
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
    assert "from the commit message only" in told.out
    assert "odd: name" in told.out


def test_audit_in_a_fresh_clone_has_lapsed_until_the_checks_have_run_there(made: Proven) -> None:
    assert made.ask("audit").code == 0
    first = in_clone(made, "audit")
    assert first.code == 1
    assert first.out.count("proven according to commit ") == 2
    assert "all checks have never passed together" in first.out
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
    assert "not accepted by any run" in made.ask("proof", "US-001").out
    made.git("init", "-q", "-b", "main")
    assert "not accepted by any run" in made.ask("proof", "US-001").out


COMMITS = "git add -A . && git commit -qm 'by the agent'"


@pytest.mark.parametrize("layout", sorted(PLANS))
@pytest.mark.parametrize("claim", ["claim", "mark"])
def test_commits_of_the_agents_own_are_known_in_a_fresh_clone(tmp_path: Path, layout: str, claim: str) -> None:
    """Whether the loop's commit has the plan's mark in it, or nothing is left for it to commit."""
    story = "1.1" if layout == "spec.md" else "US-001"
    by = "command" if layout == "tasks.json" else "hand"  # there a mark needs a note
    act = f"{{mark: {{by: {by}, note: done}}}}" if claim == "mark" else "claim"
    write_first, write_second = (f"{{write: {{path: src/{name}.txt, text: {name}}}}}" for name in ("one", "two"))
    script = f"stories:\n  '{story}':\n    - implement: [{write_first}, {{run: {COMMITS!r}}}, {write_second}, "
    script += f"{act}, {{run: {COMMITS!r}}}]\n"
    made = LoopProject.make(tmp_path / "made", Scenario(layout, {story: "Say one"}, script, []))
    assert run_ralph(made).code == 0
    theirs = made.git("log", "--reverse", "--format=%H", "--grep=^by the agent$").splitlines()
    assert len(theirs) == 2
    assert "branch     main, 3 commits (2 by the agent)" in run_ralph(made, "report").out
    clone = tmp_path / "clone"
    made.git("clone", "-q", str(made.root), str(clone))
    away = {**AWAY, "RALPH_STATE_HOME": str(tmp_path / "elsewhere")}
    for told in (run_ralph(made, "proof", story, "--json"), ralph_here("proof", story, "--json", cwd=clone, env=away)):
        proof = told.json
        assert (told.code, proof["agent_commits"]) == (0, theirs)
        assert made.git("rev-parse", f"{proof['commit']}^") == theirs[-1]
    assert f"{theirs[0]} by the agent" in ralph_here("proof", story, cwd=clone, env=away).out


def test_where_a_pipeline_does_not_commit_the_journal_knows_the_agents_commits(tmp_path: Path) -> None:
    steps = "steps:\n  - {type: agent, name: agent}\n"
    acts = f"{{write: {{path: src/one.txt, text: one}}}}, {{run: {COMMITS!r}}}, claim"
    script = f"stories:\n  US-001:\n    - implement: [{acts}]\n"
    made = LoopProject.make(tmp_path / "made", Scenario("steps", {"US-001": "Say"}, script, [], config=CONFIG + steps))
    assert run_ralph(made).code == 0
    [theirs] = made.git("log", "--format=%H", "--grep=^by the agent$").splitlines()
    assert "Ralph-" not in made.git("log", "--format=%B")
    assert run_ralph(made, "proof", "US-001", "--json").json["agent_commits"] == [theirs]
