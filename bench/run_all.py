"""Every figure of speed in one table, each in relation to a floor that is measured in the same run.

Processor time is compared, which a busy machine changes little; bench/overhead.py measures the time that passes.

A figure that is more than 25 % above the recorded one is measured again, twice at most, and the best counts. If it is
still above, the exit code is 1. Numbers of processes are exact. `--record` writes the table that later runs are
compared with: do that on an idle machine.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from subprocess import DEVNULL, PIPE
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench import overhead

RECORDED = Path(__file__).with_name("recorded.json")
TOLERANCE = 1.25
TRIES = 3


class Scale(NamedTuple):
    name: str
    rounds: int
    iterations: int
    stories: int
    files: int
    ignored: int


FULL = Scale("full", rounds=30, iterations=60, stories=1000, files=50_000, ignored=30_000)
QUICK = Scale("quick", rounds=8, iterations=12, stories=200, files=2000, ignored=1000)


class Figure(NamedTuple):
    name: str
    floor: str
    measure: Callable[[Path, Scale], float]


class Row(NamedTuple):
    figure: Figure
    value: float
    recorded: float | None

    @property
    def is_worse(self) -> bool:
        return self.recorded is not None and self.value > self.recorded * TOLERANCE


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__,
        epilog="examples:\n  python bench/run_all.py --quick\n  python bench/run_all.py --only processes hook",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--quick", action="store_true", help="fewer rounds and a smaller project: about a minute")
    parser.add_argument("--only", nargs="+", metavar="WORD", help="only figures whose name has one of these words")
    parser.add_argument("--record", action="store_true", help="write the table that later runs are compared with")
    parser.add_argument("--recorded", type=Path, default=RECORDED, metavar="FILE", help=f"default: {RECORDED.name}")
    args = parser.parse_args(arguments)
    scale = QUICK if args.quick else FULL
    chosen = [figure for figure in FIGURES if not args.only or any(word in figure.name for word in args.only)]
    if not chosen:
        parser.error(f"no such figure; there are: {', '.join(figure.name for figure in FIGURES)}")
    tables = json.loads(args.recorded.read_text()) if args.recorded.exists() else {}
    known = tables.get(scale.name, {})
    rows = [measured(figure, scale, None if args.record else known.get(figure.name)) for figure in chosen]
    print(table(rows))
    if args.record:
        tables[scale.name] = known | {row.figure.name: round(row.value, 2) for row in rows}
        args.recorded.write_text(json.dumps(tables, indent=1) + "\n")
    worse = [row.figure.name for row in rows if row.is_worse]
    if worse:
        print(f"\nslower than recorded by more than {TOLERANCE - 1:.0%}: {', '.join(worse)}")
    return 1 if worse else 0


def measured(figure: Figure, scale: Scale, recorded: float | None) -> Row:
    row = Row(figure, float("inf"), recorded)
    for _ in range(TRIES):
        with overhead.bench_folder() as folder:
            row = row._replace(value=min(row.value, figure.measure(folder, scale)))
        if not row.is_worse:
            break
    return row


def table(rows: Sequence[Row]) -> str:
    lines = [f"load of the machine: {os.getloadavg()[0]:.1f}", ""]
    lines.append(f"{'figure':<34} {'measured':>9} {'recorded':>9}  in relation to")
    for row in rows:
        recorded = f"{row.recorded:9.2f}" if row.recorded is not None else f"{'new':>9}"
        verdict = "  WORSE" if row.is_worse else ""
        lines.append(f"{row.figure.name:<34} {row.value:9.2f} {recorded}  {row.figure.floor}{verdict}")
    return "\n".join(lines)


def version(folder: Path, scale: Scale) -> float:
    command = [str(Path(sys.executable).with_name("ralph")), "--version"]
    return beside_python(command, folder, overhead.environment(folder), scale.rounds)


def hook(folder: Path, scale: Scale, *, name: str) -> float:
    from bench import hooks

    env, cases = hooks.environment(folder), {case.name: case for case in hooks.cases(folder)}
    return beside_python(cases[name].command, folder, env, scale.rounds, cases[name].call)


def beside_python(
    command: Sequence[str], folder: Path, env: Mapping[str, str], rounds: int, data: bytes = b""
) -> float:
    cpu(command, folder, env, data)  # bytecode is written and files are in memory
    return min(cpu(command, folder, env, data) for _ in range(rounds)) / python_cpu(rounds)


def python_cpu(rounds: int) -> float:
    return min(cpu([sys.executable, "-c", "pass"], Path.cwd(), os.environ) for _ in range(rounds))


def one_run(folder: Path, scale: Scale, *, stories: int = 0) -> float:
    root = overhead.project(folder, "start", stories or scale.stories)
    times = [run_cpu(folder, root, "--once") for _ in range(1 + scale.rounds // 2)]
    return min(times[1:]) / python_cpu(scale.rounds)


def iteration(folder: Path, scale: Scale) -> float:
    root = overhead.project(folder, "many", scale.iterations)
    command, env = ["git", "commit", "-qm", "x", "--allow-empty"], overhead.environment(folder)
    commit = min(cpu(command, root, env) for _ in range(scale.rounds))
    return iteration_cpu(folder, root, scale.iterations) / commit


def large(folder: Path, scale: Scale) -> float:
    root = overhead.project(folder, "large", 8, files=scale.files, ignored=scale.ignored)
    each = iteration_cpu(folder, root, 8)
    command, env = ["git", "status", "--porcelain"], overhead.environment(folder)
    return each / min(cpu(command, root, env) for _ in range(scale.rounds))


def iteration_cpu(folder: Path, root: Path, stories: int) -> float:
    """With the agent, which is always the same."""
    run_cpu(folder, root, "--once")
    start = run_cpu(folder, root, "--once")
    return (run_cpu(folder, root) - start) / (stories - 3)


def run_cpu(folder: Path, root: Path, *args: str) -> float:
    return cpu([sys.executable, "-m", "ralph", "run", "--quiet", *args], root, overhead.environment(folder))


def cpu(command: Sequence[str], folder: Path, env: Mapping[str, str], data: bytes = b"") -> float:
    """Milliseconds of processor time of a process and all it waited for: a busy machine changes it little."""
    with subprocess.Popen(command, cwd=folder, env=dict(env), stdin=PIPE, stdout=DEVNULL, stderr=DEVNULL) as process:
        assert process.stdin is not None
        process.stdin.write(data)
        process.stdin.close()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    return (used.ru_utime + used.ru_stime) * 1000


def growth(folder: Path, scale: Scale) -> float:
    done = overhead.iterations(folder, overhead.project(folder, "many", max(scale.iterations, 40)))
    quarter = len(done.costs) // 4
    return max(min(done.costs[-quarter:]) / min(done.costs[:quarter]), 1.0)


def processes(folder: Path, _: Scale) -> float:
    root = overhead.project(folder, "counted", overhead.FEW)
    return statistics.median(overhead.iterations(folder, root, is_counted=True).processes)


def processes_before(folder: Path, _: Scale) -> float:
    return overhead.iterations(folder, overhead.project(folder, "counted", 1), is_counted=True).before


FIGURES: tuple[Figure, ...] = (
    Figure("git processes, iteration", "a number", processes),
    Figure("git processes before the agent", "a number", processes_before),
    Figure("ralph --version", "python -c pass", version),
    Figure("hook, a file is read", "python -c pass", partial(hook, name="PreToolUse Read")),
    Figure("hook, a command is judged", "python -c pass", partial(hook, name="PreToolUse Bash, harmless")),
    Figure("run of one story of 10", "python -c pass", partial(one_run, stories=10)),
    Figure("run of one story of many", "python -c pass", one_run),
    Figure("iteration with its agent", "git commit", iteration),
    Figure("last iterations", "first iterations", growth),
    Figure("the same in a large project", "git status", large),
)


if __name__ == "__main__":
    sys.exit(main())
