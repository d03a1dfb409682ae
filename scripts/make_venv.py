"""Make `.venv` from requirements/dev.lock when it is missing or out of date. Standard library only.

A stamp inside `.venv` says what it was made from. It is written last, so an interrupted set-up never counts as ready.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
STAMP = VENV / "ralph-stamp"
LOCK = ROOT / "requirements" / "dev.lock"

# Settings of pip that would put the packages somewhere else, or others in their place.
MISLEADING = (
    "PIP_CONSTRAINT",
    "PIP_DRY_RUN",
    "PIP_NO_BINARY",
    "PIP_NO_BUILD_ISOLATION",
    "PIP_PREFIX",
    "PIP_PYTHON",
    "PIP_REQUIREMENT",
    "PIP_REQUIRE_VIRTUALENV",
    "PIP_ROOT",
    "PIP_TARGET",
    "PIP_USER",
)


def main(arguments: list[str]) -> int:
    if "--is-ready" in arguments:
        return 0 if is_ready() else 1
    if sys.prefix != sys.base_prefix:
        # Called from an activated environment, perhaps the very one to be replaced.
        base = getattr(sys, "_base_executable", "")
        os.execv(base, [base, "-I", __file__, *arguments])
    with alone():
        if is_ready():
            return 0
        try:
            build()
        except subprocess.CalledProcessError as error:
            say(f"error: setting up .venv failed: {' '.join(map(str, error.cmd))}")
            say("  pip takes the packages from the index that your pip is configured for; it must be reachable.")
            return 1
        except OSError as error:
            say(f"error: setting up .venv failed: {error}")
            return 1
    return 0


def is_ready() -> bool:
    try:
        return STAMP.read_text() == fingerprint() and (VENV / "bin" / "python").exists()
    except OSError:
        return False


def fingerprint() -> str:
    """What an environment depends on. The place is in it because an environment cannot be moved."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    facts = {
        "lock": LOCK.read_text(),
        "project": [project["project"], project["build-system"], project["tool"]["hatch"]],
        "version": (ROOT / "src" / "ralph" / "__init__.py").read_text(),
        "recipe": Path(__file__).read_text(),
        "python": [sys.version, sys.base_prefix],
        "place": str(ROOT),
    }
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest() + "\n"


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """Lock this clone against other set-ups and test runs. The lock ends with the process that holds it."""
    descriptor = os.open(ROOT, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("waiting for another scripts/test or scripts/demo in this clone …")
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def build() -> None:
    started = time.monotonic()
    say(f"setting up {VENV} with Python {sys.version.split()[0]} …")
    if VENV.is_symlink():
        VENV.unlink()
    elif VENV.exists():
        shutil.rmtree(VENV)
    scratch = VENV / "tmp"
    environment = {name: value for name, value in os.environ.items() if name not in MISLEADING}
    environment["TMPDIR"] = str(scratch)
    if "RUSTUP_HOME" not in environment and not Path("~/.rustup").expanduser().exists():
        # pip asks rustc for its version, and rustup makes its folder in HOME when it has none.
        environment["RUSTUP_HOME"] = str(scratch)

    scratch.mkdir(parents=True)
    subprocess.run([sys.executable, "-I", "-m", "venv", VENV], check=True, env=environment)
    pip = [f"{VENV}/bin/python", "-I", "-m", "pip", "--disable-pip-version-check", "--no-cache-dir", "--no-input"]
    install = [*pip, "install", "-qq", "--progress-bar=off", "--no-user", "--no-warn-script-location", "--no-deps"]
    subprocess.run([*install, "--require-hashes", "--requirement", str(LOCK)], check=True, env=environment)
    subprocess.run([*install, "--no-build-isolation", "--editable", str(ROOT)], check=True, env=environment)
    shutil.rmtree(scratch)

    STAMP.write_text(fingerprint())
    say(f"set up in {time.monotonic() - started:.0f} s")


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
