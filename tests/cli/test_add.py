"""`ralph add`: more work for a plan, at rest and while a run is at it."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ralph.core.plan import Plan, State, Story
from ralph.core.ports import PlanRef
from ralph.planning.add import Addition, take_in, to_archive
from ralph.planning.answer import DraftStory
from ralph.plans.registry import layout
from ralph.state.places import plan_state
from support.cli import Completed, ralph_here
from support.planners import Project, story

LAYOUTS = ("plan.md", "tasks.json", "steps", "feature", "spec.md")


def task(number: int, status: str = "todo", **more: Any) -> dict[str, Any]:
    basic = {"id": f"task-{number}", "title": f"Task {number}", "acceptanceCriteria": [f"t{number}.txt is there"]}
    return basic | {"priority": number, "status": status, "notes": "", "verify": [f"test -f t{number}.txt"]} | more


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A plan of the layout `steps`: two tasks done, of which one is still needed, and one open."""
    project = Project(tmp_path)
    (project.root / ".ralph").mkdir()
    tasks = [task(1, "done", extra="kept"), task(2, "done"), task(3, dependsOn=["task-2"])]
    (project.root / ".ralph/prd.json").write_text(json.dumps({"project": "todo", "tasks": tasks}, indent=2) + "\n")
    for number in (1, 2):
        (project.root / f"t{number}.txt").write_text("done\n")
    (project.root / ".gitignore").write_text(".ralph/run_state.json\n.ralph/aggregate.json\n")
    project.commit()
    return project


def new(*stories: dict[str, Any]) -> dict[str, Any]:
    return {"answer": {"stories": list(stories)}}


def add(project: Project, *arguments: str, stdin: str = "", **env: str) -> Completed:
    return ralph_here("add", *arguments, cwd=project.root, env={**project.env, **env}, stdin=stdin)


def ids(project: Project) -> list[str]:
    return [task["id"] for task in project.tasks(".ralph/prd.json")["tasks"]]


def archived(project: Project) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = project.tasks(".ralph/prd_archive.json")["tasks"]
    return listed


def test_done_tasks_go_into_the_archive_and_new_ones_get_fresh_ids(project: Project) -> None:
    project.plays(new(story("x"), story("y", dependsOn=["x", "task-3"])), kind="add")
    done = add(project, "more of it", "--no-input")
    assert done.code == 0, done.err
    assert "archived: task-1" in done.out
    assert "added     task-4  Build x" in done.out
    assert ids(project) == ["task-2", "task-3", "task-4", "task-5"], "task-3 still waits for task-2"
    tasks = project.tasks(".ralph/prd.json")["tasks"]
    assert tasks[3]["dependsOn"] == ["task-4", "task-3"]
    assert [(t["id"], t["extra"]) for t in archived(project)] == [("task-1", "kept")]
    assert archived(project)[0]["archivedAt"].endswith("Z")
    assert "task-1 (done): Task 1" in project.prompt(1)


def test_ids_of_the_archive_are_not_given_again(project: Project) -> None:
    (project.root / ".ralph/prd_archive.json").write_text('{"tasks": [{"id": "task-9", "title": "old"}]}')
    project.plays(new(story("x", dependsOn=["task-9"])), kind="add")
    assert add(project, "more of it", "--no-input").code == 0
    assert ids(project)[-1] == "task-10"
    assert project.tasks(".ralph/prd.json")["tasks"][-1]["dependsOn"] == [], "it is done and gone"
    assert [t["id"] for t in archived(project)] == ["task-9", "task-1"]


def test_done_tasks_stay_when_they_are_to_be_kept(project: Project) -> None:
    project.plays(new(story("x")), kind="add")
    assert add(project, "more of it", "--no-input", "--keep-done").code == 0
    assert ids(project) == ["task-1", "task-2", "task-3", "task-4"]
    assert not (project.root / ".ralph/prd_archive.json").exists()


def test_a_damaged_archive_is_not_added_to(project: Project) -> None:
    (project.root / ".ralph/prd_archive.json").write_text("{")
    before = project.files()
    project.plays(new(story("x")), kind="add")
    done = add(project, "more of it", "--no-input")
    assert done.code == 65
    assert "prd_archive.json" in done.err
    assert project.files() == before


def test_a_draft_goes_on_as_it_was_and_into_the_plan_it_was_for(project: Project) -> None:
    project.plays(new(story("x", acceptanceCriteria=["works correctly"])), kind="add")
    assert add(project, "more of it", "--no-input").code == 65
    (project.root / ".ralph/other").mkdir()
    (project.root / ".ralph/other/prd.json").write_text(
        json.dumps({"feature": "other", "userStories": [task(1) | {"passes": False}]})
    )
    elsewhere = add(project, "-f", "other", "--resume-draft", "--no-input")
    assert (elsewhere.code, "the draft is for .ralph/prd.json" in elsewhere.err) == (64, True), elsewhere.err
    words = add(project, "something else", "--layout", "steps", "--resume-draft", "--no-input")
    assert (words.code, "--resume-draft resumes 'more of it'" in words.err) == (64, True), words.err
    assert project.sessions() == 1
    project.plays(new(story("x")), kind="add")
    assert add(project, "--layout", "steps", "--resume-draft", "--no-input").code == 0
    assert "task-4" in ids(project)


