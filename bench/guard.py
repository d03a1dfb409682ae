"""What the command guard gets right on its corpus, and how many commands a second it judges.

    .venv/bin/python bench/guard.py [ROUNDS]

Three ways: as a function in one process, as `ralph guard --jsonl`, and as the hook that a client starts for each
command (CPU time over a bare interpreter; target: at most 2 ×, and 3 × for Python code).
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from ralph.guard.decision import judge_command

CORPUS = Path(__file__).resolve().parent.parent / "tests" / "guard" / "corpus"
CWD = "/home/user/project"
TARGETS = {"dangerous": 0.97, "harmless": 0.99}


def main(rounds: int) -> int:
    lines = {name: read(name) for name in TARGETS}
    missed = rates(lines)
    speed(lines, rounds)
    hook_cost(rounds)
    return 1 if missed else 0


def read(name: str) -> list[dict[str, str]]:
    return [json.loads(line) for line in (CORPUS / f"{name}.jsonl").read_text().splitlines()]


def rates(lines: dict[str, list[dict[str, str]]]) -> bool:
    missed = False
    for name, wanted in TARGETS.items():
        right = wrong = 0
        by_category: Counter[str] = Counter()
        for line in lines[name]:
            decision = judge_command(line["command"], line.get("cwd", CWD), {})
            is_right = decision.denied is (name == "dangerous")
            right, wrong = right + is_right, wrong + (not is_right)
            by_category[decision.category] += 1
        rate = right / (right + wrong)
        missed |= rate < wanted
        verdict = "ok" if rate >= wanted else "MISSED"
        print(f"{name:<10} {right + wrong:>5} lines  {rate:7.2%} right (target {wanted:.0%}): {verdict}")
        if name == "dangerous":
            print("           " + ", ".join(f"{category} {count}" for category, count in by_category.most_common()))
    return missed


def speed(lines: dict[str, list[dict[str, str]]], rounds: int) -> None:
    everything = [line for name in TARGETS for line in lines[name]]
    started = time.process_time()
    for _ in range(rounds):
        for line in everything:
            judge_command(line["command"], line.get("cwd", CWD), {})
    taken = time.process_time() - started
    print(f"\nin one process: {rounds * len(everything) / taken:,.0f} commands a second of CPU time")

    given = "".join(json.dumps(line) + "\n" for line in everything).encode() * rounds
    command = [str(Path(sys.executable).with_name("ralph")), "guard", "--jsonl", "--defaults"]
    wall = time.perf_counter()
    done, cpu = run(command, given)
    wall = time.perf_counter() - wall
    assert done.count(b"\n") == rounds * len(everything)
    count = rounds * len(everything)
    print(f"ralph guard --jsonl: {count / cpu:,.0f} a second of CPU time, {count / wall:,.0f} of wall time")


def hook_cost(rounds: int) -> None:
    hook = [sys.executable, "-I", "-m", "ralph.hooks", "PreToolUse"]
    calls = {
        "python -c pass": ([sys.executable, "-I", "-c", "pass"], b""),
        "plain command": (hook, call("npm test")),
        "command to read": (hook, call('cd app && rm -rf "$PWD/dist" | tee log')),
        "python to read": (hook, call("python3 -c 'import os; print(os.getcwd())'")),
    }
    least = {name: min(run(*each)[1] for _ in range(5 * rounds)) for name, each in calls.items()}
    base = least["python -c pass"]
    print(f"\n{'hook':<18} {'CPU ms':>7} {'ratio':>6}")
    for name, cpu in least.items():
        print(f"{name:<18} {cpu * 1000:>7.1f} {cpu / base:>6.2f}")


def call(command: str) -> bytes:
    return json.dumps({"tool_name": "Bash", "tool_input": {"command": command}}).encode()


def run(command: list[str], given: bytes) -> tuple[bytes, float]:
    """What it printed, and the CPU seconds it took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, input=given, stdout=subprocess.PIPE, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return done.stdout, (after.ru_utime + after.ru_stime) - (before.ru_utime + before.ru_stime)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 3))
