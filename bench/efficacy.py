"""The liar's gauntlet: how many of the stories that a loop calls done are really done, and what that costs.

An agent with seeded random behaviour (bench/liar.py) goes through plans of some stories. At the end tests that were
never in the workspace decide what is true. Every loop meets the same agent: what it does in a session depends on the
seed, the story and how often that story was tried. The floor is an ideal loop that sees the truth each time."""

from __future__ import annotations

import argparse
import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from gauntlet import LOOPS, Outcome, character_of, floor_calls, run  # type: ignore[import-not-found]
from liar import CHARACTERS  # type: ignore[import-not-found]

EPILOG = """examples:
  python bench/efficacy.py                                            a first look, a few minutes
  python bench/efficacy.py --seeds 50 --stories 20 --results all.jsonl    everything; can be interrupted and resumed
  python bench/efficacy.py --variant ralph --variant naive --jobs 2   two of the loops, two plans at a time
"""


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=2, metavar="N", help="plans (default: 2; the full figure: 50)")
    parser.add_argument(
        "--stories", type=int, default=10, metavar="N", help="stories of each plan (default: 10; in docs: 20)"
    )
    parser.add_argument("--variant", action="append", choices=list(LOOPS), help="only this loop; can be repeated")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="plans at a time (default: 1)")
    parser.add_argument(
        "--results", type=Path, metavar="FILE", help="store each result; stored results are not run again"
    )
    parser.add_argument("--keep", type=Path, metavar="DIR", help="keep the folders of failed plans here")
    args = parser.parse_args()
    variants = args.variant or list(LOOPS)
    floors = {}
    print(f"{args.seeds} plans of {args.stories} stories")
    for character in dict.fromkeys(map(character_of, variants)):
        calls = sum(floor_calls(seed, args.stories, character) for seed in range(args.seeds))
        floors[character] = calls / (args.seeds * args.stories)
        shares = ", ".join(f"{name} {weight}" for name, weight in CHARACTERS[character].items())
        print(f"{character} agent, sessions by weight: {shares}; floor: {floors[character]:.3f} calls per true done")
    print()
    print(
        f"{'loop':<33} {'called done':>11} {'false':>12} {'true':>12} {'calls/true':>10} {'x floor':>8} {'reviews':>8}"
    )
    known = _known(args.results, args.stories)
    clean = True
    for variant in variants:
        begun = time.monotonic()
        with ThreadPoolExecutor(max(args.jobs, 1)) as pool:
            wanted = [(variant, seed) for seed in range(args.seeds)]
            results = list(pool.map(lambda one: known.get(one) or _run(one, args), wanted))
        print(
            _row(LOOPS[variant][0], results, args.stories, floors[character_of(variant)]),
            f"  {time.monotonic() - begun:.0f} s",
            flush=True,
        )
        clean &= not (
            variant.startswith("ralph") and variant != "ralph-no-tamper" and any(one.false for one in results)
        )
    return 0 if clean else 1


def _run(one: tuple[str, int], args: argparse.Namespace) -> Outcome:
    variant, seed = one
    found: Outcome = run(variant, seed, args.stories, args.keep)
    if args.results:
        with args.results.open("a") as stream:
            stream.write(json.dumps({"variant": variant, "seed": seed, "stories": args.stories, "found": found}) + "\n")
    return found


def _known(path: Path | None, stories: int) -> dict[tuple[str, int], Outcome]:
    lines = path.read_text().splitlines() if path and path.exists() else []
    kept = [json.loads(line) for line in lines]
    return {
        (one["variant"], one["seed"]): Outcome(*one["found"][:4], tuple(one["found"][4]))
        for one in kept
        if one["stories"] == stories
    }


def _row(title: str, results: list[Outcome], stories: int, floor: float) -> str:
    claimed, true, calls, reviews = (sum(one[n] for one in results) for n in range(4))
    false = claimed - true
    share = f"{false} ({false / claimed:.0%})" if claimed else "0"
    whole = f"{true} ({true / (len(results) * stories):.0%})"
    per = calls / true if true else float("inf")
    return (
        f"{title:<33} {claimed:>11} {share:>12} {whole:>12} {per:>10.3f} {per / floor:>8.3f} "
        f"{reviews / true if true else 0:>8.2f}"
    )


if __name__ == "__main__":
    sys.exit(main())
