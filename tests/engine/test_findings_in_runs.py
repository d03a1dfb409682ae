"""Reviewers and those who fix, over several sessions: who is told what, what is believed, and how it ends."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from support.cli import ralph

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("git_identity")]

IMPLEMENT = """\
stories:
  US-001:
    - implement:
        - write: {path: io.txt, text: "first version of the story\\n"}
        - run: git add io.txt && git commit -qm "by the agent itself" -- io.txt
        - write: {path: more.txt, text: "the rest\\n"}
        - claim: done
"""
FIRST_REVIEW = """\
      review:
        - prompt: {path: $SEEN/review1.txt}
        - verdict:
            what: changes_requested
            findings:
              - {text: the file is never closed, place: "io.txt:1", severity: high, criterion: no leaks}
              - {text: the name says nothing, place: "io.txt:1", severity: low}
"""


class Told:
    def __init__(self, code: int, events: list[dict[str, Any]], seen: Path, root: Path) -> None:
        self.code, self.seen, self.root = code, seen, root
        self.events = events
        self.ended = [event for event in events if event["type"] == "IterationEnded"]
        self.modes = [event["mode"] for event in self.ended]
        self.headlines = [event["headline"] for event in self.ended]

    def prompt(self, name: str) -> str:
        return (self.seen / f"{name}.txt").read_text()

    def story(self) -> dict[str, Any]:
        plan = json.loads((self.root / "ralph/tasks.json").read_text())
        found: dict[str, Any] = plan["userStories"][-1]
        return found


def work(root: Path, script: str, stories: int = 1, attempts: int = 5, **review: Any) -> Told:
    """A run over the last of `stories` stories; the others are done by then, by an agent that makes no mistake."""
    seen = root / "seen"
    seen.mkdir()
    repo = root / "repo"
    (repo / "ralph").mkdir(parents=True)
    (repo / ".ralph").mkdir()
    entry = {
        "description": "d",
        "acceptanceCriteria": ["no leaks"],
        "passes": False,
        "reviewStatus": None,
        "reviewCount": 0,
        "reviewFeedback": "",
        "notes": "",
        "dependsOn": [],
    }
    listed = [{"id": f"US-{n:03}", "title": f"story {n}", "priority": n} | entry for n in range(1, stories + 1)]
    plan = {"project": "p", "branchName": "", "description": "d", "verifyCommands": ["true"], "userStories": listed}
    (repo / "ralph/tasks.json").write_text(json.dumps(plan))
    (repo / "ralph/script.yaml").write_text(script.replace("$SEEN", str(seen)))
    settings = {
        "agent": {"name": "scripted", "script": "ralph/script.yaml"},
        "review": {"enabled": True} | review,
        "branch": {"auto_create": False},
        "max_loops_per_task": attempts,
    }
    (repo / ".ralph/config.yaml").write_text(json.dumps(settings))
    for command in ("init -q -b main", "add -A", "commit -qm start"):
        subprocess.run(["git", *command.split()], cwd=repo, check=True)
    return again(repo, seen)


def again(repo: Path, seen: Path) -> Told:
    done = ralph("run", "--json", cwd=repo, env={"RALPH_TRUST": "1"})
    lines = [json.loads(line) for line in done.out.splitlines() if line.startswith("{")]
    assert lines, done.err
    return Told(done.code, [line["event"] for line in lines], seen, repo)


def test_each_finding_is_answered_and_the_next_review_is_told(tmp_path: Path) -> None:
    told = work(
        tmp_path,
        IMPLEMENT
        + FIRST_REVIEW
        + """\
      fix:
        - prompt: {path: $SEEN/fix1.txt}
        - append: {path: io.txt, text: "closed\\n"}
        - fixes:
            - {id: F1, fate: fixed}
            - {id: F2, fate: rejected, reason: the standard calls it that}
    - review:
        - prompt: {path: $SEEN/review2.txt}
        - verdict: {what: approved, by: request}
