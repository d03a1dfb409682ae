"""Fetch what Ralph needs into `.venv/wheels`, so that tests can install it from its wheel without a package index.

The wheels are those of the dependencies and of the small extras, and of what installs them. The large extras are only
resolved: `.venv/wheels/EXTRA.txt` says to what. If there is no package index, a message says so and the tests are
skipped.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

from make_venv import MISLEADING

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / ".venv" / "wheels"
STAMP = FOLDER / "stamp"
LOCK = ROOT / "requirements" / "dev.lock"
INSTALLERS = ("hatchling", "pip", "setuptools", "uv", "wheel")
LARGE = ("claude", "ray")
SECONDS = 600


def main() -> int:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wanted = f"{project['project']}{project['build-system']}{LOCK.read_text()}{Path(__file__).read_text()}"
    if STAMP.exists() and STAMP.read_text() == wanted:
        return 0
    print("fetching the wheels that the tests install (about 40 MB) …", flush=True)
    shutil.rmtree(FOLDER, ignore_errors=True)
    scratch = FOLDER / "tmp"
    scratch.mkdir(parents=True)
    extras = project["project"]["optional-dependencies"]
    small = [name for extra in extras if extra not in (*LARGE, "all") for name in extras[extra]]
    needed = [*project["project"]["dependencies"], *project["build-system"]["requires"], *small, *INSTALLERS]
    environment = {name: value for name, value in os.environ.items() if name not in MISLEADING}
    environment |= {"TMPDIR": str(scratch), "RUSTUP_HOME": str(scratch), "UV_CACHE_DIR": str(scratch / "uv")}
    pip = [sys.executable, "-I", "-m", "pip", "--disable-pip-version-check", "--no-cache-dir", "--no-input"]
    uv = [f"{ROOT}/.venv/bin/uv", "pip", "compile", "--quiet", "--no-header", "--no-annotate"]
    try:
        download = [*pip, "download", "-qq", "--progress-bar=off", "--only-binary=:all:", "--dest", str(FOLDER)]
        subprocess.run(
            [*download, "--constraint", str(_pins(scratch)), *needed], env=environment, timeout=SECONDS, check=True
        )
        for extra in extras:
            into = ["--extra", extra, "--output-file", str(FOLDER / f"{extra}.txt"), str(ROOT / "pyproject.toml")]
            subprocess.run([*uv, *into], env=environment, timeout=SECONDS, check=True)
    except (subprocess.SubprocessError, OSError) as error:
        print(f"THE WHEELS COULD NOT BE FETCHED ({error}): the tests of installing will be skipped", flush=True)
        return 1
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    STAMP.write_text(wanted)
    return 0


def _pins(folder: Path) -> Path:
    """The lock without its hashes: what it does not pin is free."""
    lines = [line.split("\\")[0].strip() for line in LOCK.read_text().splitlines() if line[:1].isalnum()]
    path = folder / "pins.txt"
    path.write_text("\n".join(lines) + "\n")
    return path


if __name__ == "__main__":
    sys.exit(main())
