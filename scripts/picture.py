"""Makes docs/demo.svg: the run of `scripts/demo` as `ralph record` shows it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import demo_loop

TARGET = Path(__file__).resolve().parent.parent / "docs" / "demo.svg"
RUN = (re.compile(r"\b\d{8}-\d{6}-[0-9a-f]{4}\b"), "20260115-213000-5eed")
UNTIL = (re.compile(r"\buntil \d\d:\d\d:\d\d\b"), "until 21:30:19")


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="ralph-picture-") as name:
        folder = Path(name)
        if code := demo_loop.demo(folder, plain=True):
            return code
        env = os.environ | {"HOME": str(folder / "home"), "RALPH_STATE_HOME": str(folder / "state")}
        command = [sys.executable, "-m", "ralph", "record", "--svg", "-"]
        done = subprocess.run(command, cwd=folder / "textkit", env=env, stdout=subprocess.PIPE, text=True, check=True)
    svg = done.stdout
    for pattern, neutral in (RUN, UNTIL):  # else every picture would differ, also where nothing changed
        svg = pattern.sub(neutral, svg)
    TARGET.write_text(svg)
    sys.stdout.write(f"{TARGET}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
