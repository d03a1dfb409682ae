"""What `ralph --version` and `ralph --help` cost over a bare interpreter. Target: at most 1.5 × `python -c pass`.

    .venv/bin/python bench/startup.py [ROUNDS]

The commands take turns, so that a busy machine slows all of them down alike. The ratio of the medians is the figure;
minima are shown because they disturb least.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from statistics import median

TARGET = 1.5


def main(rounds: int) -> int:
    python = sys.executable
    script = str(Path(python).with_name("ralph"))
    commands = {
        "python -c pass": [python, "-c", "pass"],
        "ralph --version": [script, "--version"],
        "ralph --help": [script, "--help"],
        "python -m ralph --version": [python, "-m", "ralph", "--version"],
    }
    times: dict[str, list[float]] = {name: [] for name in commands}
    for command in commands.values():
        once(command)  # bytecode is written and files are in memory
    for _ in range(rounds):
        for name, command in commands.items():
            times[name].append(once(command))

    base = times["python -c pass"]
    print(f"{'command':<28} {'median ms':>10} {'min ms':>8} {'median ×':>9} {'min ×':>7}")
    for name, taken in times.items():
        ratio, ratio_of_minima = median(taken) / median(base), min(taken) / min(base)
        print(f"{name:<28} {median(taken):>10.1f} {min(taken):>8.1f} {ratio:>9.2f} {ratio_of_minima:>7.2f}")
    reached = median(times["ralph --version"]) / median(base)
    verdict = "ok" if reached <= TARGET else "MISSED"
    print(f"\nralph --version: {reached:.2f} × bare Python, target {TARGET} ×: {verdict}")
    return 0 if reached <= TARGET else 1


def once(command: list[str]) -> float:
    """Milliseconds from start to end of a process."""
    environment = {n: v for n, v in os.environ.items() if n != "PYTHONDONTWRITEBYTECODE"}
    started = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, env=environment)
    return (time.perf_counter() - started) * 1000


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 60))