@pytest.mark.parametrize("name", ["stories.json", "-"])
def test_stories_that_were_written_elsewhere_are_added_without_an_agent(project: Project, name: str) -> None:
    text = json.dumps({"stories": [story("x"), story("y", dependsOn=["x"])]})
    (project.root / "stories.json").write_text(text)
    done = add(project, "--answer", name, stdin=text if name == "-" else "")
    assert done.code == 0, done.err
    assert ids(project)[-2:] == ["task-4", "task-5"]


def test_stories_that_were_written_elsewhere_obey_the_same_rules(project: Project) -> None:
    before = project.files()
    vague = json.dumps({"stories": [story("x", acceptanceCriteria=["works correctly"])]})
    for arguments, text, message in (
        (["--answer", "-"], vague, "cannot be checked"),
        (["--answer", "nowhere.json"], "", "file not found: nowhere.json"),
        (["more", "--answer", "-"], vague, "--answer already has the stories"),
        (["--answer", "-"], "", "stdin is empty"),
    ):
        done = add(project, *arguments, stdin=text)
        assert done.code in (64, 65)
        assert message in done.err
    assert project.files() == before


def test_the_work_can_be_read_from_stdin(project: Project) -> None:
    project.plays(new(story("x")), kind="add")
    assert add(project, "-", "--no-input", stdin="Export the list as CSV.\n").code == 0
    assert "Export the list as CSV." in project.prompt(1)


def test_the_work_can_be_a_file(project: Project) -> None:
    (project.folder / "work.md").write_text("# More\n\nColours for items.\n")
    project.plays(new(story("x")), kind="add")
    assert add(project, str(project.folder / "work.md"), "--no-input", "--json").json["stories"][0]["id"] == "task-4"
    assert "Colours for items." in project.prompt(1)


@pytest.mark.parametrize("name", LAYOUTS)
def test_in_every_layout_the_rest_of_the_plan_stays_as_it_is(tmp_path: Path, name: str) -> None:
    project = Project(tmp_path)
    project.plays({"answer": {"requirements": "# P\n\nx\n", "stories": [story("a"), story("b")]}})
    assert ralph_here("plan", "x y", "--no-input", "--layout", name, cwd=project.root, env=project.env).code == 0
    ref = layout(name).detect(project.root)[0]
    before = layout(name).parse(ref.path.read_bytes(), "")
    project.plays(new(story("c")), kind="add")
    assert add(project, "more of it", "--no-input").code == 0
    after = layout(name).parse(ref.path.read_bytes(), "")
    fresh = [s for s in after.stories if s.id not in {old.id for old in before.stories}]
    assert [s.title for s in fresh] == ["Build c"]
    kept = [s for s in after.stories if s not in fresh]
    assert [(s.id, s.title, s.criteria) for s in kept] == [(s.id, s.title, s.criteria) for s in before.stories]
    assert after.stories[-1].is_review_step == before.stories[-1].is_review_step, "a review comes last"


def test_what_was_trusted_stays_trusted_but_new_commands_are_not(project: Project) -> None:
    def trusted() -> bool:
        return ralph_here("run", "--plain", "-n", "1", cwd=project.root, env=project.env).code != 78

    assert ralph_here("trust", cwd=project.root, env={**project.env, "RALPH_TRUST": "1"}).code == 0
    project.plays(new(story("x")), kind="add")
    assert add(project, "more of it", "--no-input").code == 0
    project.commit()
    assert trusted()
    project.plays(new(story("y", verify=["test -f y"])), kind="add")
    done = add(project, "and more", "--no-input")
    assert done.code == 0
    assert "are not trusted yet" in done.err
    assert not trusted()
    assert add(project, "and more", "--no-input", "--trust").code == 0


def test_nothing_is_added_to_a_plan_that_is_not_there(tmp_path: Path) -> None:
    project = Project(tmp_path)
    project.plays(new(story("x")), kind="add")
    done = add(project, "more of it", "--no-input")
    assert done.code == 78
    assert "ralph init" in done.err


WORK = [
    {"run": "touch {flag}; while [ ! -e {go} ]; do sleep 0.05; done"},
    {"write": {"path": "t3.txt", "text": "x\n"}},
]


