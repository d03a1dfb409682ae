"""Planning from the first question to the files: every branch, with a scripted agent and a scripted person."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from ralph.archive.archive import collect
from ralph.config.layers import load
from ralph.core.errors import BadData, IllegalChange, SetupError
from ralph.core.exit_codes import ExitCode
from ralph.planning.proposal import Decision, Nobody, Proposal, Word
from ralph.plans.registry import layout as layout_called
from ralph.run.watcher import Watcher
from ralph.setup.scaffold import Request, start_plan
from ralph.state.places import planning_folder
from ralph.workspace.lint import lint_plan
from support.planners import Project, Somebody, asks, plan, story

LAYOUTS = ("plan.md", "tasks.json", "steps", "feature", "spec.md")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_questions_come_round_after_round_and_each_session_knows_all_answers(project: Project) -> None:
    first = asks({"question": "Where are items kept?", "choices": ["a file", "SQLite"]}, "Who uses it?")
    project.plays(first, asks("Is there a limit?"), plan(story("a"), story("b", dependsOn=["a"])))
    person = Somebody(answers=("SQLite", "one person", ""))
    planned = project.make(person)
    assert planned is not None
    assert planned.started is not None
    assert [q.question for q in person.asked] == ["Where are items kept?", "Who uses it?", "Is there a limit?"]
    assert "SQLite" not in project.prompt(1)
    assert "Where are items kept?\n  **SQLite**" in project.prompt(3)
    assert "**No preference: decide yourself" in project.prompt(3)
    assert project.sessions() == 3
    tasks = project.tasks()
    assert [(s["id"], s["dependsOn"]) for s in tasks["userStories"]] == [("US-001", []), ("US-002", ["US-001"])]
    assert tasks["verifyCommands"] == ["make test"], "the project's own"
    assert (project.root / ".ralph/todo/prd.md").read_text().startswith("# The page")
    assert project.draft() is None


def test_a_full_stop_ends_the_questions(project: Project) -> None:
    project.plays(asks("One?", "Two?"), plan())
    person = Somebody(answers=(None,))
    assert project.make(person) is not None
    assert len(person.asked) == 1
    assert "Nobody can answer questions." in project.prompt(2)
    assert "**Ask no more." in project.prompt(2)


def test_a_broken_answer_is_repaired_once(project: Project) -> None:
    project.plays({"say": '{"stories": [{"id": "a", "title": 7}]}'}, plan())
    assert project.make(Somebody()) is not None
    assert "stories[0].title: Expected `str`, got `int`" in project.prompt(2)
    assert '"title": 7' in project.prompt(2), "it is shown what it said"


@pytest.mark.parametrize("broken", ['{"stories": [', "I would rather talk."])
def test_an_answer_that_is_broken_twice_is_given_up(project: Project, broken: str) -> None:
    before = project.files()
    project.plays(asks("Really?"), {"say": broken}, {"say": broken}, plan())
    with pytest.raises(BadData) as caught:
        project.make(Somebody(answers=("yes",)))
    assert "still not usable after one correction" in caught.value.message
    assert project.sessions() == 3
    assert project.files() == before
    draft = project.draft()
    assert draft is not None
    assert [(e.question, e.answer) for e in draft.dialogue] == [("Really?", "yes")]


def test_an_empty_answer_is_repaired_too(project: Project) -> None:
    project.plays("empty", plan())
    assert project.make(Somebody()) is not None
    assert "the answer is empty" in project.prompt(2)


@pytest.mark.parametrize(
    "harm",
    [
        [{"write": {"path": "src/new.py", "text": "x\n"}}, {"append": {"path": "src/app.py", "text": "x\n"}}],
        [{"delete": "src/app.py"}],
        [{"write": {"path": "src/new.py", "text": "x\n"}}, {"run": "git add -A && git commit -qm mine"}],
    ],
)
def test_what_the_planner_changes_is_put_back_and_told(project: Project, harm: list[Any]) -> None:
    before, head = project.files(), project.git("rev-parse", "HEAD")
    project.plays([*harm, plan()])
    person = Somebody(decisions=("drop",))
    assert project.make(person) is None
    assert project.files() == before
    assert project.git("rev-parse", "HEAD") == head
    assert any("the agent changed src/" in text and "restored" in text for text in person.told)
    assert "refs/ralph/rescue/plan-" in project.git("for-each-ref", "refs/ralph/rescue")


def test_uncommitted_work_of_a_person_is_left_alone(project: Project) -> None:
    (project.root / "src/app.py").write_text("mine\n")
    (project.root / "notes.txt").write_text("mine\n")
    before = project.files()
    project.plays([{"append": {"path": "src/app.py", "text": "its\n"}}, plan()])
    project.make(Somebody(decisions=("drop",)))
    assert project.files() == before


def test_findings_of_the_lint_are_fed_back_once(project: Project) -> None:
    vague = story("a", acceptanceCriteria=["It works correctly"])
    project.plays(plan(vague), plan(story("a")))
    person = Somebody()
    assert project.make(person) is not None
    assert "'It works correctly' cannot be checked" in project.prompt(2)
    assert any("'It works correctly' cannot be checked" in line for line in person.told), "it is named, not counted"
    assert person.seen[0].problems == ()


def test_a_person_may_accept_a_plan_with_warnings(project: Project) -> None:
    vague = story("a", acceptanceCriteria=["It works correctly"])
    project.plays(plan(vague), plan(vague))
    person = Somebody()
    assert project.make(person) is not None
    assert [p.code for p in person.seen[0].problems] == ["vague-criterion"]


def test_nobody_accepts_nothing_with_findings(project: Project) -> None:
    before = project.files()
    vague = plan(story("a", acceptanceCriteria=["It works correctly"]))
    project.plays(vague, vague, plan())
    with pytest.raises(BadData) as caught:
        project.make(Nobody())
    assert [p.code for p in caught.value.problems] == ["vague-criterion"]
    assert project.sessions() == 2, "told once"
    assert project.files() == before


def test_a_command_that_the_guard_denies_is_never_written(project: Project) -> None:
    bad = story("a", verify=["git push origin main"])
    project.plays(plan(bad), plan(bad))
    person = Somebody(decisions=("accept", "drop"))
    assert project.make(person) is None
    assert [p.code for p in person.seen[0].errors] == ["denied-command"]
    assert any("the plan has errors" in text for text in person.told)


def test_stories_are_edited_in_an_editor_and_looked_at_again(project: Project) -> None:
    project.plays(plan(story("a")))
    person = Somebody(decisions=("edit", "edit", "accept"))
    person.edits = ["{broken", _good]
    assert project.make(person) is not None
    assert person.opened[1] == "{broken", "what was typed is not lost"
    assert any("invalid JSON at line 1, column 2" in text for text in person.told)
    assert [s["title"] for s in project.tasks()["userStories"]] == ["By hand"]
    assert (project.root / ".ralph/todo/prd.md").read_text().startswith("# The page")


def _good(_text: str) -> str:
    return json.dumps({"stories": [story("a", "By hand")]})


def test_the_requirements_are_edited_too(project: Project) -> None:
    project.plays(plan())
    person = Somebody(decisions=("edit-requirements", "accept"))
    person.edits = [lambda text: text.replace("wanted", "really wanted")]
    assert project.make(person) is not None
    assert "What is really wanted." in (project.root / ".ralph/todo/prd.md").read_text()


def test_feedback_goes_to_a_fresh_session_with_the_answer_before(project: Project) -> None:
    project.plays(plan(story("a", "First try")), plan(story("a", "Second try")))
    person = Somebody(decisions=(("revise", "smaller, please"), "accept"))
    assert project.make(person) is not None
    assert "<feedback>\nsmaller, please\n</feedback>" in project.prompt(2)
    assert "First try" in project.prompt(2)
    assert [s["title"] for s in project.tasks()["userStories"]] == ["Second try"]


def test_dropped_means_nothing_is_left(project: Project) -> None:
    before = project.files()
    project.plays(asks("Why?"), plan())
    assert project.make(Somebody(answers=("so",), decisions=("drop",))) is None
    assert project.files() == before
    assert project.draft() is None


def test_ctrl_c_keeps_the_answers_and_the_next_call_goes_on(project: Project) -> None:
    before = project.files()
    project.plays(asks("One?", "Two?"))
    with pytest.raises(KeyboardInterrupt):
        project.make(Somebody(answers=("first", KeyboardInterrupt)))
    assert project.files() == before
    draft = project.draft()
    assert draft is not None
    assert [(e.question, e.answer) for e in draft.dialogue] == [("One?", "first")]
    project.plays(plan())
    assert project.make(Somebody(), resume=draft) is not None
    assert "One?\n  **first**" in project.prompt(1)


@pytest.mark.parametrize("more", [{}, {"acceptanceCriteria": ["It works correctly"]}])
def test_a_plan_that_was_proposed_is_there_again_after_ctrl_c(project: Project, more: dict[str, Any]) -> None:
    """Also one with findings, which the agent has been told of: it costs no further session."""
    project.plays(plan(story("a", "Kept", **more)), plan(story("a", "Kept", **more)))
    with pytest.raises(IndexError):  # the person is gone in the middle
        project.make(Somebody(decisions=()))
    draft = project.draft()
    project.plays({"say": "nobody asks"})
    person = Somebody()
    assert project.make(person, resume=draft) is not None
    assert [s["title"] for s in project.tasks()["userStories"]] == ["Kept"]


def test_requirements_that_are_written_are_the_source_and_stay(project: Project) -> None:
    start_plan(Request(root=project.root, name="todo"), project.env)
    page = project.root / ".ralph/todo/prd.md"
    page.write_text("# Mine\n\nItems have a colour.\n")
    project.plays(plan(requirements="# Another page\n"))
    person = Somebody()
    assert project.make(person, idea="") is not None
    assert person.seen[0].answer.requirements == "", "what is not written is not shown either"
    assert "<requirements>\n```\n# Mine\n\nItems have a colour." in project.prompt(1)
    assert "Ask only where the requirements are ambiguous" in project.prompt(1)
    assert page.read_text() == "# Mine\n\nItems have a colour.\n"


def test_requirements_of_a_file_become_the_page(project: Project) -> None:
    project.plays({"answer": {"stories": [story("a")]}})
    assert project.make(Somebody(), idea="", source="req.md", requirements="# Req\n\nA list.\n") is not None
    assert (project.root / ".ralph/todo/prd.md").read_text() == "# Req\n\nA list.\n"


@pytest.mark.parametrize(
    ("name", "scaffolded"), [*((name, False) for name in LAYOUTS), ("plan.md", True), ("spec.md", True)]
)
def test_every_layout_gets_a_plan_that_passes_the_lint(project: Project, name: str, scaffolded: bool) -> None:
    if scaffolded:
        start_plan(Request(root=project.root, layout=name), project.env)
    stories = [story(label, verify=[f"test -f {label}"]) for label in ("a", "b", "c", "d")]
    stories[3]["dependsOn"] = ["a", "c"]
    project.plays(plan(*stories, description="A list"))
    planned = project.make(Somebody(), layout="" if scaffolded else name)
    assert planned is not None
    ref = planned.proposal.target.ref
    assert ref.layout == name
    checked = lint_plan(ref, planned.proposal.target.settings)
    assert [p for p in checked.problems if p.code != "no-checks"] == []
    written = layout_called(name).parse(ref.path.read_bytes(), "")
    found = [s for s in written.stories if not s.is_review_step]
    assert [s.title for s in found] == ["Build a", "Build b", "Build c", "Build d"]
    assert found[3].depends_on == (found[0].id, found[2].id)
    assert [s.verify for s in found] == [(f"test -f {label}",) for label in "abcd"]
    assert len([p for p in project.files() if p.endswith((".bak", ".md.bak"))]) == 0
    assert planned.proposal.target.requirements.read_text().startswith("# The page")


def test_a_plan_with_stories_is_added_to_and_nothing_else_in_it_changes(project: Project) -> None:
    project.plays(plan(story("a"), story("b")))
    project.make(Somebody())
    before = project.tasks()
    project.plays({"answer": {"stories": [story("c", dependsOn=["US-002"])]}})
    planned = project.make(Somebody(), idea="more")
    assert planned is not None
    assert planned.started is None
    after = project.tasks()
    assert after["userStories"][:2] == before["userStories"]
    assert [(s["id"], s["dependsOn"]) for s in after["userStories"][2:]] == [("US-003", ["US-002"])]
    assert "US-001 (open): Build a" in project.prompt(1)


def test_a_plan_that_somebody_else_writes_meanwhile_is_not_overwritten(project: Project) -> None:
    project.plays(plan())
    person = Somebody()

    def meanwhile(_proposal: Proposal) -> Decision:
        start_plan(Request(root=project.root, name="todo"), project.env)
        return Decision(Word.ACCEPT)

    person.decide = meanwhile  # type: ignore[method-assign, assignment]
    with pytest.raises(IllegalChange):
        project.make(person)
    assert "Replace this example" in (project.root / ".ralph/todo/tasks.json").read_text()
    assert project.draft() is not None


def test_commands_that_a_planner_proposes_count_where_the_project_has_none(project: Project) -> None:
    (project.root / "Makefile").unlink()
    project.plays(plan(story("a"), verifyCommands=["python3 -m unittest"]))
    assert project.make(Somebody(), layout="steps") is not None
    assert "python3 -m unittest" in (project.root / ".ralph/config.yaml").read_text()


def test_what_was_said_is_kept_for_the_last_calls_only(project: Project) -> None:
    shelf = planning_folder(project.root, project.env)
    for number in range(30):
        (shelf / f"plan-{number:02}").mkdir(parents=True)
        os.utime(shelf / f"plan-{number:02}", (number, number))
    project.plays(plan())
    project.make(Somebody(decisions=("drop",)))
    kept = sorted(path.name for path in shelf.iterdir() if path.is_dir())
    assert len(kept) == 21
    assert kept[0] == "plan-10"
    assert list(shelf.glob("plan-*-*/raw/*.log")), "everything the agent said"


def test_a_usage_limit_ends_it_with_its_own_code(project: Project) -> None:
    project.plays({"limit": {}})
    with pytest.raises(SetupError) as caught:
        project.make(Somebody())
    assert caught.value.exit_code == ExitCode.USAGE_LIMIT


def test_a_planner_that_crashes_is_said(project: Project) -> None:
    project.plays("crash")
    with pytest.raises(SetupError) as caught:
        project.make(Somebody())
    assert "the planning agent failed" in caught.value.message


def test_without_a_repository_it_plans_and_says_what_it_cannot_see(tmp_path: Path) -> None:
    project = Project(tmp_path, git=False)
    project.plays(plan())
    person = Somebody()
    assert project.make(person) is not None
    assert any("not a git repository" in text for text in person.told)


@pytest.mark.parametrize("name", LAYOUTS)
def test_the_page_that_was_written_is_the_plans_own(project: Project, name: str) -> None:
    """No agent changes it during a run, and it is put away together with its plan."""
    project.plays(plan())
    planned = project.make(Somebody(), layout=name)
    assert planned is not None
    ref = planned.proposal.target.ref
    page = planned.proposal.target.requirements
    where = layout_called(name).locations(ref)
    assert where.requirements == page
    settings = load(root=ref.root, layout=name, name=None, env=os.environ, flags={})
    rules = Watcher(ref, where, settings, os.environ, ref.root, project.folder / "aside")
    assert rules.begin() == []
    page.write_text("# Nothing is wanted\n")
    assert f"restored {page.relative_to(ref.root)}: agents do not change the rules" in rules.put_back(1).told
    assert page.read_text().startswith("# The page")
    assert page in {item.source for item in collect(ref, where, keep=False)}
