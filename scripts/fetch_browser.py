"""Fetch what drives and examines the page behind `ralph serve` in tests: Playwright, into `.venv`, and axe-core.

The browser itself is the system's Chromium. What is not available (no npm, no package for this system, no index) is
said in one line, and its tests are skipped.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

from make_venv import MISLEADING

ROOT = Path(__file__).resolve().parent.parent
WANTED = ROOT / "requirements" / "browser"
FOLDER = ROOT / ".venv" / "browser"
LOCKS = ("playwright.lock", "package-lock.json")
STAMP = FOLDER / "stamp"
SECONDS = 600


def main() -> int:
    wanted = "".join((WANTED / name).read_text() for name in LOCKS)
    if STAMP.exists() and STAMP.read_text() == wanted and importlib.util.find_spec("playwright"):
        return 0
    print("fetching Playwright and axe-core for the tests (about 55 MB) …", flush=True)
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    done = [install_playwright(), install_axe()]
    if not all(done):
        print("NOT EVERYTHING COULD BE FETCHED: tests in a browser will be skipped", flush=True)
        return 1
    STAMP.write_text(wanted)
    return 0


def install_playwright() -> bool:
    pip = [sys.executable, "-I", "-m", "pip", "--disable-pip-version-check", "--no-cache-dir", "--no-input", "install"]
    only = ["-qq", "--no-user", "--no-warn-script-location", "--no-deps", "--only-binary=:all:", "--require-hashes"]
    return run([*pip, *only, "--requirement", str(WANTED / LOCKS[0])])


def install_axe() -> bool:
    """`npm ci` compares the package with the hash in the lock."""
    if (npm := shutil.which("npm")) is None:
        return False
    for name in ("package.json", "package-lock.json"):
        shutil.copyfile(WANTED / name, FOLDER / name)
    return run([npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"])


def run(command: list[str]) -> bool:
    environment = {name: value for name, value in os.environ.items() if name not in MISLEADING}
    environment |= {"TMPDIR": str(FOLDER), "npm_config_cache": str(FOLDER / "cache")}
    if "RUSTUP_HOME" not in environment and not Path("~/.rustup").expanduser().exists():
        # pip asks rustc for its version, and rustup makes its folder in HOME when it has none.
        environment["RUSTUP_HOME"] = str(FOLDER / "rustup")
    try:
        code = subprocess.run(command, cwd=FOLDER, env=environment, timeout=SECONDS, check=False).returncode
    except subprocess.TimeoutExpired:
        code = 1
    shutil.rmtree(FOLDER / "cache", ignore_errors=True)
    return code == 0


if __name__ == "__main__":
    sys.exit(main())
