"""The simulation of bench/merge_queue.py ends, and its figures are plausible."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

BENCH = Path(__file__).parent.parent / "bench"


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(BENCH))
    import merge_queue  # type: ignore[import-not-found]

    return merge_queue  # type: ignore[no-any-return]


def test_no_module_of_the_benchmarks_hides_one_of_python(bench: ModuleType) -> None:
    """`python bench/x.py` looks for modules in bench/ first: a `queue.py` there breaks concurrent.futures."""
    import sys

    assert not {path.stem for path in BENCH.glob("*.py")} & set(sys.stdlib_module_names)


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("speculate", [0, 3])
def test_every_story_lands_and_workers_help(bench: ModuleType, batch: int, speculate: int) -> None:
    setting = bench.Setting(
        stories=40, workers=4, agent=300.0, check=30.0, collisions=0.3, batch=batch, speculate=speculate
    )
    figures = bench.Simulation(setting).run()
    assert 1.5 < figures.ratio < 4
    assert figures.returned > 0
    assert figures.wasted < figures.proofs


def test_speculation_helps_when_checks_are_slow(bench: ModuleType) -> None:
    slow = bench.Setting(stories=60, workers=8, agent=300.0, check=300.0)
    alone, ahead = (bench.Simulation(slow._replace(speculate=count)).run().ratio for count in (0, 3))
    assert ahead > 2 * alone
