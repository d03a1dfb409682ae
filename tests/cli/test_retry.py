"""A failed story is tried again when somebody asks for it, or when what it failed by was changed; and only then."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ralph.core.events import IterationEnded, IterationStarted, RunEnded, RunStarted
from ralph.core.moves import Reason
from ralph.core.verdict import Kind
from support.cli import Completed, ralph_here
from support.loops import LoopProject, Scenario, finish, run_ralph, start_ralph
from support.processes import wait_for

STORIES = ("US-001", "US-002")
BREAKER = {"retry_rounds": 0, "no_progress_threshold": 2, "same_error_threshold": 2, "on_stuck": "next"}
BROKEN = [{"write": {"path": "src/x.txt", "text": "BROKEN\n"}}, "claim"]


def good(story: str) -> list[Any]:
    return [{"write": {"path": f"src/{story}.txt", "text": "fine\n"}}, "claim"]


def project(folder: Path, play: dict[str, list[Any]], layout: str = "tasks.json", **config: Any) -> LoopProject:
    script = {"stories": {name: [good(name)] for name in STORIES} | play}
    settings = {
        "agent": {"name": "scripted", "script": ".ralph/script.yaml"},
        "review": {"enabled": False},
        "archive": {"on_complete": False},
        "branch": {"auto_create": False},
        "checks": [{"name": "words", "command": "sh check.sh"}],
        "circuit_breaker": {"retry_rounds": 0},
    } | config
    return LoopProject.make(
        folder, Scenario(layout, dict.fromkeys(STORIES, "Say it"), json.dumps(script), [], config=json.dumps(settings))
    )


def repaired(made: LoopProject, play: dict[str, list[Any]]) -> None:
    script = {"stories": {name: [good(name)] for name in STORIES} | play}
    (made.root / ".ralph/script.yaml").write_text(json.dumps(script))
    made.git("commit", "-qam", "script")


def here(made: LoopProject, *arguments: str) -> Completed:
    return ralph_here(*arguments, cwd=made.root, env=made.env)


def states(made: LoopProject) -> dict[str, str]:
    return {story["id"]: story["state"] for story in here(made, "status", "--json").json["stories"]}


def tried(made: LoopProject) -> list[tuple[str, Kind]]:
    return [(e.story, e.kind) for e in made.events() if isinstance(e, IterationEnded)]


def failed(tmp_path: Path, layout: str = "tasks.json") -> LoopProject:
    """The first story has failed; what it fails by has been taken away since."""
    made = project(tmp_path / "p", {"US-001": [BROKEN]}, layout)
    assert run_ralph(made).code == 5
    assert states(made) == {"US-001": "failed", "US-002": "done"}
    repaired(made, {})
    return made


@pytest.mark.parametrize("layout", ["tasks.json", "steps"])
def test_retry_opens_a_failed_story_with_all_its_attempts(tmp_path: Path, layout: str) -> None:
    made = failed(tmp_path, layout)
    count = len(tried(made))
    again = run_ralph(made)
    assert (again.code, len(tried(made))) == (5, count), "by itself it is not tried again"
    assert "ralph retry" in again.out
    assert "Reopened US-001" in here(made, "retry").out
    assert here(made, "task", "show", "US-001", "--json").json["attempts"] == 0
    assert run_ralph(made).code == 0
    assert tried(made)[count:] == [("US-001", Kind.ACCEPTED)]


@pytest.mark.parametrize(
    ("layout", "by"),
    [
        ("feature", "retry"),
        ("plan.md", "retry"),
        ("steps", "retry"),
        ("tasks.json", "retry"),
        ("tasks.json", "settings"),
    ],
)
def test_a_story_that_only_its_review_failed_is_reviewed_and_not_implemented_again(
    tmp_path: Path, layout: str, by: str
) -> None:
    play = {name: [{"implement": good(name), "review": [{"say": "Hm."}]}] for name in STORIES}
    made = project(tmp_path / "p", play, layout, review={"enabled": True}, circuit_breaker=BREAKER)
    assert run_ralph(made, "run", "--plain", "--story", "US-001").code == 5
    assert states(made)["US-001"] == "failed"
    approves = {
        name: [{"implement": good(name), "review": [{"verdict": {"what": "approved", "by": "request"}}]}]
        for name in STORIES
    }
    repaired(made, approves)
    count = len(modes(made))
    if by == "retry":
        assert "Reopened US-001" in here(made, "retry", "US-001").out
        run_ralph(made, "run", "--plain", "--once")
    else:
        run_ralph(made, "run", "--plain", "--once", "-t", "20m")
    assert modes(made)[count:] == [("US-001", "review")]
    assert states(made)["US-001"] == "done"


def modes(made: LoopProject) -> list[tuple[str, str]]:
    return [(e.story, e.mode.value) for e in made.events() if isinstance(e, IterationStarted)]


def test_the_advice_after_the_same_error_names_it(tmp_path: Path) -> None:
    made = project(tmp_path / "p", {name: [BROKEN] for name in STORIES})
    done = run_ralph(made)
    assert [e.reason for e in made.events() if isinstance(e, RunEnded)] == [Reason.SAME_ERROR]
    assert "`ralph retry --all`" in done.out


def test_what_cannot_be_retried_is_said(tmp_path: Path) -> None:
    made = project(tmp_path / "p", {name: [BROKEN] for name in STORIES}, circuit_breaker={"same_error_threshold": 0})
    assert here(made, "retry").out == "No failed stories.\n"
    run_ralph(made, "run", "--plain", "--max-loops-per-task", "1")
    several = here(made, "retry")
    assert several.code == 64
    assert "2 stories have failed: US-001, US-002" in several.err
    unknown = here(made, "retry", "US-01")
    assert "no story 'US-01'" in unknown.err
    assert "did you mean US-001" in unknown.err
    assert here(made, "retry", "US-001", "--all").code == 64
    assert here(made, "retry", "--all", "--json").json == {"stories": list(STORIES), "queued": False}
    here(made, "task", "done", "US-002", "--note", "by hand")
    assert "is done, not failed" in here(made, "retry", "US-002").err


def test_a_run_that_is_under_way_takes_it_up(tmp_path: Path) -> None:
    made = project(tmp_path / "p", {"US-001": [BROKEN], "US-002": [[{"sleep": 3}, *good("US-002")]]})
    running = start_ralph(made)
    wait_for(lambda: [e for e in made.events() if isinstance(e, IterationStarted) and e.story == "US-002"])
    queued = here(made, "retry", "US-001")
    assert queued.out == "The run retries US-001 before its next iteration.\n"
    done = finish(running)
    assert "retrying, as you asked: US-001" in done.out
    assert tried(made)[-1] == ("US-001", Kind.REJECTED)
    assert [story for story, _ in tried(made)].index("US-002") < len(tried(made)) - 1


def edit(made: LoopProject, old: str, new: str) -> None:
    (plan,) = [path for path in made.root.rglob("*.json") if path.name in ("tasks.json", "prd.json")]
    text = plan.read_text()
    assert old in text
    plan.write_text(text.replace(old, new, 1))
    made.git("commit", "-qam", "plan")


@pytest.mark.parametrize("layout", ["tasks.json", "feature", "steps"])
def test_a_failed_story_that_is_changed_starts_clean(tmp_path: Path, layout: str) -> None:
    made = failed(tmp_path, layout)
    count = len(tried(made))
    edit(made, '"Say it"', '"Say it politely"')
    done = run_ralph(made)
    assert done.code == 0, done.out
    assert "US-001 starts again: the story was changed" in done.out
    assert tried(made)[count:] == [("US-001", Kind.ACCEPTED)]
    last = [e for e in made.events() if isinstance(e, RunStarted)][-1]
    assert "US-001" not in last.feedback, "what the old story ran into is nothing to the new one"
    begun = [e for e in made.events() if isinstance(e, IterationStarted)][-1]
    assert begun.attempt == 1


def test_a_failed_story_is_tried_again_when_checks_or_settings_change(tmp_path: Path) -> None:
    made = failed(tmp_path)
    config = made.root / ".ralph/config.yaml"
    settings = json.loads(config.read_text())
    assert run_ralph(made, "run", "--plain", "-n", "50").code == 5, "how long a run may be makes no difference"
    config.write_text(json.dumps(settings | {"timeout": "20m"}))
    made.git("commit", "-qam", "config")
    done = run_ralph(made)
    assert done.code == 0, done.out
    assert "US-001 starts again: checks or settings changed" in done.out


def test_attempts_of_a_story_that_was_replaced_are_not_the_new_ones(tmp_path: Path) -> None:
    made = project(tmp_path / "p", {"US-001": [BROKEN]})
    run_ralph(made, "run", "--plain", "-n", "2")
    assert here(made, "task", "show", "US-001", "--json").json["attempts"] == 2
    edit(made, '"Say it"', '"Say something else"')
    run_ralph(made, "run", "--plain", "-n", "1")
    assert [e for e in made.events() if isinstance(e, IterationStarted)][-1].attempt == 1


def test_notes_and_priority_are_no_other_story(tmp_path: Path) -> None:
    made = failed(tmp_path)
    count = len(tried(made))
    here(made, "task", "set", "US-001", "--notes", "hard", "--priority", "9")
    assert run_ralph(made).code == 5
    assert len(tried(made)) == count


# Only the stories that are named


def test_only_the_named_stories_are_worked_on(tmp_path: Path) -> None:
    made = project(tmp_path / "p", {})
    done = run_ralph(made, "run", "--plain", "--story", "US-002")
    assert done.code == 0, done.out
    assert tried(made) == [("US-002", Kind.ACCEPTED)]
    assert "the stories you named are done" in done.out
    assert "1 story × about 2 iterations = about 2; cap" in done.out, "the estimate is for the named story only"
    assert states(made) == {"US-001": "todo", "US-002": "done"}
    assert [e.reason for e in made.events() if isinstance(e, RunEnded)] == [Reason.NAMED_STORIES]
    assert "0 differ" in here(made, "replay").out


def test_a_failed_story_that_is_named_is_tried_again(tmp_path: Path) -> None:
    made = failed(tmp_path)
    done = run_ralph(made, "run", "--plain", "--story", "US-001")
    assert done.code == 0, done.out
    assert "retrying failed stories: US-001" in done.out


def test_a_wrong_name_is_said_with_those_that_look_like_it(tmp_path: Path) -> None:
    made = project(tmp_path / "p", {})
    wrong = here(made, "run", "--plain", "--story", "us-2")
    assert wrong.code == 64
    assert "no story 'us-2' in the plan" in wrong.err
    assert "did you mean US-002?" in wrong.err


def test_a_story_that_waits_for_one_that_is_not_named_is_refused(tmp_path: Path) -> None:
    made = project(tmp_path / "p", {})
    here(made, "task", "set", "US-002", "--depends-on", "US-001")
    made.git("commit", "-qam", "plan")
    refused = here(made, "run", "--plain", "--story", "US-002")
    assert refused.code == 64
    assert "story US-002 depends on US-001 (not done yet)" in refused.err
    assert run_ralph(made, "run", "--plain", "--story", "US-002", "--story", "US-001").code == 0
