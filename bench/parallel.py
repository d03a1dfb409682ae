"""Several workers: how much faster they are, what a worker costs, and that nothing is lost when anything is killed.

Without --seeds: 40 independent stories with an agent of 2 s, some workers against one, and the start of a worker in a
repository of 1,000 files, with its parts. With --seeds: random plans that collide, an agent that lies (bench/liar.py),
kill -9 of the driver and of workers, and an inspection at the end; exits with 1 when anything is wrong."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from parallel_seeds import Outcome, run_seed  # type: ignore[import-not-found]
from parallel_speed import imports, measure, project  # type: ignore[import-not-found]

EPILOG = """examples:
  python bench/parallel.py                              the figures
  python bench/parallel.py --stories 16 --workers 4     smaller
  python bench/parallel.py --stories 16 --seconds 20    an agent that takes longer than everything else
  python bench/parallel.py --seeds 20                   seeds 0 to 19
  python bench/parallel.py --seeds 1 --first 7 --keep /tmp/seeds    seed 7 again; its folder stays if it fails
"""


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=0, metavar="N", help="seeded runs, instead of the figures")
    parser.add_argument("--first", type=int, default=0, metavar="N", help="the first seed (default: 0)")
    parser.add_argument("--stories", type=int, default=40, metavar="N", help="stories for the figures (default: 40)")
    parser.add_argument("--seconds", type=float, default=2, metavar="S", help="time that an agent takes (default: 2)")
    parser.add_argument("--workers", type=int, default=8, metavar="N", help="against one (default: 8)")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the folders of failed seeds here")
    args = parser.parse_args()
    if args.seeds:
        return seeds(args.first, args.seeds, args.keep)
    figures(args.stories, args.workers, args.seconds)
    return 0


def figures(stories: int, workers: int, seconds: float) -> None:
    load = os.getloadavg()[0]
    print(f"{os.cpu_count()} processors, load {load:.1f} at the start")
    measured = {}
    for count in (1, workers):
        with tempfile.TemporaryDirectory(prefix="parallel-", ignore_cleanup_errors=True) as name:
            measured[count] = one = measure(Path(name), project(Path(name), stories, seconds), count)
        print(f"{stories} stories of {seconds:g} s, {count} at a time: {one.seconds:.1f} s", flush=True)
    many = measured[workers]
    print(f"{workers} workers against one: {measured[1].seconds / many.seconds:.1f} x")
    print(f"  until all workers were ready: {many.until_ready:.2f} s; from accepted to merged: {many.queue:.2f} s")
    with tempfile.TemporaryDirectory(prefix="parallel-", ignore_cleanup_errors=True) as name:
        start = measure(Path(name), project(Path(name), 2, 0, files=1000), 2)
    python = imports()
    print(
        f"start of a worker, 1,000 files: {1000 * (python + min(start.starts)):.0f} ms: Python and imports "
        f"{1000 * python:.0f} ms, clone and preparation {1000 * min(start.starts):.0f} ms"
    )


def seeds(first: int, count: int, keep: Path | None) -> int:
    outcomes: list[Outcome] = []
    for seed in range(first, first + count):
        folder = Path(tempfile.mkdtemp(prefix=f"parallel-{seed}-"))
        outcome = run_seed(folder, seed)
        outcomes.append(outcome)
        print(
            f"seed {seed}: {outcome.done} of {outcome.stories} done, {outcome.runs} runs, {outcome.kills} killed, "
            f"{outcome.returned} returned, {outcome.seconds} s{'' if outcome.problems else ', nothing wrong'}",
            flush=True,
        )
        for problem in outcome.problems:
            print(f"  {problem}", flush=True)
        if outcome.problems and keep is not None:
            keep.mkdir(parents=True, exist_ok=True)
            shutil.rmtree(keep / str(seed), ignore_errors=True)
            shutil.copytree(folder, keep / str(seed), symlinks=True)
        shutil.rmtree(folder, ignore_errors=True)
    bad = sum(bool(one.problems) for one in outcomes)
    stories, returned, kills = (
        sum(getattr(one, name) for one in outcomes) for name in ("stories", "returned", "kills")
    )
    print(f"{count} seeds, {stories} stories, {kills} processes killed, {returned} returned: {bad} seeds with problems")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
