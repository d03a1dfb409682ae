"""The review cycle in every layout, from the command line, with the scripted agent."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from ralph.plans.registry import LAYOUTS, layout
from support.cli import ralph
from support.plans import plan_name, sample

SCRIPT = """
stories:
  "*":
    - implement:
        - append: {path: work.txt, text: "half\\n"}
        - claim: done
      review:
        - verdict: {what: changes_requested, feedback: "the other half is missing", by: request}
      fix:
        - append: {path: work.txt, text: "whole\\n"}
        - claim: done
    - review:
        - verdict: {what: approved, by: request}
"""


@pytest.mark.slow
@pytest.mark.usefixtures("git_identity")
@pytest.mark.parametrize("name", LAYOUTS.built_in())
def test_implement_review_fix_review_in_every_layout(tmp_path: Path, name: str) -> None:
    found = layout(name)
    ref = found.refer(tmp_path, plan_name(name))
    ref.path.parent.mkdir(parents=True)
    ref.path.write_bytes(re.sub(rb'"verifyCommands": \[[^]]*\]', b'"verifyCommands": []', sample(name, 1)))
    (tmp_path / "script.yaml").write_text(SCRIPT)
    settings = {
        "agent": {"name": "scripted", "script": "script.yaml"},
        "review": {"enabled": True},
        "checks": [{"name": "there", "command": "test -f work.txt"}],
        "branch": {"auto_create": False},
        "archive": {"on_complete": False},
        "steps": [],
    }
    (tmp_path / ".ralph").mkdir(exist_ok=True)
    (tmp_path / ".ralph/config.yaml").write_text(json.dumps(settings))
    for command in ("init -q -b main", "add -A", "commit -qm start"):
        subprocess.run(["git", *command.split()], cwd=tmp_path, check=True)
    plan = found.parse(ref.path.read_bytes(), "plan")
    done = ralph("run", "--json", "--allow-broken-checks", cwd=tmp_path, env={"RALPH_TRUST": "1"})
    assert done.code == 0, done.err
    events = [json.loads(line)["event"] for line in done.out.splitlines()]
    ended = [(e["mode"], e["kind"], e["headline"]) for e in events if e["type"] == "IterationEnded"]
    expected = [
        ("implement", "accepted", "ready for review"),
        ("review", "accepted", "changes requested: the other half is missing"),
        ("fix", "accepted", "ready for review"),
        ("review", "accepted", "approved"),
    ]
    open_stories = [story for story in plan.stories if story.is_open]
    assert ended == expected * len(open_stories)
    assert ralph("audit", cwd=tmp_path).code == 0
