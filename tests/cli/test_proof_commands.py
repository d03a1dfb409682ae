"""`ralph verify`, `ralph proof` and `ralph proof audit`, as people use them around a run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ralph.core.events import Baseline
from support.proven import Proven, shell, write

ONE = [write("src/one.py", "ONE = 1\n"), "claim"]
TWO = [write("src/two.py", "TWO = 2\n"), "claim"]
STORIES = [{"verify": ["test -f src/one.py"]}, {"verify": ["test -f src/two.py"]}]


def shop(folder: Path, **more: Any) -> Proven:
    return Proven(folder, stories=STORIES, **more)


@pytest.fixture
def done(tmp_path: Path) -> Proven:
    made = shop(tmp_path)
    assert made.run(US_001=[ONE], US_002=[TWO]).code == 0
    return made


def standings(made: Proven) -> list[str]:
    return [story["standing"] for story in made.ask("audit", "--json").json["stories"]]


def test_verify_runs_the_checks_of_the_next_story_of_one_or_all(tmp_path: Path) -> None:
    made = shop(tmp_path)

    def names(*arguments: str) -> list[str]:
        return [check["name"] for check in made.ask("verify", "--trust", "--json", *arguments).json["checks"]]

    assert names() == ["US-001: test -f src/one.py", "tests"]
    assert names("--story", "US-002") == ["US-002: test -f src/two.py", "tests"]
    assert names("--final") == ["US-001: test -f src/one.py", "US-002: test -f src/two.py", "tests"]
    assert made.ask("verify", "--trust").code == 1
    assert made.ask("verify", "--trust", "--story", "US-009").code == 64


def test_a_proof_names_check_tree_set_run_iteration_and_commit(done: Proven) -> None:
    told = done.ask("proof", "US-002", "--json").json
    assert (told["story"], told["iteration"]) == ("US-002", 2)
    assert told["commit"] == done.git("log", "-1", "--format=%H", "--grep=Ralph-Story: US-002")
    assert [check["name"] for check in told["checks"]] == [
        *("US-002: test -f src/two.py", "US-001: test -f src/one.py", "tests"),
    ]
    assert all(check["code"] == 0 and check["digest"] for check in told["checks"])
    assert told["tree"]
    assert told["check_set"]
    assert "test -f src/two.py" in done.ask("proof", "US-002").out


def test_audit_tells_what_holds_on_the_tree_as_it_is(done: Proven) -> None:
    assert standings(done) == ["holds", "holds"]
    done.write("src/one.py", "ONE = 1.0\n")
    assert standings(done) == ["lapsed", "lapsed"]
    assert "changed since the last full pass: src/one.py" in done.ask("audit").out
    assert done.ask("verify", "--final", "--trust").code == 0
    assert standings(done) == ["holds", "holds"]
    done.git("checkout", "-q", "src/one.py")
    done.git("revert", "--no-edit", "HEAD~1")
    assert "lapsed" in standings(done)


def test_audit_knows_a_commit_that_is_no_longer_part_of_the_branch(done: Proven) -> None:
    before = done.git("log", "-1", "--format=%H", "--grep=Ralph-Story: US-001")
    plan = done.read(".ralph/shop/prd.json")
    done.git("reset", "-q", "--hard", f"{before}~1")
    done.write(".ralph/shop/prd.json", plan)
    assert standings(done) == ["lost", "lost"]


def test_a_story_that_a_person_marked_is_by_hand_and_one_without_checks_unproven(tmp_path: Path) -> None:
    made = Proven(tmp_path, stories=[{}, {"passes": True}], checks=[])
    made.run(US_001=[ONE])
    assert standings(made) == ["unproven", "by hand"]
    assert "Ralph-Checks" not in made.git("log", "--format=%B")
    assert "unproven" in made.ask("proof", "US-001").out
    assert "marked done by hand" in made.ask("proof", "US-002").out


def test_the_baseline_of_a_finished_run_is_known_to_the_next_one(tmp_path: Path) -> None:
    made = Proven(tmp_path, stories=[{}, {}], checks=[{"name": "counts", "command": "echo ran >> ../count"}])
    made.run("-n", "1", US_001=[ONE])
    ran = len((tmp_path / "count").read_text().splitlines())
    made.run("-n", "1", US_002=[TWO])
    assert any(isinstance(event, Baseline) for event in made.events())
    # Once for the story, once for the final pass, and not for the baseline.
    assert len((tmp_path / "count").read_text().splitlines()) == ran + 2


def test_what_failed_before_is_excused_by_hand_as_in_the_loop(tmp_path: Path) -> None:
    old = [{"name": "old", "command": "test -f fixed"}, {"name": "new", "command": "true"}]
    made = Proven(tmp_path, checks=old, baseline="no-worse")
    assert made.run(US_001=[ONE]).code == 0
    told = made.ask("verify", "--final")
    assert (told.code, "old (as before the last run)" in told.out) == (0, True)
    assert "all checks pass, except 1 that may fail" in told.out
    assert standings(made) == ["holds"]


def test_a_failure_that_was_there_is_told_apart_and_rejects_when_strict(tmp_path: Path) -> None:
    made = Proven(tmp_path, checks=[{"name": "old", "command": "test -f fixed"}])
    said = made.run("-n", "2", "--allow-broken-checks", US_001=[ONE, [*ONE[:1], shell("touch fixed"), "claim"]])
    assert "old (`test -f fixed`) fails before any work; continues: every story is rejected" in said.out
    first, second = made.ended()
    assert first.headline == "check 'old' failed with exit code 1 (it also failed before this story)"
    assert second.completes