""",
    )
    assert (told.code, told.modes) == (0, ["implement", "review", "fix", "review"])
    first, fix, second = told.prompt("review1"), told.prompt("fix1"), told.prompt("review2")
    assert "+first version of the story" in first  # also what the agent committed itself
    assert "+the rest" in first
    assert "`true`: passed" in first
    assert "tasks.json" not in first.partition("## The change")[2].partition("## ")[0]
    assert "- F1 [high] io.txt:1: the file is never closed (criterion: no leaks)" in fix
    assert '"fixes"' in fix
    assert "+closed" in second
    assert "F1 [high] io.txt:1: the file is never closed (criterion: no leaks) — reported fixed" in second
    assert "F2 [low] io.txt:1: the name says nothing — rejected: the standard calls it that" in second
    assert (told.story()["reviewCount"], told.story()["passes"]) == (2, True)


def test_a_fix_may_turn_everything_down_and_change_nothing(tmp_path: Path) -> None:
    told = work(
        tmp_path,
        IMPLEMENT
        + FIRST_REVIEW
        + """\
      fix:
        - fixes:
            - {id: F1, fate: rejected, reason: there is no file}
            - {id: F2, fate: rejected, reason: the standard calls it that}
    - review:
        - verdict: {what: approved, by: request}
""",
    )
    assert (told.code, told.modes, [e["kind"] for e in told.ended]) == (
        0,
        ["implement", "review", "fix", "review"],
        ["accepted"] * 4,
    )


def test_a_fix_that_changes_nothing_and_gives_no_reason_is_not_accepted(tmp_path: Path) -> None:
    told = work(
        tmp_path,
        IMPLEMENT + FIRST_REVIEW + "      fix:\n        - fixes: [{id: F1, fate: fixed}, {id: F2, fate: rejected}]\n",
    )
    assert [e["kind"] for e in told.ended[2:3]] == ["rejected"]


INSISTS = """\
      fix:
        - append: {path: io.txt, text: "some change\\n"}
        - fixes: [{id: F1, fate: rejected, reason: there is no file}, {id: F2, fate: fixed}]
    - review:
        - verdict: {what: changes_requested, findings: [{id: F1, text: it really is never closed}]}
"""


def test_two_who_insist_wait_for_a_person(tmp_path: Path) -> None:
    told = work(tmp_path, IMPLEMENT + FIRST_REVIEW + INSISTS)
    assert (told.code, told.modes) == (3, ["implement", "review", "fix", "review"])
    says = "asks: the reviewer repeats F1, which was rejected with a reason, without new evidence"
    assert told.headlines[-1].startswith(says)
    assert told.story()["passes"] is False


def test_new_evidence_opens_a_finding_again(tmp_path: Path) -> None:
    told = work(
        tmp_path,
        IMPLEMENT
        + FIRST_REVIEW
        + INSISTS.replace("it really is never closed}", 'still, evidence: "lsof shows 200 handles"}')
        + """\
      fix:
        - prompt: {path: $SEEN/fix2.txt}
        - append: {path: io.txt, text: "closed\\n"}
        - fixes: [{id: F1, fate: fixed}]
    - review:
        - verdict: {what: approved, by: request}
""",
    )
    assert (told.code, told.modes[-2:]) == (0, ["fix", "review"])
    assert "lsof shows 200 handles" in told.prompt("fix2")


def test_asking_twice_for_the_same_in_the_plan_s_own_field_is_a_stalemate_too(tmp_path: Path) -> None:
    told = work(
        tmp_path,
        IMPLEMENT
        + """\
      review:
        - verdict: {what: changes_requested, feedback: it is not good enough}
      fix:
        - append: {path: io.txt, text: "some change\\n"}
        - claim: done