@pytest.mark.parametrize("accepted", [True, False])
def test_a_run_that_is_at_work_takes_new_stories_in_between_iterations(project: Project, accepted: bool) -> None:
    """Also when the work of the iteration in between is thrown away: what a person adds is not the agent's."""
    flag, go = project.folder / "flag", project.folder / "go"
    work = json.loads(json.dumps(WORK).replace("{flag}", str(flag)).replace("{go}", str(go)))
    first = [*work, "claim"] if accepted else [*work, {"delete": "src/app.py"}, {"delete": "t3.txt"}, "claim"]
    second = [{"write": {"path": "t3.txt", "text": "x\n"}}, "claim"]
    stories = {
        "task-3": [{"implement": first}, {"implement": second}],
        "task-4": [{"implement": [{"write": {"path": "x.txt", "text": "x\n"}}, "claim"]}],
        "task-5": [{"implement": [{"write": {"path": "y.txt", "text": "y\n"}}, "claim"]}],
    }
    project.plays(new(story("x", verify=["test -f x.txt"])), kind="add", **stories)
    run = subprocess.Popen(
        [sys.executable, "-m", "ralph", "run", "--plain", "--trust", "-n", "6"],
        cwd=project.root,
        env=project.env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    try:
        end = time.monotonic() + 60
        while not flag.exists() and time.monotonic() < end:
            time.sleep(0.05)
        refused = add(project, "more of it", "--no-input")
        assert refused.code == 78, "its commands were seen by nobody"
        done = add(project, "more of it", "--no-input", "--trust")
        assert done.code == 0, done.err
        assert "a run is in progress and adds them before its next iteration" in done.err
        assert "added     task-4" in done.out
        again = add(project, "--answer", "-", stdin=json.dumps({"stories": [story("y", verify=["test -f t1.txt"])]}))
        assert again.code == 78, "its commands were seen by nobody"
        again = add(project, "--answer", "-", "--trust", stdin=json.dumps({"stories": [story("y", verify=[])]}))
        assert "added     task-5" in again.out, "the first call has task-4"
        assert "task-4" not in ids(project), "not before"
    finally:
        go.write_text("")
        out = run.communicate(timeout=90)[0].decode()
    assert run.returncode == 0, out
    assert "stories added by you: task-4; archived: task-1" in out
    left = {t["id"]: t["status"] for t in project.tasks(".ralph/prd.json")["tasks"]}
    assert left == {"task-2": "done", "task-3": "done", "task-4": "done", "task-5": "done"}
    assert (project.root / "x.txt").exists()
    assert [t["id"] for t in archived(project)] == ["task-1"]


def test_what_a_task_that_stays_depends_on_stays_too() -> None:
    def done(name: str, *needs: str) -> Story:
        return Story(id=name, title=name, state=State.DONE, depends_on=needs)

    stories = (done("a"), done("b", "a"), done("c", "b"), done("d"), Story(id="e", title="e", depends_on=("c",)))
    plan = Plan(name="p", stories=stories)
    assert to_archive(plan, "abcde") == ["d"]
    assert to_archive(Plan(name="p", stories=stories[:4]), "abcd") == ["a", "b", "c", "d"]
    assert to_archive(Plan(name="p", stories=stories[:4]), "ab") == []


def reference(project: Project) -> PlanRef:
    return layout("steps").detect(project.root)[0]


def left(project: Project, name: str, data: bytes) -> Path:
    folder = plan_state(reference(project), project.env) / "additions"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data)
    return folder / name


ONE = Addition((DraftStory("x", "Build x", "It.", ("x is there",)),))


def test_what_waits_is_taken_in_once_although_a_run_was_killed_in_between(project: Project) -> None:
    data = msgspec.json.encode(ONE)
    left(project, "1.json", data)
    assert take_in(reference(project), project.env) == ["stories added by you: task-4"]
    assert take_in(reference(project), project.env) == []
    again = left(project, "1.taken", data)  # written into the plan, but not removed any more
    assert take_in(reference(project), project.env) == []
    assert not again.exists()
    assert ids(project) == ["task-1", "task-2", "task-3", "task-4"]


def test_what_a_run_did_not_come_to_is_taken_in_by_the_next_call(project: Project) -> None:
    left(project, "1.json", msgspec.json.encode(ONE))
    status = ralph_here("status", cwd=project.root, env=project.env)
    assert "1 pending call of `ralph add` or `ralph fix`" in status.err
    project.plays(new(story("y")), kind="add")
    done = add(project, "more of it", "--no-input", "--keep-done")
    assert "stories added by you: task-4" in done.err
    assert ids(project)[-2:] == ["task-4", "task-5"]
    assert ralph_here("status", cwd=project.root, env=project.env).err == ""


def test_what_was_taken_but_not_written_is_written(project: Project) -> None:
    left(project, "1.taken", msgspec.json.encode(ONE))
    assert take_in(reference(project), project.env) == ["stories added by you: task-4"]


def test_what_cannot_be_taken_in_is_kept_aside_and_said(project: Project) -> None:
    path = left(project, "1.json", b"{")
    [told] = take_in(reference(project), project.env)
    assert "could not be written to the plan" in told
    assert list(path.parent.glob("*.corrupt-*"))
    assert take_in(reference(project), project.env) == []
