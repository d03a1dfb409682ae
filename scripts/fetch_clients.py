"""Fetch other real clients for the tests, into `.venv/clients`.

    scripts/fetch_clients.py             Codex, goose and srt, for the tests of the sandbox, at locked versions
    scripts/fetch_clients.py NAME …      these agents' clients, each in a folder of its own; --all: all of them

`npm` installs them, and pip those that are Python packages. What is not available (no npm, no registry, no package for
this system) is said in one line, and its tests are skipped.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import venv
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
WANTED = ROOT / "requirements" / "clients"
FOLDER = ROOT / ".venv" / "clients"
STAMP = FOLDER / "stamp"
AGENTS = ROOT / ".venv" / "agents"
SECONDS = 900
_QUIET = ("--no-audit", "--no-fund", "--loglevel=error")


class Client(NamedTuple):
    packages: tuple[str, ...]
    program: str
    """Relative to its folder."""
    is_python: bool = False
    needs_node: bool = False
    """It needs a newer Node than many systems have: one is installed beside it, and a script starts it with that."""


def _npm(name: str, *packages: str) -> Client:
    return Client(packages, f"node_modules/.bin/{name}")


# The package `@aaif/goose` brings a version whose hooks deny nothing.
_ARCHITECTURES = {"x86_64": "x64", "aarch64": "arm64"}
_GOOSE = f"goose-binary-{sys.platform}-{_ARCHITECTURES.get(platform.machine(), platform.machine())}"

CLIENTS = {
    "aider": Client(("aider-chat==0.86.2",), "bin/aider", is_python=True),
    "cline": _npm("cline", "cline@3.0.65"),
    "codex": _npm("codex", "@openai/codex@0.166.0"),
    "copilot": _npm("copilot", "@github/copilot@1.0.102"),
    "droid": _npm("droid", "droid@0.215.0"),
    "gemini": _npm("gemini", "@google/gemini-cli@0.61.0"),
    "goose": _npm(_GOOSE, f"@aaif/{_GOOSE}@1.52.0"),
    "opencode": _npm("opencode", "opencode-ai@1.18.33"),
    "pi": _npm("pi", "@earendil-works/pi-coding-agent@0.74.2"),
    "qwen": Client(("@qwen-code/qwen-code@0.24.4", "node@22"), "qwen", needs_node=True),
}


def program_of(name: str) -> Path:
    """Where the client of an agent is, once it is fetched."""
    return AGENTS / name / CLIENTS[name].program


def main(arguments: list[str]) -> int:
    if not arguments:
        return fetch_for_sandbox()
    names = list(CLIENTS) if arguments == ["--all"] else arguments
    if unknown := [name for name in names if name not in CLIENTS]:
        print(f"error: unknown client {unknown[0]}; one of {', '.join(CLIENTS)}", file=sys.stderr)
        return 64
    return max([fetch(name) for name in names])


def fetch(name: str) -> int:
    client, folder = CLIENTS[name], AGENTS / name
    stamp, wanted = folder / "stamp", " ".join(client.packages)
    if stamp.exists() and stamp.read_text() == wanted:
        return 0
    print(f"fetching {wanted} …", flush=True)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    if client.is_python:
        venv.create(folder, with_pip=True)
        pip = [str(folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "install", "-q"]
        done = _run([*pip, *client.packages], folder)
    elif npm := shutil.which("npm"):
        (folder / "package.json").write_text('{"private": true}\n')
        done = _run([npm, "install", *_QUIET, *client.packages], folder)
        if client.needs_node:
            inside = folder / "node_modules" / ".bin"
            (folder / name).write_text(f'#!/bin/sh\nexec "{inside}/node" "{inside}/{name}" "$@"\n')
            (folder / name).chmod(0o755)
    else:
        done = False
    if not done or not program_of(name).exists():
        print(f"{name.upper()} COULD NOT BE FETCHED: its tests will be skipped", flush=True)
        return 1
    stamp.write_text(wanted)
    return 0


def _run(command: list[str], folder: Path) -> bool:
    environment = {**os.environ, "npm_config_cache": str(folder / "cache")}
    try:
        code = subprocess.run(command, cwd=folder, env=environment, timeout=SECONDS, check=False).returncode
    except subprocess.TimeoutExpired:
        code = 1
    shutil.rmtree(folder / "cache", ignore_errors=True)
    return code == 0


def fetch_for_sandbox() -> int:
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
    if not _run([npm, "ci", "--ignore-scripts", *_QUIET], FOLDER):
        print("THE OTHER CLIENTS COULD NOT BE FETCHED: their tests will be skipped", flush=True)
        return 1
    STAMP.write_text(wanted)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
