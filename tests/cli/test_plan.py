"""`ralph plan` and `ralph init --from` as people and CI call them."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from ralph.cli.dialogue import chosen
from ralph.config.schema import Agent, Config, Planning
from ralph.host.locks import Lock, Owner
from ralph.host.process.tree import marked
from ralph.planning.answer import Question
from ralph.session.single import ALLOWED, planning_model
from support.cli import Completed, ralph_here
from support.planners import Project, Typist, asks, plan, story


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def ralph(project: Project, *arguments: str, **env: str) -> Completed:
    return ralph_here(*arguments, cwd=project.root, env={**project.env, **env})


def test_in_ci_it_plans_without_a_question(project: Project) -> None:
    project.plays(plan(story("a"), story("b")))
    done = ralph(project, "plan", "a to-do list", "--no-input", "--json")
    assert done.code == 0, done.err
    assert [s["id"] for s in done.json["stories"]] == ["US-001", "US-002"]
    assert done.json["layout"] == "tasks.json"
    assert ".ralph/todo/tasks.json" in done.json["made"]
    assert "Nobody can answer questions." in project.prompt(1)
    assert ralph(project, "check").code == 0


def test_nobody_has_seen_the_commands_of_a_plan_that_was_made_in_ci(project: Project) -> None:
    project.plays(plan(story("a", verify=["make test"])))
    assert "`ralph trust`" in ralph(project, "plan", "x y", "--no-input").err
    again = ralph(project, "run", "--plain")
    assert again.code == 78
    assert "are not trusted yet" in again.err


def test_commands_that_the_project_has_itself_are_trusted_as_after_init(project: Project) -> None:
    project.plays(plan(), kind="plan", **{"US-001": [["lie"]]})
    assert "ralph trust" not in ralph(project, "plan", "x y", "--no-input").err
    project.commit()
    assert ralph(project, "run", "--plain", "-n", "1").code == 1, "not 78"


def test_checks_that_an_agent_thought_of_are_not(project: Project) -> None:
    (project.root / "Makefile").unlink()
    project.plays(plan(verifyCommands=["true"]))
    assert "ralph trust" in ralph(project, "plan", "x y", "--no-input", "--layout", "steps").err
    project.commit()
    assert ralph(project, "run", "--plain", "-n", "1").code == 78


def test_findings_in_ci_are_told_with_exit_code_65_and_nothing_is_written(project: Project) -> None:
    before = project.files()
    project.plays(plan(story("a", acceptanceCriteria=["It works correctly"])))
    done = ralph(project, "plan", "a to-do list", "--no-input")
    assert done.code == 65
    assert "'It works correctly' cannot be checked" in done.err
    assert project.files() == before


@pytest.mark.parametrize(
    ("arguments", "env", "said"),
    [
        (("plan", "x y"), {}, "stdin is not a terminal"),
        (("plan", "--no-input"), {}, "nothing to plan"),
        (("plan", "gone.md", "--no-input"), {}, "file not found: gone.md"),
        (("plan", "src", "--no-input"), {}, "src is a folder"),
        (("plan", "/dev/null", "--no-input"), {}, "/dev/null is not a regular file"),
        (("plan", "   ", "--no-input"), {}, "the text is empty"),
        (("plan", "", "--no-input"), {}, "the text is empty"),
        (("plan", "x y", "--answer", "plan.json"), {}, "--answer already has the stories"),
        (("plan", "x \udcff y", "--no-input"), {}, "a byte that is not UTF-8"),
        (("plan", "x y", "--no-input", "--layout", "tasks"), {}, "unknown layout 'tasks'"),
        (("plan", "x y", "--no-input", "--agent", "clude"), {}, "unknown agent 'clude'"),
        (("plan", "x y", "--no-input", "--resume-draft"), {}, "no draft to resume"),
        (("plan", "--answer", "gone.json"), {}, "file not found: gone.json"),
        (("plan", "x y", "--no-input"), {"RALPH_LOOP": "1"}, "an agent in a loop cannot plan its own work"),
        (("init", "--trust"), {}, "belong to --from"),
        (("init", "--from", "gone.md", "--no-input"), {}, "file not found: gone.md"),
        (("init", "--from", "Makefile", "--no-input", "--tdd"), {}, "--from excludes --force"),
    ],
)
def test_wrong_usage_is_said_and_nothing_happens(
    project: Project, arguments: tuple[str, ...], env: dict[str, str], said: str
) -> None:
    before = project.files()
    project.plays(plan())
    done = ralph(project, *arguments, **env)
    assert done.code in (64, 78), done.err
    assert said in done.err
    assert project.files() == before
    assert project.sessions() == 0


def test_a_plan_with_stories_is_not_replaced_in_ci(project: Project) -> None:
    project.plays(plan())
    assert ralph(project, "plan", "x y", "--no-input").code == 0
    before = project.files()
    done = ralph(project, "plan", "x y", "--no-input")
    assert done.code == 64
    assert "already has 1 story" in done.err
    assert "ralph add" in done.err
    assert project.files() == before


def test_an_agent_that_the_workspace_names_is_agreed_to_first(project: Project) -> None:
    project.plays(plan())
    (project.root / ".ralph").mkdir()
    (project.root / ".ralph/config.yaml").write_text("planning: {agent: command, command: [touch, harm]}\n")
    done = ralph(project, "plan", "x y", "--no-input")
    assert done.code == 78
    assert "planning.agent: command" in done.err
    assert "planning.command: touch harm" in done.err
    assert not (project.root / "harm").exists()


def test_while_a_run_on_another_plan_is_in_the_tree_nothing_is_written_and_nothing_lost(project: Project) -> None:
    project.plays(plan(story("a", "Kept")))
    lock = Lock(project.root / ".git" / "ralph-run")
    with lock.held_by(Owner.here("another")):
        done = ralph(project, "plan", "x y", "--no-input")
    assert done.code == 73
    assert "is running in this working tree" in done.err
    assert not (project.root / ".ralph").exists()
    project.plays({"say": "nobody asks"})
    assert ralph(project, "plan", "--resume-draft", "--no-input").code == 0
    assert [s["title"] for s in project.tasks()["userStories"]] == ["Kept"]


def test_what_planning_costs_counts_towards_the_budget_of_the_day(project: Project) -> None:
    project.plays([{"cost": {"usd": 2.5, "input": 10}}, plan()])
    assert ralph(project, "plan", "x y", "--no-input", RALPH_BUDGET_DAY_USD="3").code == 0
    project.plays([{"cost": {"usd": 0.6, "input": 10}}, plan()])
    assert ralph(project, "plan", "x y", "--feature", "b", "--no-input", RALPH_BUDGET_DAY_USD="3").code == 0
    refused = ralph(project, "plan", "x y", "--feature", "c", "--no-input", RALPH_BUDGET_DAY_USD="3")
    assert refused.code == 78
    assert "budget.day_usd is $3.00; $3.10 spent" in refused.err


def test_two_plans_in_one_folder_are_refused_before_anything_is_asked(project: Project) -> None:
    project.plays(plan())
    assert ralph(project, "plan", "x y", "--no-input", "--feature", "a").code == 0
    before = project.sessions()
    done = ralph(project, "plan", "x y", "--no-input", "--feature", "a", "--layout", "feature")
    assert done.code == 64
    assert "already" in done.err
    assert project.sessions() == before


def test_any_command_line_can_plan(project: Project) -> None:
    answer = json.dumps({"requirements": "# P\n\nText.\n", "stories": [story("a")]})
    agent = project.folder / "agent.sh"
    agent.write_text(f"#!/bin/sh\ncat > /dev/null\necho I have looked at it.\ncat <<'E'\n```json\n{answer}\n```\nE\n")
    agent.chmod(0o755)
    env = {"RALPH_AGENT_NAME": "command", "RALPH_AGENT_COMMAND": str(agent)}
    assert ralph(project, "plan", "x y", "--no-input", **env).code == 0
    assert len(project.tasks()["userStories"]) == 1


def test_init_from_requirements_writes_the_plan_at_once(project: Project) -> None:
    (project.root / "wishes.md").write_text("# Wishes\n\nA list of things.\n")
    project.plays({"answer": {"stories": [story("a")], "description": "A list"}})
    done = ralph(project, "init", "--from", "wishes.md", "--layout", "steps", "--no-input")
    assert done.code == 0, done.err
    tasks = project.tasks(".ralph/prd.json")
    assert [task["id"] for task in tasks["tasks"]] == ["task-1"]
    assert tasks["description"] == "A list"
    assert (project.root / ".ralph/requirements.md").read_text() == "# Wishes\n\nA list of things.\n"
    assert (project.root / ".ralph/prompts/LOOP_PROMPT.md").exists()
    assert "<requirements>\n```\n# Wishes" in project.prompt(1)
    assert ralph(project, "check").code == 0


def test_a_plan_made_elsewhere_is_taken_when_it_is_right(project: Project) -> None:
    schema = ralph(project, "plan", "--schema").json
    assert schema["required"] == ["stories"]
    (project.folder / "plan.json").write_text(json.dumps({"stories": [story("a", acceptanceCriteria=["works"])]}))
    wrong = ralph(project, "plan", "--answer", str(project.folder / "plan.json"))
    assert wrong.code == 65
    (project.folder / "plan.json").write_text(json.dumps({"requirements": "# P\n\nx\n", "stories": [story("a")]}))
    done = ralph(project, "plan", "--answer", str(project.folder / "plan.json"), "--layout", "plan.md")
    assert done.code == 0, done.err
    assert "US-001: Build a" in (project.root / ".ralph/PRD-1/plan.md").read_text()
    assert (project.root / ".ralph/PRD-1/prd.md").read_text() == "# P\n\nx\n"


def test_opus_plans_unless_somebody_says_otherwise() -> None:
    assert planning_model(Config()) == "opus"
    assert planning_model(Config(agent=Agent(model="sonnet"))) == "opus"
    assert planning_model(Config(planning=Planning(model="haiku"))) == "haiku"
    assert planning_model(Config(agent=Agent(name="command", model="mine"))) == "mine"
    assert "Write" not in ALLOWED
    assert "Edit" not in ALLOWED


@pytest.mark.parametrize(
    ("given", "several", "meant"),
    [
        ("2", False, "B"),
        ("1,3", True, "A, C"),
        ("3 1 3", True, "C, A"),
        ("1,3", False, "1,3"),
        ("4", False, "4"),
        ("something else", False, "something else"),
        ("", False, ""),
    ],
)
def test_numbers_stand_for_choices(given: str, several: bool, meant: str) -> None:
    assert chosen(Question("?", choices=("A", "B", "C"), several=several), given) == meant


def test_a_whole_conversation_at_a_terminal(project: Project) -> None:
    question = {"question": "Where are items kept?", "why": "The first story.", "choices": ["a file", "SQLite"]}
    project.plays(asks(question, "Who uses it?"), plan(story("a", "First")), plan(story("a", "Second")))
    editor = project.folder / "editor.sh"
    at_first = f"[ -e {project.folder}/slipped ] || {{ touch {project.folder}/slipped; exec sed -i.old '$d' \"$1\"; }}"
    editor.write_text(f'#!/bin/sh\n{at_first}\nsed -i.old s/Second/Third/ "$1"\necho "}}" >> "$1"\n')
    editor.chmod(0o755)
    person = Typist(project, "plan", "a to-do list", EDITOR=str(editor))
    person.waits_for("1/2  Where are items kept?")
    person.waits_for(" 2) SQLite")
    person.waits_for("> ", "2\n")
    person.waits_for("2/2  Who uses it?")
    person.waits_for("> ", "me\n")
    person.waits_for("US-001  First")
    person.waits_for("> ", "r another title\n")
    person.waits_for("US-001  Second")
    person.waits_for("> ", "drop the second one\n")
    person.waits_for("type one letter")
    person.waits_for("> ", "e\n")
    person.waits_for("invalid JSON")
    person.waits_for("> ", "e\n")
    assert "US-001" not in person.screen, "the plan is not shown again below what is wrong with the edit"
    person.waits_for("US-001  Third")
    person.waits_for("> ", "a\n")
    assert person.ends() == 0, person.screen
    assert "1 story: `ralph task list` shows them" in person.screen
    assert [s["title"] for s in project.tasks()["userStories"]] == ["Third"]
    assert "Where are items kept?\n  **SQLite**" in project.prompt(2)
    assert "another title" in project.prompt(3)
    assert ralph(project, "run", "--plain", "--once", "--dry-run").code == 0


def test_ctrl_c_at_the_terminal_leaves_all_as_it_was_and_the_draft_is_offered(project: Project) -> None:
    before = project.files()
    project.plays(asks("One?", "Two?"), plan())
    person = Typist(project, "plan", "a to-do list")
    person.waits_for("One?")
    person.waits_for("> ", "first\n")
    person.waits_for("Two?")
    person.waits_for("> ", "\x03")
    assert person.ends() == 130
    assert "--resume-draft" in person.screen
    assert project.files() == before
    project.plays(plan())
    person = Typist(project, "plan")
    person.waits_for("'a to-do list' from")
    person.waits_for("Resume it? [y/N] ", "y\n")
    person.waits_for("[d]rop\n> ", "d\n")
    assert person.ends() == 1
    assert "One?\n  **first**" in project.prompt(1)
    assert project.files() == before
    assert project.draft() is None


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_stopping_it_while_the_agent_works_leaves_nothing_behind(
    project: Project, number: signal.Signals, code: int
) -> None:
    before = project.files()
    started = project.folder / "started"
    harm: list[Any] = [{"write": {"path": "src/x.py", "text": "x\n"}}, {"run": f"touch {started}"}, {"sleep": 60}]
    project.plays([*harm, plan()])
    process = subprocess.Popen(
        [sys.executable, "-m", "ralph", "plan", "a to-do list", "--no-input"],
        cwd=project.root,
        env=project.env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    end = time.monotonic() + 60
    while not started.exists() and time.monotonic() < end:
        time.sleep(0.05)
    process.send_signal(number)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == code, out.decode()
    assert b"nothing in the workspace changed" in out
    assert b"Traceback" not in out
    assert project.files() == before
    draft = project.draft()
    assert draft is not None
    assert draft.idea == "a to-do list"
    assert marked("RALPH_STORY", "plan") == []


@pytest.mark.parametrize("layout", ["tasks.json", "steps", "feature", "plan.md", "spec.md"])
def test_after_init_the_planners_commands_and_description_are_kept(project: Project, layout: str) -> None:
    """Seed 001: tasks.json has a `description` and `verifyCommands` of the planner's, also where init was first."""
    (project.root / "Makefile").unlink()
    project.commit()
    made = ralph(project, "init", "--layout", layout, "--json").json
    assert made["checks"] == []
    project.plays(plan(story("a"), verifyCommands=["test -d src", "true"], description="A to-do list."))
    done = ralph(project, "plan", "a to-do list", "--no-input", "--trust")
    assert done.code == 0, done.err
    assert "US-001" in done.out or "1 story" in done.out
    commands = ralph(project, "trust", "--show").out
    assert "test -d src" in commands
    if made["plan"].endswith(".json"):
        document = json.loads(Path(made["plan"]).read_text())
        assert document["description"] == "A to-do list."
        if layout == "tasks.json":
            assert document["verifyCommands"] == ["test -d src", "true"]
    assert ralph(project, "run", "--dry-run").code == 0


def test_what_a_person_wrote_into_the_new_plan_is_kept(project: Project) -> None:
    path = Path(ralph(project, "init", "todo", "--json").json["plan"])
    document = json.loads(path.read_text()) | {"description": "Mine."}
    path.write_text(json.dumps(document))
    project.plays(plan(story("a"), verifyCommands=["true"], description="Theirs."))
    assert ralph(project, "plan", "a to-do list", "--no-input").code == 0
    after = json.loads(path.read_text())
    assert (after["description"], after["verifyCommands"]) == ("Mine.", ["make test"])
