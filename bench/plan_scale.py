#!/usr/bin/env python3
"""How the cost of a plan grows: load, select and mark one story, for 10 to 10,000 stories in each layout.

Example: bench/plan_scale.py --max 1000 --layout tasks.json
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from ralph.core.changes import SetFields
from ralph.core.plan import State
from ralph.core.ports import Layout
from ralph.core.select import next_story
from ralph.plans.registry import LAYOUTS
from support.plans import sample

SIZES = [10, 100, 1_000, 10_000]
TARGET = 1000  # ms, to load and select in 10,000 stories


def main() -> int:
    options = _parser().parse_args()
    bare = _best(lambda: subprocess.run([sys.executable, "-c", "pass"], check=True), 5, time.perf_counter)
    print(f"CPU time, best of {options.repeat} runs; ratio: to a plan of a tenth of the size")
    print(f"for scale, `python -c pass`: {bare:.1f} ms; load of the machine: {os.getloadavg()[0]:.1f}\n")
    headings = (
        ("stories", 9),
        ("MB", 8),
        ("load ms", 10),
        ("select", 9),
        ("both", 9),
        ("ratio", 7),
        ("mark ms", 10),
        ("ratio", 7),
    )
    print(f"{'layout':<12}" + "".join(f"{text:>{width}}" for text, width in headings))
    is_slow = False
    for name in options.layout or LAYOUTS.names():
        try:
            form = LAYOUTS.get(name)
        except ImportError as error:
            print(f"{name:<12} cannot be imported: {error}")
            continue
        is_slow |= _measure(form, [size for size in SIZES if size <= options.max], options.repeat)
    return 1 if is_slow else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").partition("\n\n")[0],
        epilog="example: bench/plan_scale.py --max 1000 --layout tasks.json",
    )
    parser.add_argument("--max", type=int, default=SIZES[-1], metavar="N", help="largest plan (default: 10000)")
    parser.add_argument("--repeat", type=int, default=3, metavar="N", help="runs of each measurement (default: 3)")
    parser.add_argument("--layout", action="append", metavar="L", help=f"one of {', '.join(LAYOUTS.names())}")
    return parser


def _measure(form: Layout, sizes: list[int], repeat: int) -> bool:
    """Print one line for each size. True when the largest one misses the target."""
    before: tuple[float, float] | None = None
    both = 0.0
    for size in sizes:
        source = sample(form.NAME, size)
        plan = form.parse(source, form.NAME)
        following = next_story(plan)
        assert following is not None
        change = SetFields(following.id, {"state": State.DONE})
        load = _best(lambda s=source: form.parse(s, form.NAME), repeat)  # type: ignore[misc]
        select = _best(lambda p=plan: next_story(p), repeat)  # type: ignore[misc]
        mark = _best(lambda s=source, c=change: form.edit(s, [c]), repeat)  # type: ignore[misc]
        both = load + select
        ratios = (f"{both / before[0]:.1f}", f"{mark / before[1]:.1f}") if before else ("", "")
        print(
            f"{form.NAME:<12}{size:>9,}{len(source) / 1e6:>8.2f}{load:>10.2f}{select:>9.2f}{both:>9.2f}{ratios[0]:>7}"
            f"{mark:>10.2f}{ratios[1]:>7}",
            flush=True,
        )
        before = both, mark
    if sizes[-1:] == [SIZES[-1]]:
        verdict = "within" if both <= TARGET else "over"
        print(f"{form.NAME:<12}load and select {SIZES[-1]:,} stories: {both:.0f} ms, {verdict} {TARGET} ms\n")
        return both > TARGET
    return False


def _best(action: Callable[[], object], repeat: int, clock: Callable[[], float] = time.process_time) -> float:
    """Milliseconds of the fastest run. What a run returns is thrown away outside of the time."""
    best = float("inf")
    for _ in range(repeat):
        start = clock()
        result = action()
        best = min(best, clock() - start)
        del result
    return best * 1000


if __name__ == "__main__":
    sys.exit(main())
