"""The wheel and the sdist of this clone, built once for all tests of a session, whatever process runs them."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EPOCH = "1700000000"


def build(source: Path, out: Path, umask: int = 0o022) -> Path:
    """As a release does: the wheel from the sdist, with what is installed here."""
    call = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(source)]
    env = {**os.environ, "SOURCE_DATE_EPOCH": EPOCH}
    subprocess.run(call, env=env, umask=umask, check=True, capture_output=True)
    return out


def dist(factory: pytest.TempPathFactory) -> Path:
    base = factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder = shared / "dist"
    with (shared / "dist.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        return folder if folder.exists() else build(ROOT, shared / "building").rename(folder)


def wheel(factory: pytest.TempPathFactory) -> Path:
    return next(dist(factory).glob("*.whl"))
