"""Write tests/slow_tests.txt: the tests that `scripts/test` leaves out and `scripts/test --everything` runs.

Reads what `scripts/test --everything --durations=0` printed. A test is slow if it takes longer than --seconds in all,
over all its parameters. Tests named in KEPT are always run: the README as a user follows it, and one per feature.

example:
  scripts/test --everything --durations=0 | tee log; python scripts/slow_tests.py log
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from pathlib import Path

SLOW_TESTS = Path(__file__).resolve().parent.parent / "tests" / "slow_tests.txt"
LINE = re.compile(r"^(\d+\.\d+)s (?:call|setup) +(tests/\S+?\.py::[\w:]+)", re.M)
KEPT = frozenset({"tests/test_readme.py", "tests/test_demo.py", "tests/client/test_real_permissions.py"})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("log", type=Path, help="what pytest printed")
    parser.add_argument("--seconds", type=float, default=2, help="(default: 2)")
    options = parser.parse_args()
    total: Counter[str] = Counter()
    for seconds, test in LINE.findall(options.log.read_text()):
        total[test] += float(seconds)  # type: ignore[assignment]
    slow = [test for test, seconds in total.items() if seconds > options.seconds]
    slow = sorted(test for test in slow if test.partition("::")[0] not in KEPT)
    SLOW_TESTS.write_text("".join(f"{test}\n" for test in slow))
    spared = sum(total[test] for test in slow)
    print(f"{len(slow)} tests take {spared:.0f} of {sum(total.values()):.0f} seconds")


if __name__ == "__main__":
    main()
