"""Fetch other real clients for the tests, Codex and goose, and srt, into `.venv/clients`. `npm` installs them.

If they are not available (no npm, no registry, no package for this system), a message says so and the tests are
skipped.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WANTED = ROOT / "requirements" / "clients"
FOLDER = ROOT / ".venv" / "clients"
STAMP = FOLDER / "stamp"
SECONDS = 600


def main() -> int:
    wanted = (WANTED / "package-lock.json").read_text()
    if STAMP.exists() and STAMP.read_text() == wanted:
        return 0
    npm = shutil.which("npm")
    if npm is None:
        print("npm is not installed: the tests of other clients will be skipped", flush=True)
        return 1
    print("fetching other clients for the tests (about 300 MB) …", flush=True)
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copyfile(WANTED / name, FOLDER / name)
    quiet = ("--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
    environment = {**os.environ, "npm_config_cache": str(FOLDER / "cache")}
    try:
        command = [npm, "ci", *quiet]
        code = subprocess.run(command, cwd=FOLDER, env=environment, timeout=SECONDS, check=False).returncode
    except subprocess.TimeoutExpired:
        code = 1
    shutil.rmtree(FOLDER / "cache", ignore_errors=True)
    if code:
        print("THE OTHER CLIENTS COULD NOT BE FETCHED: their tests will be skipped", flush=True)
        return 1
    STAMP.write_text(wanted)
    return 0


if __name__ == "__main__":
    sys.exit(main())
