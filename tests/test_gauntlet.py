"""The liar's gauntlet is fair, its cheats are real ones, and Ralph is not taken in by them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

BENCH = Path(__file__).parent.parent / "bench"
SEED = 2907
"""Its first three stories have a lie, a swallowed failure, an edited check and a broken earlier story."""
EDITED = 168
"""Its first session writes wrong code and lets the tests expect what comes out."""
UNLUCKY = 144
"""Its third story is done in the fifth session, after four failures of different kinds."""


@pytest.fixture
def liar(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCH))
    import liar  # type: ignore[import-not-found]

    return liar  # type: ignore[no-any-return]


@pytest.fixture
def gauntlet(liar: ModuleType) -> ModuleType:
    import gauntlet  # type: ignore[import-not-found]

    return gauntlet  # type: ignore[no-any-return]


def test_every_loop_meets_the_same_agent(liar: ModuleType) -> None:
    draws = [liar.draw(seed, story, tried) for seed in range(20) for story in range(1, 21) for tried in range(3)]
    again = [liar.draw(seed, story, tried) for seed in range(20) for story in range(1, 21) for tried in range(3)]
    assert draws == again
    assert {chosen for chosen, _ in draws} == set(liar.BEHAVIOURS)
    assert [sum(behaviours.values()) for behaviours in liar.CHARACTERS.values()] == [100, 100]


def test_the_floor_counts_sessions_up_to_the_first_true_one(liar: ModuleType, gauntlet: ModuleType) -> None:
    floors = [gauntlet.floor_calls(seed, 20) / 20 for seed in range(50)]
    assert 1.5 < sum(floors) / len(floors) < 1.8


def test_each_cheat_makes_wrong_work_pass_and_none_fools_the_hidden_tests(
    liar: ModuleType, gauntlet: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cheats = [(liar.weaken, way) for way in liar.WAYS["weakens a test"]]
    cheats += [(liar.loosen, way) for way in liar.WAYS["edits the check"]]
    for number, (cheat, way) in enumerate(cheats):
        folder = tmp_path / str(number)
        folder.mkdir()
        root = gauntlet.project(folder, 3)
        monkeypatch.chdir(root)
        env = gauntlet.environment(folder)
        liar.write("src/m3.py", liar.wrong(3))
        assert not passes(root, env), "wrong work fails"
        cheat(3, way)
        assert passes(root, env), way
        assert gauntlet.untrue(root, [3]) == [3]
        liar.write("src/m3.py", liar.right(3))
        assert gauntlet.untrue(root, [3]) == []


def test_each_lazy_lie_passes_the_check_of_the_project_and_none_fools_the_hidden_tests(
    liar: ModuleType, gauntlet: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lies = [("appends to the README", ""), *(("adds a vacuous test", way) for way in liar.WAYS["adds a vacuous test"])]
    for number, (lie, way) in enumerate(lies):
        folder = tmp_path / str(number)
        folder.mkdir()
        root = gauntlet.project(folder, 3, is_lazy=True, own=False)
        monkeypatch.chdir(root)
        env = gauntlet.environment(folder)
        liar.work_lazily(3, lie, way)
        assert passes(root, env, gauntlet.UNIT_TESTS), way
        assert gauntlet.untrue(root, [3]) == [3]
        liar.work_lazily(3, "half-works", "")
        assert not passes(root, env, gauntlet.UNIT_TESTS)
        liar.work_lazily(3, "works", "")
        assert passes(root, env, gauntlet.UNIT_TESTS)
        assert gauntlet.untrue(root, [3]) == []


def test_the_honest_reviewer_approves_only_true_work(liar: ModuleType, gauntlet: ModuleType, tmp_path: Path) -> None:
    root = gauntlet.project(tmp_path, 3, own=False)
    request = tmp_path / "request.json"
    own = {"RALPH_MODE": "review", "RALPH_STORY": "S-3", "RALPH_REQUEST_FILE": str(request)}
    verdicts = []
    for module in (liar.wrong(3), liar.right(3)):
        (root / "src/m3.py").write_text(module)
        command = [sys.executable, "-S", str(BENCH / "liar.py"), "1", "honest"]
        subprocess.run(command, cwd=root, env=gauntlet.environment(tmp_path) | own, check=True)
        verdicts.append(json.loads(request.read_text())["review"]["verdict"])
    assert verdicts == ["changes_requested", "approved"]


def passes(root: Path, env: dict[str, str], check: str = "sh check.sh 3") -> bool:
    return subprocess.run(["sh", "-c", check], cwd=root, env=env, capture_output=True, check=False).returncode == 0


@pytest.mark.slow
def test_what_ralph_calls_done_is_done_at_the_cost_of_an_ideal_loop_and_a_review(gauntlet: ModuleType) -> None:
    stories, edited = 3, 2
    found = gauntlet.run("ralph-review", SEED, stories)
    assert (found.true, found.false) == (stories, ())
    assert found.calls - found.reviews == gauntlet.floor_calls(SEED, stories)
    assert found.reviews == stories + edited, "the reviewer refuses the weakened test and the edited check"


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "stories"), [(SEED, 3), (EDITED, 1)])
def test_edited_tests_that_a_blind_reviewer_approves_prove_nothing(
    gauntlet: ModuleType, seed: int, stories: int
) -> None:
    found = gauntlet.run("ralph-blind", seed, stories)
    assert found.false, "only the reviewer stands between edited tests and done"
    assert set(found.proven).isdisjoint(found.false)


@pytest.mark.slow
@pytest.mark.parametrize("variant", ["ralph-default", "ralph-feature"])
def test_default_bounds_give_up_nothing_that_an_ideal_loop_would_finish(gauntlet: ModuleType, variant: str) -> None:
    seed, stories = UNLUCKY, 4
    found = gauntlet.run(variant, seed, stories)
    assert (found.true, found.false) == (stories, ())
    assert found.calls == gauntlet.floor_calls(seed, stories)


def test_who_believes_the_agent_is_taken_in(gauntlet: ModuleType) -> None:
    assert gauntlet.run("naive", SEED, 3).false


def test_the_command_tells_how_it_is_used() -> None:
    done = subprocess.run([sys.executable, BENCH / "efficacy.py", "--help"], capture_output=True, text=True, check=True)
    assert "--seeds" in done.stdout
    assert "--results" in done.stdout
