"""`ralph answer`: the story is open again, and the next prompt has the answer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ralph.core.changes import SetFields
from ralph.core.plan import State
from ralph.core.ports import PlanRef
from ralph.host.locks import Lock, Owner
from ralph.state.names import EDIT_LOCK
from ralph.state.places import plan_state
from ralph.workspace.find import store_for
from ralph.workspace.stuck_stories import read_answers
from support.cli import ralph_here
from support.loops import LoopProject, finish, run_ralph, start_ralph, whole
from support.processes import wait_for
from support.workspaces import story_id, workspace

LAYOUTS = ("plan.md", "tasks.json", "steps", "feature", "spec.md")


def block(ref: PlanRef, env: dict[str, str], number: int, question: str) -> str:
    """A story that a run has set aside with a question."""
    story = story_id(ref.layout, number)
    store = store_for(ref, env)
    store.save(store.load(), [SetFields(story, {"state": State.BLOCKED})], {story: f"asks: {question}"})
    return story


def answers(ref: PlanRef, env: dict[str, str], story: str) -> tuple[str, ...]:
    return read_answers(plan_state(ref, env)).of(story)


@pytest.fixture
def env(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, str]:
    state = tmp_path / "state"
    monkeypatch.setenv("RALPH_STATE_HOME", str(state))
    return {"RALPH_STATE_HOME": str(state)}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_an_answer_opens_the_story_and_forgets_what_it_waited_for(
    tmp_path: Path, env: dict[str, str], layout: str
) -> None:
    ref = workspace(tmp_path / "work", layout)
    story = block(ref, env, 3, "Which database?")
    done = ralph_here("answer", story, "PostgreSQL", cwd=ref.root)
    assert done.code == 0, done.err
    loaded = store_for(ref, env).load()
    found = loaded.plan.story(story)
    assert found is not None
    assert found.state is State.TODO
    assert loaded.sidecar.get(story).why is None
    assert answers(ref, env, story) == ("“Which database?” — PostgreSQL",)
    assert "Which database?" not in ralph_here("status", cwd=ref.root).out


def test_the_waiting_file_goes_with_the_answer_to_its_question(tmp_path: Path, env: dict[str, str]) -> None:
    ref = workspace(tmp_path / "work", "tasks.json")
    waiting = ref.root / ".ralph" / "WAITING"
    first, other = block(ref, env, 3, "Which colour?"), block(ref, env, 4, "Which size?")
    waiting.write_text("Which colour?\n")
    assert ralph_here("answer", other, "Large", cwd=ref.root).code == 0
    assert waiting.exists(), "the other story still waits"
    assert ralph_here("answer", story_id(ref.layout, 5), "By the way", cwd=ref.root).code == 0
    assert waiting.exists(), "nobody asked this story"
    assert answers(ref, env, story_id(ref.layout, 5)) == ("By the way",)
    assert ralph_here("answer", first, "Red", cwd=ref.root).code == 0
    assert not waiting.exists()


def test_without_arguments_the_open_questions_are_listed(tmp_path: Path, env: dict[str, str]) -> None:
    ref = workspace(tmp_path / "work", "tasks.json")
    assert ralph_here("answer", cwd=ref.root).out == "No open questions.\n"
    story = block(ref, env, 3, "Which colour?\nRed or blue?")
    (ref.root / ".ralph" / "WAITING").write_text("Is the design fine?\n")
    done = ralph_here("answer", cwd=ref.root)
    assert (done.code, done.out) == (0, f"{story}: Which colour?\n    Red or blue?\n-: Is the design fine?\n")
    assert f'`ralph answer {story} "…"`' in done.err
    listed = json.loads(ralph_here("answer", "--json", cwd=ref.root).out)
    assert listed[0] == {"story": story, "question": "Which colour?\nRed or blue?"}


def test_an_answer_can_come_from_stdin_but_not_from_nowhere(tmp_path: Path, env: dict[str, str]) -> None:
    ref = workspace(tmp_path / "work", "tasks.json")
    story = block(ref, env, 3, "Which colour?")
    missing = ralph_here("answer", story, cwd=ref.root)
    assert (missing.code, "the answer is missing" in missing.err) == (64, True)
    assert ralph_here("answer", story, "-", cwd=ref.root, stdin="Blue,\nplease\n").code == 0
    assert answers(ref, env, story) == ("“Which colour?” — Blue,\nplease",)


def test_an_answer_for_everybody_takes_the_waiting_file_away(tmp_path: Path, env: dict[str, str]) -> None:
    ref = workspace(tmp_path / "work", "feature")
    (ref.root / ".ralph" / "WAITING").write_text("Is the design fine?\n")
    assert ralph_here("answer", "-", "It is", cwd=ref.root).code == 0
    assert not (ref.root / ".ralph" / "WAITING").exists()
    assert answers(ref, env, "whatever") == ("“Is the design fine?” — It is",)


def test_an_answer_waits_for_its_turn(tmp_path: Path, env: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    ref = workspace(tmp_path / "work", "tasks.json")
    story = block(ref, env, 3, "Which colour?")
    monkeypatch.setattr("ralph.state.locks._PATIENCE", 0.1)
    lock = Lock(plan_state(ref, env) / EDIT_LOCK)
    lock.acquire(Owner.here("edit"))
    try:
        done = ralph_here("answer", story, "Red", cwd=ref.root)
    finally:
        lock.release()
    assert done.code == 73
    assert answers(ref, env, story) == ()


@pytest.mark.parametrize("text", ["", "  ", "\x1b[31mred"])
def test_what_is_no_answer_is_refused(tmp_path: Path, env: dict[str, str], text: str) -> None:
    ref = workspace(tmp_path / "work", "tasks.json")
    assert ralph_here("answer", "-", text, cwd=ref.root).code == 64
    assert answers(ref, env, "") == ()


def test_an_agent_cannot_answer_itself(tmp_path: Path, env: dict[str, str]) -> None:
    ref = workspace(tmp_path / "work", "tasks.json")
    assert ralph_here("answer", "-", "yes", cwd=ref.root, env={"RALPH_LOOP": "1"}).code == 78


@pytest.mark.parametrize("layout", LAYOUTS)
def test_an_answer_for_everybody_opens_every_story_that_asked(tmp_path: Path, env: dict[str, str], layout: str) -> None:
    ref = workspace(tmp_path / "work", layout)
    stories = [block(ref, env, 3, "Which database?"), block(ref, env, 4, "Which port?")]
    assert ralph_here("answer", "-", "As you like", cwd=ref.root).code == 0
    plan = store_for(ref, env).load().plan
    assert [found.state for story in stories if (found := plan.story(story))] == [State.TODO, State.TODO]


def test_an_answer_during_a_run_is_left_to_the_run(tmp_path: Path) -> None:
    """The first story asks; it is answered while the second one is worked on."""
    asks = "    - implement: [{prompt: build/prompt.txt}, {ask: Which colour?}]\n"
    slow = "    - implement: [{write: {path: src/two.txt, text: two}}, {sleep: 3}, claim]\n"
    scenario = whole("tasks.json")._replace(
        stories={"US-001": "Say one", "US-002": "Say two"},
        script=f"stories:\n  US-001:\n{asks}  US-002:\n{slow}",
    )
    project = LoopProject.make(tmp_path / "made", scenario)
    process = start_ralph(project)
    wait_for((project.root / "src/two.txt").exists)
    before = project.plan.read_bytes()
    done = run_ralph(project, "answer", "US-001", "Red")
    assert (done.code, done.out) == (0, "answered for US-001; the run reads it before its next iteration\n")
    assert project.plan.read_bytes() == before
    ended = finish(process)
    assert "answered by you, open again: US-001" in ended.out
    assert "iteration 3/10: implement US-001" in ended.out
    assert "“Which colour?” — Red" in (project.root / "build/prompt.txt").read_text()
