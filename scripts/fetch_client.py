"""Fetch the real Claude Code client for the tests, into `.venv/client`. It is one program inside a Python package.

If it is not available (no wheel for this system, no package index), a message says so and the tests are skipped.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "requirements" / "client.lock"
FOLDER = ROOT / ".venv" / "client"
STAMP = FOLDER / "stamp"
CLIENT = FOLDER / "claude_agent_sdk" / "_bundled" / "claude"


def main() -> int:
    wanted = LOCK.read_text()
    if STAMP.exists() and STAMP.read_text() == wanted and CLIENT.exists():
        return 0
    print("fetching the real client for the tests (about 160 MB) …", flush=True)
    shutil.rmtree(FOLDER, ignore_errors=True)
    scratch = ROOT / ".venv" / "client-tmp"
    scratch.mkdir(parents=True, exist_ok=True)
    pip = [sys.executable, "-I", "-m", "pip", "--disable-pip-version-check", "--no-cache-dir", "--no-input", "install"]
    only = ["--no-deps", "--only-binary=:all:", "--require-hashes", "--requirement", str(LOCK), "--target", str(FOLDER)]
    misleading = ("PIP_USER", "PIP_PREFIX", "PIP_REQUIRE_VIRTUALENV", "PIP_DRY_RUN", "PIP_CONSTRAINT")
    environment = {name: value for name, value in os.environ.items() if name not in misleading}
    environment["TMPDIR"] = str(scratch)
    if "RUSTUP_HOME" not in environment and not Path("~/.rustup").expanduser().exists():
        # pip asks rustc for its version, and rustup makes its folder in HOME when it has none.
        environment["RUSTUP_HOME"] = str(scratch)
    done = subprocess.run([*pip, "-qq", "--progress-bar=off", *only], env=environment, check=False)
    shutil.rmtree(scratch, ignore_errors=True)
    if done.returncode or not CLIENT.exists():
        print("THE REAL CLIENT COULD NOT BE FETCHED: its tests will be skipped", flush=True)
        return 1
    CLIENT.chmod(0o755)
    STAMP.write_text(wanted)
    return 0


if __name__ == "__main__":
    sys.exit(main())
