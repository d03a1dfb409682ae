"""Commands that change a plan take turns."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ralph.core.errors import LockHeld, SetupError
from ralph.host.locks import Lock, Owner
from ralph.state import locks as turns
from ralph.state.locks import turn
from ralph.state.names import EDIT_LOCK
from ralph.state.places import plan_state
from support.workspaces import workspace


def test_one_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "_PATIENCE", 0.1)
    ref = workspace(tmp_path, "tasks.json")
    with turn(ref, os.environ), pytest.raises(LockHeld, match=r"been changing .*tasks\.json"), turn(ref, os.environ):
        pass
    with turn(ref, os.environ):
        pass


def test_plans_do_not_wait_for_each_other(tmp_path: Path) -> None:
    one, other = workspace(tmp_path, "tasks.json"), workspace(tmp_path, "spec.md")
    with turn(one, os.environ), turn(other, os.environ):
        pass


def test_an_error_gives_the_turn_back(tmp_path: Path) -> None:
    ref = workspace(tmp_path, "spec.md")
    with pytest.raises(ValueError, match="boom"), turn(ref, os.environ):
        raise ValueError("boom")
    assert not Lock(plan_state(ref, os.environ) / EDIT_LOCK).is_held()


def test_a_run_and_an_edit_have_different_locks(tmp_path: Path) -> None:
    ref = workspace(tmp_path, "spec.md")
    with Lock(plan_state(ref, os.environ) / "run.lock").held_by(Owner.here("r")), turn(ref, os.environ):
        pass


def test_an_agent_without_a_state_folder_goes_on(tmp_path: Path) -> None:
    ref = workspace(tmp_path, "spec.md")
    (tmp_path / "file").touch()
    env = {**os.environ, "RALPH_STATE_HOME": str(tmp_path / "file" / "state")}
    with pytest.raises(SetupError), turn(ref, env):
        pass
    with turn(ref, env, agent=True):
        pass
