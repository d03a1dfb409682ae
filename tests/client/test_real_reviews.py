"""The real client as reviewer and fixer: held to a schema, with a model that is scripted on loopback."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from support.clients import CLIENT, Project, claim, say, use, write

pytestmark = [
    pytest.mark.client,
    pytest.mark.skipif(
        not CLIENT.exists(),
        reason="THE REAL CLIENT IS NOT TESTED: claude-agent-sdk could not be installed into .venv/client",
    ),
]


def test_reviews_and_fixes_are_answered_by_the_clients_schema(tmp_path: Path) -> None:
    project = Project(tmp_path, review={"enabled": True, "model": "claude-haiku-4-5"})
    finding = {"text": "it is empty", "place": "s1.txt:1", "severity": "high", "criterion": "s1.txt is there"}
    turns = [
        *(write(project, "s1.txt"), claim(project), say()),
        use("StructuredOutput", review={"verdict": "changes_requested", "findings": [finding]}),
        *(use("Read", file_path=str(project.root / "s1.txt")), write(project, "s1.txt", "full\n")),
        use("StructuredOutput", claim="done", fixes=[{"id": "F1", "fate": "fixed"}]),
        use("StructuredOutput", review={"verdict": "approved"}),
    ]
    ran = project.run(turns)
    assert ran.code == 0, ran.out
    ended = [(event["mode"], event["kind"], event["headline"]) for event in ran.of("IterationEnded")]
    assert ended == [
        ("implement", "accepted", "ready for review"),
        ("review", "accepted", "changes requested: - [high] s1.txt:1: it is empty (criterion: s1.txt is there)"),
        ("fix", "accepted", "ready for review"),
        ("review", "accepted", "approved"),
    ]
    models = [event["outcome"]["model"] for event in ran.of("AgentEnded")]
    assert [model.startswith("claude-haiku-4-5") for model in models] == [False, True, False, True], models
    assert "F1 [high] s1.txt:1: it is empty" in ran.told()
    assert ran.leftovers() == []


def test_a_review_that_ignores_the_schema_may_answer_in_its_file(tmp_path: Path) -> None:
    project = Project(tmp_path, review={"enabled": True})
    approved = write(project, ".ralph/work/request.json", '{"review": {"verdict": "approved"}}')
    ran = project.run([write(project, "s1.txt"), claim(project), say(), approved, say(), say("Really.")])
    assert (ran.code, ran.done()) == (0, [True]), ran.out


def test_a_review_without_a_verdict_is_asked_for_the_exact_form_once(tmp_path: Path) -> None:
    """The client itself reminds of its schema once; only then the session ends, and the loop asks."""
    project = Project(tmp_path, review={"enabled": True})
    turns = [
        *(write(project, "s1.txt"), claim(project), say()),
        *(say("Looks good to me."), say("Still good.")),
        use("StructuredOutput", review={"verdict": "approved"}),
    ]
    ran = project.run(turns)
    assert (ran.code, ran.done()) == (0, [True]), ran.out
    assert [event["step"] for event in ran.of("AgentStarted")] == ["agent", "agent", "verdict"]
    assert "The verdict of your review is missing" in ran.told()
    assert ran.leftovers() == []


def test_a_verdict_by_schema_ends_a_review_at_once_where_the_plan_has_review_fields(tmp_path: Path) -> None:
    """`ralph init`'s own layout at default settings: the Stop hook does not ask for edits of the plan."""
    project = Project(tmp_path)
    subprocess.run(["git", "rm", "-qr", ".ralph"], cwd=project.root, env=project.environment(), check=True)
    start = [
        sys.executable,
        "-m",
        "ralph",
        "init",
        "work",
        "--no-checks",
        "--story",
        "Say x",
        "--criterion",
        "x.txt exists",
    ]
    made = subprocess.run(start, cwd=project.root, env=project.environment(), capture_output=True, check=False)
    assert made.returncode == 0, made.stderr.decode()
    (project.root / ".ralph/config.yaml").write_text(json.dumps({"agent": {"command": [str(CLIENT)]}}))
    project.commit()
    approved = use("StructuredOutput", review={"verdict": "approved"})
    ran = project.run([write(project, "x.txt"), claim(project), say(), approved])
    assert ran.code == 0, ran.out
    assert [event for event in ran.of("HookAnswered") if event["answer"] == "block"] == []
    assert len(project.requests.read_text().splitlines()) == 4, "one request a turn"
