"""`ralph explain prompt` prints what the agent gets: compared with what an agent really got."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from support.loops import CONFIG, PLANS, LoopProject, Scenario, run_ralph

STORIES = {"US-001": "Say one", "US-002": "Say two"}


def project(tmp_path: Path, layout: str, config: str = CONFIG) -> LoopProject:
    """Each session writes down what it was told; the first attempt at a story fails."""
    told = f"{{prompt: {tmp_path}/told.txt}}"
    script = f"""
stories:
  '*':
    - implement: [{told}, {{write: {{path: src/x.txt, text: BROKEN}}}}, claim]
    - implement: [{told}, {{write: {{path: src/x.txt, text: fine}}}}, claim]
      review: [{told}, {{verdict: {{what: changes_requested, feedback: more words}}}}]
      fix: [{told}, {{write: {{path: src/x.txt, text: better}}}}, claim]
"""
    stories = {"1.1": "Say one", "1.2": "Say two"} if layout == "spec.md" else STORIES
    return LoopProject.make(tmp_path / "made", Scenario(layout, stories, script, [], config=config))


def printed_and_told(made: LoopProject) -> tuple[str, str]:
    printed = run_ralph(made, "prompt", "--json")
    assert printed.code == 0, printed.err
    done = run_ralph(made, "run", "--once", "--quiet")
    assert done.code in (0, 1), done.err
    return printed.json["prompt"], (made.folder.parent / "told.txt").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("layout", PLANS)
def test_it_prints_what_the_first_and_the_second_attempt_are_told(tmp_path: Path, layout: str) -> None:
    made = project(tmp_path, layout)
    printed, told = printed_and_told(made)
    assert printed == told
    printed, told = printed_and_told(made)
    assert printed == told
    assert "## Result of the last session" in told


def test_a_question_is_no_result_of_the_last_session(tmp_path: Path) -> None:
    script = "stories:\n  '*':\n    - implement: [{ask: Which colour?}]\n"
    made = LoopProject.make(tmp_path, Scenario("tasks.json", {"US-001": "Say it"}, script, [], config=CONFIG))
    asked = run_ralph(made)
    assert '  next       `ralph answer US-001 "…"`, then `ralph run`' in asked.out
    assert run_ralph(made, "answer", "US-001", "Blue").code == 0
    prompt = run_ralph(made, "prompt", "--json").json["prompt"]
    assert "“Which colour?” — Blue" in prompt
    assert "the last session" not in prompt


@pytest.mark.slow
@pytest.mark.parametrize("layout", PLANS)
def test_the_next_prompt_has_the_failing_output_of_the_checks(tmp_path: Path, layout: str) -> None:
    made = project(tmp_path, layout)
    made.write("check.sh", "grep -rl BROKEN src && echo 'expected FINE, got BROKEN' >&2 && exit 7\nexit 0\n")
    made.git("commit", "-qm", "a check that says why", "check.sh")
    _, told = printed_and_told(made)
    assert "expected FINE" not in told
    second, _ = printed_and_told(made)
    assert "exit code 7" in second
    assert "src/x.txt" in second
    assert "expected FINE, got BROKEN" in second
    assert second.index("expected FINE, got BROKEN") < second.index("## Checks")


@pytest.mark.slow
def test_a_prompt_of_ones_own_says_first_that_this_is_a_review(tmp_path: Path) -> None:
    config = CONFIG.replace("{enabled: false}", "{enabled: true}") + "max_iterations: 7\n"
    made = project(tmp_path, "tasks.json", config)
    own = "# Iteration $RALPH_ITERATION of $RALPH_MAX_ITERATIONS\n\nImplement {{STORY_ID}} and set passes.\n"
    made.write(".ralph/words/prompt.md", own)
    asked = run_ralph(made, "prompt", "--json", "--story", "US-001", "--mode", "review").json["prompt"]
    assert asked.startswith("Review US-001. This session is a review: ")
    assert "# Iteration 1 of 7\n\nImplement US-001 and set passes." in asked
    assert run_ralph(made, "prompt", "--json").json["prompt"].startswith("# Iteration 1 of 7\n")


@pytest.mark.slow
def test_it_prints_what_the_next_mode_is_told(tmp_path: Path) -> None:
    made = project(tmp_path, "tasks.json", CONFIG.replace("{enabled: false}", "{enabled: true}"))
    modes = []
    for _ in range(4):
        modes.append(run_ralph(made, "prompt", "--json").json["mode"])
        printed, told = printed_and_told(made)
        assert printed == told
    assert modes == ["implement", "implement", "review", "fix"]


def test_a_story_and_a_mode_can_be_asked_for(tmp_path: Path) -> None:
    made = project(tmp_path, "tasks.json")
    asked = run_ralph(made, "prompt", "--json", "--story", "US-002", "--mode", "review").json
    assert (asked["story"], asked["mode"]) == ("US-002", "review")
    assert "US-002" in asked["prompt"]
    unknown = run_ralph(made, "prompt", "--story", "US-02")
    assert unknown.code == 64
    assert "did you mean US-002?" in unknown.err


def test_it_says_how_long_it_is_and_touches_nothing(tmp_path: Path) -> None:
    made = project(tmp_path, "feature")
    before = _everything(made.folder)
    done = run_ralph(made, "prompt")
    assert done.err.startswith("about ")
    assert _everything(made.folder) == before


def _everything(folder: Path) -> dict[str, bytes | None]:
    found = (Path(root, name) for root, folders, files in os.walk(folder) for name in (*folders, *files))
    return {str(path): path.read_bytes() if path.is_file() else None for path in found}
