"""How fast the guard answers, and how often it is right, on the corpus in tests/hooks/guard/corpus."""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

from ralph.hooks.guard.decide import judge_command

CORPUS = Path(__file__).resolve().parent.parent / "tests" / "hooks" / "guard" / "corpus"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__,
        epilog="example: python bench/guard.py --repeat 3",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--repeat", type=int, default=1, metavar="N", help="go through the corpus N times")
    args = parser.parse_args()
    for name, wanted in (("dangerous", True), ("harmless", False)):
        lines = (CORPUS / f"{name}.jsonl").read_text("utf-8").splitlines()
        commands = [json.loads(line)["command"] for line in lines] * args.repeat
        begun = time.process_time()
        right = sum(judge_command(command, "/home/user/project", {}).denied is wanted for command in commands)
        spent = time.process_time() - begun
        share = 100 * right / len(commands)
        print(f"{name:<10} {len(commands)} commands, {share:.2f} % right, {len(commands) / spent:,.0f} a second of CPU")


if __name__ == "__main__":
    main()
