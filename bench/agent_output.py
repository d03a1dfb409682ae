"""How fast, and in how much memory, the output of an agent is read, through the readers that a run uses.

    python bench/agent_output.py                  every kind of output, 1,000 MB each
    python bench/agent_output.py --mb 200 --kind one-line
    python bench/agent_output.py --json           one JSON object per line

Each kind runs in a fresh process, so that its peak memory is its own. `baseline` starts an agent that prints nothing.
`cpu_ratio` is the CPU time of reading divided by that of a bare loop which only reads the same pipe and counts lines.
It hardly depends on what else the machine does.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")
KINDS = (
    "baseline",
    "one-line",
    "short-lines",
    "long-words",
    "yes",
    "yes-claude",
    "json-other",
    "json-text",
    "json-large",
    "stderr",
)

# Print `mb` megabytes as fast as possible.
AGENT = """
import json, os, sys
kind, mb = sys.argv[1], int(sys.argv[2])
line = b"an ordinary line of words, as tools print them, and a number: 1234567890 ok".ljust(79, b".") + b"\\n"
if kind == "long-words":  # every line could be a token, so each is compared with the shapes of secrets
    line = b"x" * 79 + b"\\n"
text = "All of this is done, and the tests pass. " * 4
message = {"type": "assistant", "message": {"role": "assistant", "content": [{"type": "text", "text": text}]}}
if kind.startswith("yes"):
    line = b"y\\n"
elif kind == "json-other":
    line = json.dumps({"type": "stream_event", "event": message}, separators=(",", ":")).encode() + b"\\n"
elif kind == "json-text":
    line = json.dumps(message, separators=(",", ":")).encode() + b"\\n"
elif kind == "json-large":
    result = {"type": "tool_result", "tool_use_id": "1", "content": "a line of a file\\n" * 60000}
    line = json.dumps({"type": "user", "message": {"content": [result]}}, separators=(",", ":")).encode() + b"\\n"
block = line * max(1_000_000 // len(line), 1) if kind != "one-line" else b"x" * 1_000_000
descriptor = 2 if kind == "stderr" else 1
for _ in range(0 if kind == "baseline" else mb * 1_000_000 // len(block)):
    left = memoryview(block)
    while left:
        left = left[os.write(descriptor, left):]
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mb", type=int, default=1000, help="megabytes to print (default: 1000)")
    parser.add_argument("--kind", choices=KINDS, action="append", help="only this kind; may be repeated")
    parser.add_argument("--json", action="store_true", help="one JSON object per line")
    parser.add_argument("--measure", choices=KINDS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(measure(options.measure, options.mb)))
        return
    for kind in options.kind or KINDS:
        command = [sys.executable, __file__, "--measure", kind, "--mb", str(options.mb)]
        line = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        print(line.strip() if options.json else readable(json.loads(line)))


def measure(kind: str, mb: int) -> dict[str, object]:
    argv = (sys.executable, "-S", "-c", AGENT, kind, str(mb))
    result = read_as_a_run(kind, argv)
    peak = peak_mb()
    lines, bare = timed(lambda: read_bare(argv, 2 if kind == "stderr" else 1))
    seconds, cpu = float(str(result["seconds"])), float(str(result["cpu"]))
    printed = 0 if kind == "baseline" else mb
    return {
        "kind": kind,
        **result,
        "mb": printed,
        "lines": lines,
        "mb_per_second": round(printed / seconds, 1),
        "mb_per_cpu_second": round(printed / cpu, 1) if cpu else 0,
        "lines_per_cpu_second": round(lines / cpu) if cpu else 0,
        "cpu_ratio": round(cpu / bare, 2) if bare else 0,
        "peak_mb": round(peak, 1),
    }


def read_as_a_run(kind: str, argv: tuple[str, ...]) -> dict[str, object]:
    from ralph.agents.registry import agent
    from ralph.engine.agent_run import Listener
    from ralph.host.process.raw_log import RawLog
    from ralph.host.process.supervise import Command, Ending, Limits, Watcher, supervise

    client = agent("claude" if "claude" in kind or kind.startswith("json") else "command")
    listener = Listener(client.reader(), lambda _: None, 1, "<promise>COMPLETE</promise>")
    with tempfile.TemporaryDirectory() as folder, RawLog(Path(folder) / "agent.log") as raw:
        command = Command(argv, Path(folder), {})
        begun = time.perf_counter()

        def run() -> Ending:
            return supervise(command, Limits(), Watcher(on_line=listener.line, on_block=listener.block, raw=raw))

        ending, cpu = timed(run)
        seconds = time.perf_counter() - begun
        kept = sum(part.stat().st_size for part in raw.parts())
    return {
        "how": ending.how.value,
        "code": ending.code,
        "seconds": round(seconds, 3),
        "cpu": round(cpu, 3),
        "kept_on_disk_mb": round(kept / 1e6, 1),
    }


def read_bare(argv: tuple[str, ...], descriptor: int) -> int:
    """Count the lines with nothing but `read` and `count`."""
    stream = {"stdout" if descriptor == 1 else "stderr": subprocess.PIPE}
    lines = 0
    with subprocess.Popen(argv, **stream) as process:  # type: ignore[call-overload]
        pipe = process.stdout or process.stderr
        while data := os.read(pipe.fileno(), 128 * 1024):
            lines += data.count(b"\n")
    return lines


def timed(act: Callable[[], T]) -> tuple[T, float]:
    """Its result, and the CPU seconds this process used for it; those of the agent do not count."""
    begun = time.process_time()
    result = act()
    return result, time.process_time() - begun


def peak_mb() -> float:
    status = Path("/proc/self/status")
    if status.exists():  # getrusage also counts the process we were forked from
        peak = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(peak.split()[1]) / 1024
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 / 1024


def readable(result: dict[str, object]) -> str:
    return (
        f"{result['kind']:>12}  {result['mb']:>5} MB  {result['lines']:>12,} lines  {result['seconds']:>7} s  "
        f"{result['mb_per_second']:>7} MB/s  CPU: {result['mb_per_cpu_second']:>7} MB/s "
        f"{result['lines_per_cpu_second']:>11,} lines/s, {result['cpu_ratio']:>5} times a bare read  "
        f"peak {result['peak_mb']} MB  on disk {result['kept_on_disk_mb']} MB"
    )


if __name__ == "__main__":
    main()
