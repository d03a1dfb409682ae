"""Install Ray for the tests into `.venv`, which does not have it otherwise: it is large, and an extra of its own.

If it is not available (no wheel for this system, no package index), a message says so and the tests are skipped.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from make_venv import MISLEADING

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "requirements" / "ray.lock"
STAMP = ROOT / ".venv" / "ralph-ray-stamp"
SECONDS = 600


def main() -> int:
    wanted = LOCK.read_text()
    if STAMP.exists() and STAMP.read_text() == wanted and importlib.util.find_spec("ray"):
        return 0
    print("installing Ray for the tests (about 285 MB) …", flush=True)
    started = time.monotonic()
    scratch = ROOT / ".venv" / "ray-tmp"
    scratch.mkdir(parents=True, exist_ok=True)
    environment = {name: value for name, value in os.environ.items() if name not in MISLEADING}
    environment["TMPDIR"] = str(scratch)
    if "RUSTUP_HOME" not in environment and not Path("~/.rustup").expanduser().exists():
        # pip asks rustc for its version, and rustup makes its folder in HOME when it has none.
        environment["RUSTUP_HOME"] = str(scratch)
    pip = [sys.executable, "-I", "-m", "pip", "--disable-pip-version-check", "--no-cache-dir", "--no-input", "install"]
    only = ["-qq", "--progress-bar=off", "--no-user", "--no-warn-script-location", "--no-deps", "--only-binary=:all:"]
    try:
        command = [*pip, *only, "--require-hashes", "--requirement", str(LOCK)]
        code = subprocess.run(command, env=environment, timeout=SECONDS, check=False).returncode
    except subprocess.TimeoutExpired:
        code = 1
    shutil.rmtree(scratch, ignore_errors=True)
    if code:
        print("RAY COULD NOT BE INSTALLED: its tests will be skipped", flush=True)
        return 1
    STAMP.write_text(wanted)
    print(f"installed in {time.monotonic() - started:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
