"""The life of a story under review in a `tasks.json` plan, as the plan's own fields tell it after each iteration."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from support.cli import Completed, ralph

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("git_identity")]

FRESH = {
    "title": "t",
    "acceptanceCriteria": ["it works"],
    "passes": False,
    "reviewStatus": None,
    "reviewCount": 0,
    "reviewFeedback": "",
    "notes": "",
}
WORKS = """\
stories:
  "*":
    - implement:
        - append: {path: work.txt, text: "half\\n"}
        - claim: done
"""
ASKS = "      review:\n        - verdict: {what: changes_requested, feedback: the other half is missing}\n"
FIXES = '      fix:\n        - append: {path: work.txt, text: "whole\\n"}\n        - claim: done\n'
APPROVES = "    - review:\n        - verdict: {what: approved}\n"


def run(root: Path, script: str, *flags: str, stories: int = 1) -> tuple[Completed, list[dict[str, Any]]]:
    (root / "ralph").mkdir()
    listed = [{"id": f"US-{n:03}", "priority": n} | FRESH for n in range(1, stories + 1)]
    plan = {"project": "p", "branchName": "", "description": "d", "verifyCommands": ["true"], "userStories": listed}
    (root / "ralph/tasks.json").write_text(json.dumps(plan))
    (root / "ralph/script.yaml").write_text(script)
    for command in ("init -q -b main", "add -A", "commit -qm start"):
        subprocess.run(["git", *command.split()], cwd=root, check=True)
    words = ("run", "--json", "--agent", "scripted", "--agent-script", "ralph/script.yaml", *flags)
    done = ralph(*words, cwd=root, env={"RALPH_TRUST": "1"})
    events = [json.loads(line)["event"] for line in done.out.splitlines() if line.startswith("{")]
    return done, [event for event in events if event["type"] == "IterationEnded"]


def fields(root: Path, commit: str = "", story: int = 0) -> tuple[Any, ...]:
    """passes, reviewStatus, reviewCount and reviewFeedback as committed."""
    path = root / "ralph/tasks.json"
    text = path.read_text() if not commit else _git(root, "show", f"{commit}:ralph/tasks.json")
    found = json.loads(text)["userStories"][story]
    return tuple(found[name] for name in ("passes", "reviewStatus", "reviewCount", "reviewFeedback"))


def _git(root: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=root, check=True, capture_output=True, text=True).stdout


def test_implement_review_fix_and_review_again(tmp_path: Path) -> None:
    done, ended = run(tmp_path, WORKS + ASKS + FIXES + APPROVES)
    assert (done.code, [each["mode"] for each in ended]) == (0, ["implement", "review", "fix", "review"])
    assert [fields(tmp_path, each["commit"]) for each in ended] == [
        (False, "needs_review", 0, ""),
        (False, "changes_requested", 1, "the other half is missing"),
        (False, "needs_review", 1, ""),
        (True, "approved", 2, ""),
    ]


def test_an_implementation_that_approves_itself_is_only_submitted(tmp_path: Path) -> None:
    heard = tmp_path.with_name(f"{tmp_path.name}-heard.txt")
    review = f"      review:\n        - prompt: {{path: {heard}}}\n        - verdict: {{what: approved}}\n"
    done, ended = run(tmp_path, WORKS.replace("- claim: done", "- verdict: approved") + review)
    assert fields(tmp_path, ended[0]["commit"]) == (False, "needs_review", 0, "")
    assert (done.code, [each["mode"] for each in ended]) == (0, ["implement", "review"])
    told = "story US-001: passes false → true: implement iterations cannot set passes; only a review approves"
    assert any(told in notice for notice in ended[0]["notices"])
    assert told in heard.read_text(), "the next session hears it"


def test_a_promise_before_everything_is_approved_ends_nothing(tmp_path: Path) -> None:
    script = WORKS.replace("- claim: done", "- promise") + APPROVES.replace("    - ", "      ", 1)
    done, ended = run(tmp_path, script, stories=2)
    assert (done.code, len(ended)) == (0, 4)
    told = "the agent claimed everything is complete; 1 story is still open"
    assert told in ended[0]["notices"]
    assert [fields(tmp_path, story=number)[:2] for number in (0, 1)] == [(True, "approved")] * 2


def test_everything_approved_without_a_promise_is_complete(tmp_path: Path) -> None:
    done, ended = run(tmp_path, WORKS + APPROVES.replace("    - ", "      ", 1))
    assert (done.code, ended[-1]["completes"]) == (0, True)


def test_at_the_cap_a_review_that_finds_something_approves_with_a_note(tmp_path: Path) -> None:
    done, ended = run(tmp_path, WORKS + ASKS, "--review-cap", "1")
    assert (done.code, len(ended)) == (1, 2)
    assert fields(tmp_path) == (True, "approved", 1, "[AUTO-APPROVED AT CAP] the other half is missing")
    assert "every story is done, but approved with open findings: US-001" in done.out + done.err
    shown = ralph("status", cwd=tmp_path).out
    assert "Approved with open findings: US-001" in shown
    status = json.loads(ralph("status", "--json", cwd=tmp_path).out)
    assert status["last_run"]["reason"] == "open-findings"
    assert [story["review"]["open_findings"] for story in status["stories"]] == [True]
    report = json.loads(ralph("report", "--json", cwd=tmp_path).out)
    assert (report["exit_code"], report["stories"][0]["state"]) == (1, "approved with open findings")
    assert any("US-001 was approved with open findings" in line for line in report["look_first"])
    assert ralph("replay", cwd=tmp_path).code == 0


AGAIN = ("run", "--agent", "scripted", "--agent-script", "ralph/script.yaml")


def test_a_later_run_of_a_plan_with_open_findings_is_not_complete_either(tmp_path: Path) -> None:
    run(tmp_path, WORKS + ASKS, "--review-cap", "1")
    again = ralph(*AGAIN, cwd=tmp_path, env={"RALPH_TRUST": "1"})
    assert (again.code, "but approved with open findings: US-001" in again.out) == (1, True)
    assert "  approved with open findings: US-001" in again.out, "the summary lists it apart from done"


def test_on_cap_approve_chosen_by_the_user_is_complete_and_still_listed(tmp_path: Path) -> None:
    done, _ = run(tmp_path, WORKS + ASKS, "--review-cap", "1", "--on-cap", "approve")
    assert done.code == 0
    again = ralph(*AGAIN, "--on-cap", "approve", cwd=tmp_path, env={"RALPH_TRUST": "1"})
    assert (again.code, "  approved with open findings: US-001" in again.out) == (0, True)


def test_without_reviews_a_story_is_done_at_once_and_its_review_fields_stay_empty(tmp_path: Path) -> None:
    done, ended = run(tmp_path, WORKS, "--skip-review")
    assert (done.code, [each["mode"] for each in ended]) == (0, ["implement"])
    assert fields(tmp_path) == (True, None, 0, "")
    checked = ralph("check", cwd=tmp_path)
    assert "was done without a review" in checked.out + checked.err
    assert checked.code == 0
