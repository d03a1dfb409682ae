"""Fetch the projects of bench/real_projects.py, into `.venv/projects`: archives at pinned versions, compared with their
hashes, and the wheels that their virtual environments need.

    scripts/fetch_projects.py            all of them
    scripts/fetch_projects.py NAME …     these, by the name of their file in bench/real_projects

pip, npm and apt fetch them. What is not available is said in one line, and its tests are skipped.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

from make_venv import MISLEADING

ROOT = Path(__file__).resolve().parent.parent
PROJECTS = ROOT / "bench" / "real_projects"
LOCK = ROOT / "requirements" / "projects.lock"
FOLDER = ROOT / ".venv" / "projects"
WHEELS = FOLDER / "wheels"
SECONDS = 300
_PIP = (sys.executable, "-I", "-m", "pip", "--disable-pip-version-check", "--no-input", "-qq", "download")
_WHEELS = (*_PIP, "--no-deps", "--only-binary=:all:", "--require-hashes", "--dest", str(WHEELS), "-r", str(LOCK))


def main(arguments: list[str]) -> int:
    known = {path.stem: path for path in sorted(PROJECTS.glob("*.toml"))}
    if unknown := [name for name in arguments if name not in known]:
        print(f"error: unknown project {unknown[0]}; one of {', '.join(known)}", file=sys.stderr)
        return 64
    names = arguments or list(known)
    missing = [name for name in names if not fetch(tomllib.loads(known[name].read_text()))]
    if missing:
        print(f"NOT FETCHED: {', '.join(missing)}", flush=True)
    return 1 if missing else 0


def fetch(project: dict[str, Any]) -> bool:
    FOLDER.mkdir(parents=True, exist_ok=True)
    if any("$WHEELS" in command for command in project["prepare"]) and not _has_wheels():
        return False
    if is_there(project):
        return True
    print(f"fetching {project['package']} {project['version']} …", flush=True)
    package, version = project["package"], project["version"]
    command = {
        "pypi": [*_PIP, "--no-deps", f"--no-binary={package}", "--dest", str(FOLDER), f"{package}=={version}"],
        "npm": ["npm", "pack", "--silent", f"{package}@{version}"],
        "debian": ["apt-get", "-o", "APT::Sandbox::User=root", "-qq", "download", f"{package}={version}"],
    }[project["kind"]]
    if not run(command):
        return False
    if not is_there(project):
        print(f"{project['archive']} has another hash than expected", flush=True)
        (FOLDER / project["archive"]).unlink(missing_ok=True)
        return False
    return True


def is_there(project: dict[str, Any]) -> bool:
    archive = FOLDER / str(project["archive"])
    return archive.is_file() and hashlib.sha256(archive.read_bytes()).hexdigest() == project["sha256"]


def _has_wheels() -> bool:
    stamp = WHEELS / "stamp"
    if stamp.exists() and stamp.read_text() == LOCK.read_text():
        return True
    if not run([*_WHEELS]):
        return False
    stamp.write_text(LOCK.read_text())
    return True


def run(command: list[str]) -> bool:
    environment = {name: value for name, value in os.environ.items() if name not in MISLEADING}
    try:
        done = subprocess.run(
            command, cwd=FOLDER, env=environment, timeout=SECONDS, check=False, stdout=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
