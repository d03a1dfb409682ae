"""`ralph explain` on real runs."""

from __future__ import annotations

from pathlib import Path

from support.cli import ralph_here
from support.loops import LoopProject, run_ralph, short


def test_a_run_that_went_wrong_is_explained_with_its_evidence(tmp_path: Path) -> None:
    project = LoopProject.make(tmp_path / "loop", short("tasks.json"))
    assert run_ralph(project, "run", "--plain", "-n", "1").code == 1
    done = ralph_here("explain", cwd=project.root, env=project.env)
    assert done.code == 0
    assert ": iteration-cap (exit code 1)" in done.out
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
