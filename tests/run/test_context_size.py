"""What a session begins with, counted and named; by the agents' own counts where there are any."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ralph.core.agent import Usage
from ralph.core.events import AgentSaid, AgentStarted
from ralph.journal.records import Journal
from ralph.state.places import plan_state, workspace_state
from ralph.state.runs import journal_path
from support.cli import ralph_here
from support.plans import plan_name
from support.workspaces import workspace

LAYOUTS = ("plan.md", "tasks.json", "steps", "feature", "spec.md")


def record(root: Path, run: str, *sessions: tuple[int, int]) -> None:
    """A journal of sessions: characters of the prompt, and tokens that the model had read with its first answer."""
    journal = Journal(journal_path(workspace_state(root, os.environ), run), lambda: 0.0)
    for number, (chars, context) in enumerate(sessions, 1):
        journal.write(AgentStarted(iteration=number, step="agent", pid=1, start="", prompt=chars))
        journal.write(AgentSaid(number, Usage(context)))
        journal.write(AgentSaid(number, Usage(context + 50_000)))  # later answers have read more
    journal.close()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_layout_has_its_parts_and_they_add_up(tmp_path: Path, layout: str) -> None:
    workspace(tmp_path, layout)
    found = ralph_here("budget", "--json", cwd=tmp_path)
    assert found.code == 0, found.err
    parts = found.json["parts"]
    assert found.json["total"] == sum(part["tokens"] for part in parts)
    assert abs(sum(part["share"] for part in parts) - 1) < 0.01
    assert {"prompt", "story"} <= {part["part"] for part in parts}
    assert found.json["basis"]["samples"] == 0
    assert found.json["budget"] == (5000 if layout == "spec.md" else 20_000)


def test_counts_of_earlier_sessions_calibrate_the_estimate(tmp_path: Path) -> None:
    workspace(tmp_path, "tasks.json")
    before = ralph_here("budget", cwd=tmp_path)
    assert "estimated at 4 characters per token" in before.err
    record(tmp_path, "20260101-000000-0001", (3000, 15_000), (6000, 16_500), (9000, 18_000))
    after = ralph_here("budget", "--json", cwd=tmp_path).json
    assert after["basis"]["chars_per_token"] == 2.0
    assert after["basis"]["overhead"] == 13_500
    assert after["total"] == pytest.approx(2 * total(before.out), rel=0.02)
    assert "the client adds about 13,500 tokens" in ralph_here("budget", cwd=tmp_path).err


def total(said: str) -> int:
    line = next(line for line in said.splitlines() if line.startswith("total"))
    return int(line.split()[1].replace(",", ""))


def test_what_to_cut_is_named_with_a_way_to_do_it(tmp_path: Path) -> None:
    ref = workspace(tmp_path, "tasks.json")
    (ref.folder / "progress.txt").write_text("# Log\n" + "word " * 30_000)
    done = ralph_here("budget", cwd=tmp_path)
    assert done.code == 1
    assert f".ralph/{plan_name('tasks.json')}/progress.txt, 37,502: `ralph memory compact`" in done.out
    fine = ralph_here("budget", cwd=tmp_path, env={"RALPH_CONTEXT_BUDGET_TOKENS": "0"})
    assert fine.code == 0
    assert "what to cut" not in fine.out


def test_a_readme_over_its_own_budget_is_named_although_the_whole_is_not(tmp_path: Path) -> None:
    ref = workspace(tmp_path, "spec.md")
    (ref.folder / "readme.md").write_text("All of the documentation. " * 100)
    done = ralph_here("budget", cwd=tmp_path)
    assert done.code == 0
    assert "over its own 550" in done.out
    assert "make it a lookup table" in done.out


def test_anything_in_the_place_of_the_memory_is_no_reason_to_hang_or_fail(tmp_path: Path) -> None:
    ref = workspace(tmp_path, "tasks.json")
    log = ref.folder / "progress.txt"
    os.mkfifo(log)
    assert ralph_here("prompt", cwd=tmp_path).code == 0
    assert ralph_here("budget", cwd=tmp_path).code == 0
    assert ralph_here("learnings", cwd=tmp_path).code == 65
    log.unlink()
    log.symlink_to("/etc/passwd")
    assert "root:" not in ralph_here("prompt", cwd=tmp_path).out
    assert ralph_here("learn", "Something", cwd=tmp_path).code != 0
    assert log.is_symlink()
    assert not plan_state(ref, os.environ).joinpath("learnings").exists()
