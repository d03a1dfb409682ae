"""A run that goes on with somebody else, and chooses models by story."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from support.cli import ralph

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("git_identity")]


@pytest.fixture
def agent(tmp_path: Path) -> Path:
    """Says which model it was asked for, does well as `steady`, and is at a limit as anything else."""
    path = tmp_path / "agent.sh"
    path.write_text(
        """#!/bin/sh
cat > /dev/null
case "$*" in
  *steady*) echo x > "$RALPH_STORY.txt"; echo '{"claim": "done"}' > "$RALPH_REQUEST_FILE"; echo well ;;
  *) echo "Claude AI usage limit reached|$(( $(date +%s) + 7200 ))"; exit 1 ;;
esac
"""
    )
    path.chmod(0o755)
    return path


def workspace(root: Path, agent: Path, **settings: Any) -> None:
    listed = [
        {"id": f"S-{n}", "title": "s", "acceptanceCriteria": ["c"], "priority": n, "passes": False, "notes": ""}
        for n in (1, 2)
    ]
    head = {"feature": "work", "branchName": "main", "description": "d", "createdAt": "2026-01-01"}
    (root / ".ralph/work").mkdir(parents=True)
    (root / ".ralph/work/prd.json").write_text(json.dumps(head | {"userStories": listed}))
    basic = {
        "agent": {"name": "command", "command": [str(agent), "--model", "{model}"], "model": "hasty"},
        "checks": [{"name": "true", "command": "true"}],
        "archive": {"on_complete": False},
        "branch": {"auto_create": False},
    }
    (root / ".ralph/config.yaml").write_text(json.dumps(basic | settings))
    for command in ("init -q -b main", "add -A", "commit -qm start"):
        subprocess.run(["git", *command.split()], cwd=root, check=True)


def run(root: Path, *flags: str) -> tuple[int, list[dict[str, Any]]]:
    done = ralph("run", "--json", *flags, cwd=root, env={"RALPH_TRUST": "1"})
    return done.code, [json.loads(line)["event"] for line in done.out.splitlines() if line.startswith("{")]


def test_at_a_usage_limit_the_fallback_goes_on_at_once(tmp_path: Path, agent: Path) -> None:
    root = tmp_path / "repo"
    workspace(root, agent, fallback=["steady"])
    code, events = run(root)
    assert code == 0
    started = [(e["story"], e["choice"]) for e in events if e["type"] == "IterationStarted"]
    assert started == [("S-1", ""), ("S-1", "steady"), ("S-2", "steady")]
    assert not [e for e in events if e["type"] == "WaitStarted"]


def test_the_model_is_chosen_by_the_story(tmp_path: Path, agent: Path) -> None:
    root = tmp_path / "repo"
    workspace(root, agent, routing={"enabled": True, "simple": "steady"})
    code, events = run(root, "--once")
    argv = [e["argv"] for e in events if e["type"] == "AgentStarted"]
    assert (code, [words[-1] for words in argv]) == (0, ["steady"])
    told = ralph("route", "S-2", cwd=root)
    assert "command, steady (routing: the story looks simple)" in told.out
    given = ralph("route", "S-2", "-m", "hasty", cwd=root)
    assert "command, hasty (the model set for this run)" in given.out


def test_an_agent_that_is_not_here_is_told_before_anything_starts(tmp_path: Path, agent: Path) -> None:
    root = tmp_path / "repo"
    workspace(root, agent)
    done = ralph("run", "--fallback", "steady,cursor", cwd=root, env={"RALPH_TRUST": "1"})
    assert (done.code, "unknown agent 'cursor'" in done.err) == (64, True)


def test_a_reviewer_at_its_limit_is_not_replaced_by_the_author(tmp_path: Path) -> None:
    """The reviewer is another program. It is at a limit, so the other story is done first, and then the run exits."""
    root, author, reviewer = tmp_path / "repo", tmp_path / "author.sh", tmp_path / "reviewer.sh"
    author.write_text(
        """#!/bin/sh
cat > /dev/null
echo x > "$RALPH_STORY.txt"; echo '{"claim": "done"}' > "$RALPH_REQUEST_FILE"; echo well
"""
    )
    reviewer.write_text(
        """#!/bin/sh
cat > /dev/null
echo "usage limit reached|$(( $(date +%s) + 7200 ))"; exit 1
"""
    )
    for path in (author, reviewer):
        path.chmod(0o755)
    review = {"when": "always", "agent": "command", "model": "careful", "command": [str(reviewer)]}
    workspace(root, author, review=review, on_limit="exit")
    code, events = run(root)
    started = [(e["story"], e["mode"], e["choice"]) for e in events if e["type"] == "IterationStarted"]
    assert started == [("S-1", "implement", ""), ("S-1", "review", ""), ("S-2", "implement", "")]
    assert (code, events[-1]["reason"]) == (2, "usage-limit")
    assert "the reviewer's usage limit is reached" in events[-1]["detail"]


def test_a_reviewer_that_never_gives_a_verdict_is_asked_in_three_reviews(tmp_path: Path) -> None:
    root, agent = tmp_path / "repo", tmp_path / "agent.sh"
    agent.write_text(
        """#!/bin/sh
cat > /dev/null
[ "$RALPH_MODE" = review ] && { echo "looks fine to me"; exit 0; }
echo x > "$RALPH_STORY.txt"; echo '{"claim": "done"}' > "$RALPH_REQUEST_FILE"; echo well
"""
    )
    agent.chmod(0o755)
    workspace(root, agent, review={"when": "always"})
    code, events = run(root, "--story", "S-1")
    modes = [e["mode"] for e in events if e["type"] == "IterationStarted"]
    assert modes == ["implement", "review", "review", "review"]
    (aside,) = [e for e in events if e["type"] == "StorySetAside"]
    assert aside["why"] == "3 reviews in a row gave no usable verdict"
    assert code == 5


def test_accepted_work_does_not_count_towards_giving_up(tmp_path: Path) -> None:
    """Two attempts are allowed, and the review asks for changes four times: no attempt 3 of 2, and no failed story."""
    root, agent = tmp_path / "repo", tmp_path / "agent.sh"
    agent.write_text(
        """#!/bin/sh
cat > /dev/null
echo "$RALPH_MODE $RALPH_ATTEMPT" >> ../log
if [ "$RALPH_MODE" = review ]; then
    n=$(grep -c review ../log)
    [ "$n" -gt 4 ] && { echo '{"review": {"verdict": "approved"}}' > "$RALPH_REQUEST_FILE"; exit 0; }
    echo '{"review": {"verdict": "changes_requested", "findings": [{"text": "it answers 40'$n', not 200"}]}}' \
        > "$RALPH_REQUEST_FILE"
    exit 0
fi
date +%N >> "$RALPH_STORY.txt"; echo '{"claim": "done"}' > "$RALPH_REQUEST_FILE"; echo well
"""
    )
    agent.chmod(0o755)
    workspace(root, agent, review={"when": "always", "cap": 8}, max_loops_per_task=2)
    code, events = run(root, "--story", "S-1")
    ended = [(e["mode"], e["kind"]) for e in events if e["type"] == "IterationEnded"]
    rounds = [("review", "accepted"), ("fix", "accepted")] * 4
    assert ended == [("implement", "accepted"), *rounds, ("review", "accepted")]
    assert code == 0, "findings that differ in a number are no stalemate"
    work = [line for line in (tmp_path / "log").read_text().splitlines() if not line.startswith("review")]
    assert work == ["implement 1", "fix 1", "fix 2", "fix 3", "fix 4"], "rounds, and no failed attempt"
