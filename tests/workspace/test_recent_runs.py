"""What the guards of a run take over from the runs before it."""

from __future__ import annotations

from pathlib import Path

from ralph.core.events import AnyEvent
from ralph.core.rules import Limits
from ralph.core.verdict import Kind
from ralph.journal.records import Journal
from ralph.state.places import workspace_state
from ralph.state.runs import journal_path
from ralph.workspace.runs import Recent, recent, recent_of_all
from support.decisions import HOUR, NOW, agent_end, agent_start, ended, heard, started

LIMITS = Limits()


def write(state: Path, run: str, *told: tuple[float, AnyEvent], agent: str = "claude", **begun: object) -> Path:
    now = [told[0][0] if told else NOW]
    journal = Journal(journal_path(state, run), lambda: now[0])
    journal.write(started(run=run, agent=agent, **begun))
    for at, event in told:
        now[0] = at
        journal.write(event)
    journal.close()
    return journal.path


def test_a_first_run_takes_over_nothing(tmp_path: Path) -> None:
    assert recent(tmp_path, "claude", LIMITS, NOW) == Recent()


def test_starts_and_tokens_of_the_last_hour_are_taken_over(tmp_path: Path) -> None:
    write(tmp_path, "1", (NOW - 2 * HOUR, agent_start()), (NOW - 60, agent_start()), (NOW - 30, agent_end(500)))
    found = recent(tmp_path, "claude", LIMITS, NOW)
    assert (found.calls, found.used) == ((NOW - 60,), ((NOW - 30, 500),))


def test_what_a_run_took_over_is_handed_on(tmp_path: Path) -> None:
    write(tmp_path, "1", (NOW - 600, agent_start()))
    write(tmp_path, "2", (NOW - 60, agent_start()), calls=(NOW - 600,))
    assert recent(tmp_path, "claude", LIMITS, NOW).calls == (NOW - 600, NOW - 60)


def test_another_agent_uses_up_the_rate_but_not_the_limit(tmp_path: Path) -> None:
    write(tmp_path, "1", (NOW - 60, agent_start()), (NOW - 50, heard(rejected=True, resets_at=NOW + HOUR)))
    assert [limit.kind for limit in recent(tmp_path, "claude", LIMITS, NOW).heard] == ["five_hour"]
    assert recent(tmp_path, "codex", LIMITS, NOW) == Recent(calls=(NOW - 60,))


def test_a_limit_is_still_known_after_a_run_of_another_agent(tmp_path: Path) -> None:
    write(tmp_path, "1", (NOW - 50, heard(rejected=True, resets_at=NOW + HOUR)))
    write(tmp_path, "2", (NOW - 40, agent_start()), agent="codex")
    assert len(recent(tmp_path, "claude", LIMITS, NOW).heard) == 1


def test_a_limit_without_a_time_of_reset_is_taken_over_with_the_time_it_is_given(tmp_path: Path) -> None:
    write(tmp_path, "1", (NOW - 60, ended(Kind.LIMIT)))
    (limit,) = recent(tmp_path, "claude", LIMITS, NOW).heard
    assert limit.rejected
    assert limit.resets_at == NOW - 60 + LIMITS.unknown_reset_wait


def test_a_limit_that_has_been_reset_is_not(tmp_path: Path) -> None:
    write(tmp_path, "1", (NOW - 2 * HOUR, heard(rejected=True, resets_at=NOW - HOUR)))
    assert recent(tmp_path, "claude", LIMITS, NOW).heard == ()


def test_a_damaged_journal_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    path = write(tmp_path, "1", (NOW - 60, agent_start()), (NOW - 30, agent_start()))
    path.write_bytes(path.read_bytes() + b'{"AgentStarted" what is this\n{"seq": 9, "AgentStarted"')
    assert recent(tmp_path, "claude", LIMITS, NOW).calls == (NOW - 60, NOW - 30)


def test_runs_in_worktrees_of_the_workspace_and_the_workspace_itself_know_of_each_other(tmp_path: Path) -> None:
    env = {"RALPH_STATE_HOME": str(tmp_path / "state")}
    root = tmp_path / "shop"
    tree = workspace_state(root, env) / "worktrees" / "20260101-000000-abcd"
    tree.mkdir(parents=True)
    write(workspace_state(root, env), "1", (NOW - 60, agent_start()))
    write(workspace_state(tree, env), "2", (NOW - 30, agent_start()), calls=(NOW - 60,))
    for place in (root, tree):
        assert recent_of_all(place, env, "claude", LIMITS, NOW).calls == (NOW - 60, NOW - 30)
    assert recent_of_all(tmp_path / "other", env, "claude", LIMITS, NOW) == Recent()
