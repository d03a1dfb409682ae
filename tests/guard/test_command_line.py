"""`ralph guard`: explains one command, or answers line by line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ralph.guard.categories import TABLE
from support.cli import ralph, ralph_here


def test_an_allowed_command_ends_with_0(tmp_path: Path) -> None:
    done = ralph_here("guard", "rm -rf node_modules", cwd=tmp_path)
    assert (done.code, done.out, done.err) == (0, "allow  rm -rf node_modules\n", "")


def test_a_denied_command_ends_with_1_and_says_why(tmp_path: Path) -> None:
    done = ralph_here("guard", "git push --force", cwd=tmp_path)
    assert done.code == 1
    assert done.out.splitlines()[0] == "deny  git push --force"
    assert "category: git-history (critical): destroys commits" in done.out
    assert "reason:   This overwrites or deletes content of another repository: `git push --force`." in done.out


def test_json_has_the_decision_and_its_severity(tmp_path: Path) -> None:
    found = ralph_here("guard", "--json", "sudo id", cwd=tmp_path).json
    assert found["decision"] == "deny"
    assert (found["category"], found["severity"], found["command"]) == ("privilege", "critical", "sudo id")
    assert ralph_here("guard", "--json", "ls", cwd=tmp_path).json["category"] is None


def test_the_workspace_is_the_current_folder_or_a_given_one(tmp_path: Path) -> None:
    assert ralph_here("guard", f"rm -rf {tmp_path}/x", cwd=tmp_path).code == 0
    assert ralph_here("guard", "--cwd", "/srv/app", "rm -rf /srv/app/x", cwd=tmp_path).code == 0
    assert ralph_here("guard", "--cwd", "/srv/app", "rm -rf /srv/x", cwd=tmp_path).code == 1


def test_every_line_has_an_answer_in_the_same_order(tmp_path: Path) -> None:
    lines = [
        '{"command": "ls"}',
        '{"command": "rm -rf /", "cwd": "/srv/app"}',
        "not json",
        '{"command": 3}',
        "[]",
        '{"command": "rm -rf dist", "cwd": 7}',
        '{"command": "echo \\u00e9\\ud83d\\ude00 \\u0000"}',
        '{"cwd": "/x"}',
        '{"command": "git push"}',
        '{"command": "broken \\ud800 text"}',
    ]
    done = ralph("guard", "--jsonl", cwd=tmp_path, stdin="\n".join(lines) + "\n\n")
    answers = [json.loads(line) for line in done.out.splitlines()]
    assert done.code == 0
    assert done.err == ""
    assert [answer["decision"] for answer in answers] == [
        *("allow", "deny", "deny", "deny", "deny", "allow", "allow", "deny", "deny"),
        answers[-1]["decision"],
    ]
    assert all(set(answer) >= {"decision", "category", "reason"} for answer in answers)
    assert [answer.get("error", False) for answer in answers[:9]] == [
        *(False, False, True, True, True, False, False, True, False)
    ]


def test_bytes_that_are_no_text_get_an_answer_too(tmp_path: Path) -> None:
    done = ralph("guard", "--jsonl", cwd=tmp_path, stdin=b'\xff\xfe\n{"command": "ls"}\n')
    assert [json.loads(line)["decision"] for line in done.out.splitlines()] == ["deny", "allow"]


def test_the_rules_of_the_workspace_count_unless_told_otherwise(tmp_path: Path) -> None:
    (tmp_path / ".ralph").mkdir()
    (tmp_path / ".ralph" / "config.yaml").write_text(
        "guard:\n  allow:\n    - {program: git, args: push origin *}\n  deny:\n    - {program: make, args: deploy}\n"
    )
    assert ralph_here("guard", "git push origin x", cwd=tmp_path).code == 0
    assert ralph_here("guard", "make deploy", cwd=tmp_path).code == 1
    assert ralph_here("guard", "--defaults", "git push origin x", cwd=tmp_path).code == 1
    done = ralph("guard", "--jsonl", cwd=tmp_path, stdin='{"command": "make deploy"}\n')
    assert json.loads(done.out)["category"] == "project"


def test_the_categories_are_listed(tmp_path: Path) -> None:
    done = ralph_here("guard", "--categories", cwd=tmp_path)
    assert [line.split()[0] for line in done.out.splitlines()] == [category.id for category in TABLE]
    assert len(ralph_here("guard", "--categories", "--json", cwd=tmp_path).json) == len(TABLE)


def test_without_a_command_it_asks_for_one(tmp_path: Path) -> None:
    done = ralph_here("guard", cwd=tmp_path)
    assert done.code == 64
    assert "the command is missing" in done.err


@pytest.mark.parametrize("command", ["--help", "-h"])
def test_it_explains_itself(command: str, tmp_path: Path) -> None:
    assert "--jsonl" in ralph_here("guard", command, cwd=tmp_path).out
