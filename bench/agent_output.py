"""How fast, and in how much memory, the output of an agent is read.

    python bench/agent_output.py                  three kinds of output, 1,000 MB each
    python bench/agent_output.py --mb 200 --kind one-line
    python bench/agent_output.py --json           one JSON object per line

Each kind runs in a fresh process, so that its peak memory is its own. `baseline` starts an agent that prints nothing.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

KINDS = ("baseline", "one-line", "short-lines", "stderr")

# Print `mb` megabytes as fast as possible: one line without an end, or lines of 80 bytes.
AGENT = """
import os, sys
kind, mb = sys.argv[1], int(sys.argv[2])
block = (b"x" * 79 + b"\\n") * 12500 if kind != "one-line" else b"x" * 1_000_000
descriptor = 2 if kind == "stderr" else 1
for _ in range(0 if kind == "baseline" else mb):
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
    from ralph.host.rawlog import RawLog
    from ralph.host.supervise import Command, Limits, supervise

    lines = 0

    def count(_line: bytes, _oversize: bool) -> None:
        nonlocal lines
        lines += 1

    with tempfile.TemporaryDirectory() as folder, RawLog(Path(folder) / "agent.log") as raw:
        argv = (sys.executable, "-S", "-c", AGENT, kind, str(mb))
        command = Command(argv, Path(folder), {})
        begun = time.perf_counter()
        ending = supervise(command, Limits(), on_line=count, raw=raw, is_final=lambda line: line.startswith(b"{"))
        seconds = time.perf_counter() - begun
        kept = sum(part.stat().st_size for part in raw.parts())
    return {
        "kind": kind,
        "how": ending.how.value,
        "code": ending.code,
        "mb": 0 if kind == "baseline" else mb,
        "lines": lines,
        "seconds": round(seconds, 3),
        "mb_per_second": 0 if kind == "baseline" else round(mb / seconds, 1),
        "peak_mb": round(peak_mb(), 1),
        "kept_on_disk_mb": round(kept / 1e6, 1),
    }


def peak_mb() -> float:
    status = Path("/proc/self/status")
    if status.exists():  # getrusage also counts the process we were forked from
        peak = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(peak.split()[1]) / 1024
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 / 1024


def readable(found: dict[str, object]) -> str:
    return (
        f"{found['kind']:>12}  {found['mb']:>6} MB  {found['lines']:>10,} lines  {found['seconds']:>8} s  "
        f"{found['mb_per_second']:>7} MB/s  peak {found['peak_mb']} MB  on disk {found['kept_on_disk_mb']} MB"
    )


if __name__ == "__main__":
    main()
