"""The real Claude Code client plans, offline, with a scripted model: it asks, it errs, it cannot change anything."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from ralph.host.process.tree import marked
from support.clients import CLIENT, INSIDE, say, use
from support.planners import Project, Typist, story

pytestmark = [
    pytest.mark.client,
    pytest.mark.skipif(
        not CLIENT.exists(),
        reason="THE REAL CLIENT IS NOT TESTED: claude-agent-sdk could not be installed into .venv/client",
    ),
]


def answers(**given: Any) -> dict[str, Any]:
    return use("StructuredOutput", **given)


class ClientProject(Project):
    """A project whose planner is the real client."""

    def starts(self, turns: list[dict[str, Any]], *arguments: str) -> Typist:
        (self.folder / "tmp").mkdir(exist_ok=True)
        (self.folder / "turns.json").write_text(json.dumps(turns))
        inside = (sys.executable, *INSIDE, str(self.folder / "turns.json"), str(self.folder / "requests.jsonl"))
        env = {
            "RALPH_AGENT_NAME": "claude",
            "RALPH_AGENT_SCRIPT": "",
            "RALPH_AGENT_COMMAND": str(CLIENT),
            "ANTHROPIC_API_KEY": "test-key",
            "TMPDIR": str(self.folder / "tmp"),
            "CLAUDE_CODE_TMPDIR": str(self.folder / "tmp"),
        }
        return Typist(self, *arguments, inside=inside, **env)

    def requests(self) -> list[dict[str, Any]]:
        lines = (self.folder / "requests.jsonl").read_text().splitlines()
        return [json.loads(line)["request"] for line in lines]


def test_two_questions_then_an_answer_that_is_broken_once(tmp_path: Path) -> None:
    project = ClientProject(tmp_path)
    before = project.files()
    page = "# To-do\n\n## 1. Summary\n\nA list.\n"
    turns = [
        use("Read", file_path=str(project.root / "src/app.py")),
        use("Bash", command="git log --oneline"),
        use("Write", file_path=str(project.root / "harm.txt"), content="x"),
        use("Bash", command="touch harm.txt"),
        use("Bash", command="git show --output=harm.txt HEAD"),
        answers(
            questions=[{"question": "Where are items kept?", "choices": ["a file", "SQLite"]}, {"question": "Who?"}]
        ),
        answers(stories="none"),  # the client itself says no to this one
        answers(requirements=page, stories=[story("a", dependsOn=["b"])]),  # and Ralph to this one
        answers(requirements=page, stories=[story("a"), story("b", dependsOn=["a"])]),
    ]
    person = project.starts(turns, "plan", "a to-do list")
    person.waits_for("1/2  Where are items kept?")
    person.waits_for("> ", "2\n")
    person.waits_for("2/2  Who?")
    person.waits_for("> ", "me\n")
    person.waits_for("stories[0].dependsOn: 'b' is not a story")
    person.waits_for("US-002  Build b  (after US-001)")
    person.waits_for("[d]rop\n> ", "a\n")
    assert person.ends() == 0, person.screen
    assert [s["id"] for s in project.tasks()["userStories"]] == ["US-001", "US-002"]
    assert (project.root / ".ralph/todo/prd.md").read_text() == page
    assert {name: data for name, data in project.files().items() if ".ralph" not in name and name in before} == before
    assert not (project.root / "harm.txt").exists()
    asked = project.requests()
    tools = {tool["name"] for tool in asked[0]["tools"]}
    assert "StructuredOutput" in tools
    assert not tools & {"Write", "Edit", "NotebookEdit", "WebFetch", "Task", "Agent"}
    assert "opus" in asked[0]["model"]
    told = json.dumps(asked)
    assert told.count("hook error") >= 1, "the guard has seen what looks like reading"
    assert "Output does not match required schema" in told
    assert "**SQLite**" in told
    assert "'b' is not a story" in told
    assert marked("RALPH_STORY", "plan") == []


def test_a_model_that_only_talks_is_told_and_given_up(tmp_path: Path) -> None:
    project = ClientProject(tmp_path)
    before = project.files()
    person = project.starts([say("I would suggest a list.") | {"times": 0}], "plan", "a to-do list", "--no-input")
    assert person.ends() == 65, person.screen
    assert "the answer contains no JSON object" in person.screen
    assert project.files() == before