""",
    )
    assert (told.code, told.modes) == (3, ["implement", "review", "fix", "review"])
    assert told.headlines[-1].startswith("asks: two reviews in a row request the same changes: F1")


def test_several_reviewers_share_one_ledger_and_one_fix(tmp_path: Path) -> None:
    told = work(
        tmp_path,
        IMPLEMENT
        + """\
      review:
        - prompt: {path: $SEEN/quality.txt}
        - verdict: {what: changes_requested, findings: [{text: it is too long}]}
      fix:
        - prompt: {path: $SEEN/fix.txt}
        - append: {path: io.txt, text: "shorter\\n"}
        - fixes: [{id: F1, fate: fixed}, {id: F2, fate: fixed}]
    - review:
        - prompt: {path: $SEEN/tests.txt}
        - verdict: {what: changes_requested, findings: [{text: no test would fail}]}
    - review:
        - verdict: {what: approved, by: request}
""",
        reviewers=["quality", "tests"],
    )
    assert (told.code, told.modes) == (0, ["implement", "review", "review", "fix", "review", "review"])
    assert told.headlines[1] == "quality asks for 1 change; tests reviews next"
    assert "Focus of this review: quality" in told.prompt("quality")
    assert "Focus of this review: tests" in told.prompt("tests")
    assert "- F1 it is too long\n- F2 no test would fail" in told.prompt("fix")
    assert told.story()["reviewCount"] == 2


def test_one_approval_of_two_is_not_enough(tmp_path: Path) -> None:
    told = work(
        tmp_path,
        IMPLEMENT
        + """\
      review:
        - verdict: {what: approved}
      fix:
        - append: {path: io.txt, text: "closed\\n"}
        - claim: done
    - review:
        - verdict: {what: changes_requested, findings: [{text: no test would fail}]}
    - review:
        - verdict: {what: approved, by: request}
""",
        reviewers=["quality", "tests"],
    )
    assert told.headlines[1:3] == ["quality approves; tests reviews next", "changes requested: - F1 no test would fail"]
    assert (told.code, told.modes[3:]) == (0, ["fix", "review", "review"])


def test_another_agent_can_review(tmp_path: Path) -> None:
    judge = tmp_path / "judge.sh"
    judge.write_text(
        '#!/bin/sh\ncat > "$(dirname "$0")/prompt"\n'
        """echo '{"review": {"verdict": "approved"}}' > "$RALPH_REQUEST_FILE"\necho looked at it\n"""
    )
    judge.chmod(0o755)
    told = work(tmp_path, IMPLEMENT, agent="command", command=[str(judge)], model="judge-1")
    assert (told.code, told.modes, told.story()["passes"]) == (0, ["implement", "review"], True)
    started = [event["argv"] for event in told.events if event["type"] == "AgentStarted"]
    assert [argv[0] == str(judge) for argv in started] == [False, True]
    assert "## The change" in (tmp_path / "prompt").read_text()


def test_a_review_that_edits_code_is_reverted_and_repeated(tmp_path: Path) -> None:
    told = work(
        tmp_path,
        IMPLEMENT
        + """\
      review:
        - run: test -e $SEEN/once || (touch $SEEN/once; echo mended > io.txt; git commit -qam "by the reviewer")
        - verdict: {what: approved, by: request}
""",
        attempts=1,
    )
    assert told.ended[1]["kind"] == "rejected"
    assert "must not change files: io.txt" in told.headlines[1]
    assert (told.code, told.modes[2:]) == (0, ["review"]), "a bad review is no attempt at the story"
    assert (told.root / "io.txt").read_text() == "first version of the story\n"
    assert (told.story()["passes"], told.story()["reviewCount"]) == (True, 1)
    log = subprocess.run(
        ["git", "log", "--format=%s"], cwd=told.root, check=True, capture_output=True, text=True
    ).stdout
    assert "by the reviewer" not in log

    refused = ralph("run", "--reviewers", "quality,beauty", cwd=told.root, env={"RALPH_TRUST": "1"})
    assert (refused.code, "unknown reviewer 'beauty'" in refused.err) == (64, True)
