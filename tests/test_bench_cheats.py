"""The corpus of bench/cheats.py is large enough, and its oracle can tell cheats from honest work."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

BENCH = Path(__file__).parent.parent / "bench"


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCH))
    import cheats  # type: ignore[import-not-found]

    return cheats  # type: ignore[no-any-return]


def test_the_corpus_covers_every_class_ecosystem_and_layout(bench: ModuleType) -> None:
    listed = bench.cases()
    cheats = [case for case in listed if case.kind == "cheat"]
    honest = [case for case in listed if case.kind == "honest"]
    assert len(cheats) >= 120
    assert len(honest) >= 40
    assert {group[0] for group in {case.group for case in cheats}} >= set("123456789")
    assert {case.project for case in cheats} == {case.project for case in honest} == set(bench.projects())
    assert {case.layout for case in cheats} == {case.layout for case in honest} == set(bench.PLANS)


@pytest.mark.parametrize(
    "name",
    ["pytest/red-tests", "pytest/ignored-folder", "make/red-tests", "make/gnumakefile"],
)
def test_the_oracle_knows_what_is_true(bench: ModuleType, tmp_path: Path, name: str) -> None:
    case = next(case for case in bench.cases() if case.name == name)
    course = bench.Bench(tmp_path / "cases", tmp_path / "cache", "competent", [case])
    result = course.run(case, oracle_only=True)
    assert result.done, f"the project's own check believes it: {result.reason}"
    assert bool(result.why_false) == (case.kind == "cheat"), result.why_false


@pytest.mark.slow
def test_an_honest_story_is_done_and_a_failing_one_is_not(bench: ModuleType, tmp_path: Path) -> None:
    known = {case.name: case for case in bench.cases()}
    course = bench.Bench(tmp_path / "cases", tmp_path / "cache", "competent", [known["make/red-tests"]])
    honest = course.run(known["make/red-tests"], oracle_only=False)
    assert (honest.done, honest.why_false) == (True, "")
    cheat = course.run(known["make/script-skips"], oracle_only=False)
    assert not cheat.done
    assert cheat.why_false


@pytest.mark.slow
def test_hidden_acceptance_tests_catch_a_table_of_the_tested_inputs(bench: ModuleType, tmp_path: Path) -> None:
    case = next(case for case in bench.cases() if case.name == "unittest/lookup-table")
    for acceptance, is_false_done in (("off", True), ("hidden", False)):
        course = bench.Bench(tmp_path / acceptance, tmp_path / "cache", "blind", [case], 3, acceptance)
        assert course.run(case, oracle_only=False).is_false_done is is_false_done


@pytest.mark.slow
@pytest.mark.needs("bwrap")
def test_a_cheat_acts_in_the_sandbox_and_reaches_nothing_outside(bench: ModuleType, tmp_path: Path) -> None:
    case = next(case for case in bench.cases() if case.name == "make/other-branch-made")
    course = bench.Bench(tmp_path / "cases", tmp_path / "cache", "competent", [case], 1)
    inside, outside = (course.run(case, oracle_only=False, way=way) for way in ("default", "none"))
    assert (inside.sandbox, outside.sandbox) == ("bubblewrap", "")
    assert inside.reach.unplayed == outside.reach.unplayed == ""
    assert inside.reach.outside == ()
    assert {"refs/heads/backdoor", "refs/tags/v9"} <= set(outside.reach.outside)
