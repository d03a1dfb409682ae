"""`ralph explain` on real runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.cli import ralph_here
from support.loops import LoopProject, run_ralph, short
from support.proven import Proven, write


def test_a_run_that_went_wrong_is_explained_with_its_evidence(tmp_path: Path) -> None:
    project = LoopProject.make(tmp_path / "loop", short("tasks.json"))
    assert run_ralph(project, "run", "--plain", "-n", "1").code == 1
    done = ralph_here("explain", cwd=project.root, env=project.env)
    assert done.code == 0
    assert ": iteration-cap (exit code 1)" in done.out
    assert "1 of 1 attempt was rejected: " in done.out
    assert "✗ rejected: " in done.out
    assert "Last failing check: sh check.sh" in done.out
    assert "Counters: iterations 1 of 1; without progress, in a row 1 of 3;" in done.out
    assert "`ralph rescue show " in done.out
    assert "What to do: `ralph run` continues; without max_iterations (-n) the cap follows from the plan" in done.out
    shown = next(line for line in done.out.splitlines() if "ralph rescue show" in line).strip().strip("`").split()[1:]
    assert ralph_here(*shown, cwd=project.root, env=project.env).code == 0, "the hint can be used as it is"
    found = ralph_here("explain", "--json", cwd=project.root, env=project.env).json
    assert (found["reason"], found["exit_code"], found["failing"][0]["command"]) == ("iteration-cap", 1, "sh check.sh")


def test_without_a_run_there_is_nothing_to_explain(tmp_path: Path) -> None:
    (tmp_path / ".ralph").mkdir()
    done = ralph_here("explain", cwd=tmp_path)
    assert (done.code, "no runs yet" in done.err) == (64, True)
    assert ralph_here("explain", "transitions", cwd=tmp_path).out.count("legal") > 60
    assert len(ralph_here("explain", "transitions", "--json", cwd=tmp_path).json) == 68


@pytest.mark.defaults
def test_rejections_with_a_common_reason_are_explained_by_it(tmp_path: Path) -> None:
    """No attempt wrote a test, and the run asked for one."""
    made = Proven(
        tmp_path, max_loops_per_task=0, circuit_breaker={"no_progress_threshold": 0, "same_error_threshold": 0}
    )
    attempts = [[write("README.md", f"Text {number}.\n"), "claim"] for number in range(4)]
    assert made.run("-n", "4", "--proof-minimum", "witnessed", US_001=attempts).code == 1
    assert [event.kind.value for event in made.ended()] == ["rejected"] * 4
    done = made.ask("explain")
    assert (
        "All 4 attempts were rejected for the same reason: the story is unproven; proof.minimum is witnessed."
        in done.out
    )
    assert "What to do: ask for a test in the story's criteria, or give the story a `verify` command" in done.out
    assert "--proof-minimum reviewed" in done.out
    assert "Nothing is wrong" not in done.out


def test_rejections_for_different_reasons_name_the_most_frequent(tmp_path: Path) -> None:
    made = Proven(tmp_path, max_loops_per_task=0, checks=["! grep -q BROKEN src/shop.py"])
    broken = [write("src/shop.py", "BROKEN = 1\n"), "claim"]
    assert made.run("-n", "3", US_001=[["claim"], broken, broken]).code == 1
    done = made.ask("explain")
    assert "All 3 attempts were rejected, for different reasons; most often (2 of 3): " in done.out
    assert "What to do: more attempts alone may not help" in done.out


def test_the_grades_are_explained_and_an_unknown_topic_names_the_topics(tmp_path: Path) -> None:
    made = Proven(tmp_path, max_loops_per_task=0)
    done = made.ask("explain", "grades")
    assert done.code == 0
    assert "  witnessed  a test fails without the change" in done.out
    assert "proof.minimum" in done.out
    assert [each["grade"] for each in made.ask("explain", "grades", "--json").json][:2] == ["proven", "witnessed"]
    made.run("-n", "1", US_001=[["claim"]])
    wrong = made.ask("explain", "rank")
    assert (wrong.code, "the topics are grades, transitions" in wrong.err) == (64, True)


def test_the_log_of_a_story_has_its_iterations_of_all_runs(tmp_path: Path) -> None:
    made = Proven(tmp_path, stories=({"verify": ["test -f one"]}, {"verify": ["test -f two"]}))
    made.run("-n", "1", US_001=[["claim"]])
    made.run("-n", "2", US_001=[[write("one", "1\n"), "claim"]], US_002=[["claim"]])
    done = made.ask("log", "us-001")
    assert done.code == 0
    assert done.out.count("▶ iteration") == 2
    assert done.out.count("\nrun ") + done.out.startswith("run ") == 2
    assert "rejected US-001: no files changed" in done.out
    assert "accepted US-001" in done.out
    assert "US-002" not in done.out
    records = made.ask("log", "US-001", "--json").out.splitlines()
    assert records
    assert all("RunStarted" not in line for line in records)
    wrong = made.ask("log", "US-009")
    assert (wrong.code, "no run worked on a story with this ID" in wrong.err) == (64, True)
