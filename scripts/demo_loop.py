"""The demo: a small real project in a temporary folder, and the whole loop on it, live, with the scripted agent."""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

EXAMPLE = Path(__file__).resolve().parent.parent / "examples" / "demo"
INTRODUCTION = """\
A project with five stories, real tests, and an agent that plays a script instead of asking a model:

  US-001  passes every check, and its reviewer still finds something
  US-002  is claimed done, but no files changed
  US-003  breaks an existing test
  US-004  hits the usage limit of the account for a few seconds
  US-005  is finished, and then the agent hangs

Ralph relies on none of these claims. It runs the tests itself, in a clean checkout, with and without the change, and
has each story reviewed in a fresh session.
"""
HOST = "https://example.org/"
ATTEMPTS = """\
This time every agent and every check is in a sandbox. Look around in it first: the home folder inside is another one,
the key in ~/.ssh is not there, a file that is written outside the clone is gone with the sandbox, and no host can
be reached. The agent of US-001 tries the same.
"""


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/demo", description=__doc__)
    parser.add_argument("--layouts", action="store_true", help="show the five layouts instead")
    parser.add_argument("--parallel", action="store_true", help="show four workers and a merge queue instead")
    parser.add_argument("--plain", action="store_true", help="print lines instead of the live view")
    parser.add_argument("--keep", action="store_true", help="keep the folder and print its path")
    parser.add_argument("--sandbox", action="store_true", help="insist on a sandbox, and show what it refuses")
    args = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="ralph-demo-"))
    try:
        return demo(folder, plain=args.plain, sandbox=args.sandbox)
    finally:
        if args.keep:
            say(f"kept: {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)


def demo(folder: Path, *, plain: bool, sandbox: bool = False) -> int:
    project = folder / "textkit"
    shutil.copytree(EXAMPLE, project)
    env = environment(folder)
    if sandbox:
        plant(folder, project)
    for command in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-qm", "A text kit with one function"]):
        subprocess.run(["git", *command], cwd=project, env=env, check=True)
    say(INTRODUCTION)
    say("It takes about a minute and a half.")
    begun = time.monotonic()
    if sandbox:
        say(ATTEMPTS)
        outside = folder / "outside"
        for script in ("ls -A ~ ~/.ssh", "cat ~/.ssh/id_ed25519", f"touch {outside} && ls {outside}"):
            ralph(["sandbox", "exec", "--trust", "--sandbox", "--", "sh", "-c", script], project, env)
        show(f"ls {outside}")
        subprocess.run(["ls", str(outside)], env=env, check=False)
        ralph(["sandbox", "exec", "--sandbox", "--", "git", "ls-remote", HOST], project, env)
    options = ["--trust", *(["--sandbox"] if sandbox else [])]
    show(f"ralph run {' '.join(options)}")
    run = [sys.executable, "-m", "ralph", "run", *options, *(["--plain"] if plain else [])]
    code = subprocess.run(run, cwd=project, env=env, check=False).returncode
    for command in (
        ["git", "log", "--oneline", "--reverse"],
        ["git", "status", "--short"],
        ["ralph", "rescue", "list"],
        ["ralph", "stats"],
        ["ralph", "proof", "US-001"],
    ):
        show(" ".join(command))
        real = [sys.executable, "-m", *command] if command[0] == "ralph" else command
        subprocess.run(real, cwd=project, env=env, check=True)
    if sandbox:
        ralph(["sandbox", "log"], project, env)
        reached = [path for path in (folder / "outside", folder / "home" / "planted") if path.exists()]
        say(f"\nOutside the sandbox: {', '.join(map(str, reached)) or 'nothing'} was written.")
        code = code or int(bool(reached))
    say(f"\nexit code {code}, {time.monotonic() - begun:.0f} s. Rejected work is kept: see `ralph rescue list` above.")
    return code


def plant(folder: Path, project: Path) -> None:
    """A key in the home folder of the demo, and an agent that tries to get at it in its first session."""
    key = folder / "home" / ".ssh" / "id_ed25519"
    key.parent.mkdir()
    key.write_text("the private key of the demo\n")
    script = project / "script.yaml"
    text = script.read_text()
    tries = (f"cat {key}", f"touch {folder}/outside ~/planted", f"git ls-remote {HOST}")
    actions = "".join(f"        - run: {command} || true\n" for command in tries)
    first = "        - say: A plain function and a test.\n"
    script.write_text(text.replace(first, first + actions, 1))


def ralph(arguments: list[str], project: Path, env: dict[str, str]) -> None:
    show(shlex.join(["ralph", *arguments]))
    subprocess.run([sys.executable, "-m", "ralph", *arguments], cwd=project, env=env, check=False)


def environment(folder: Path) -> dict[str, str]:
    """The demo uses its own home and state folders, and none of the user's settings."""
    home = folder / "home"
    home.mkdir()
    env = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "RALPH_"))}
    who = {"GIT_AUTHOR_NAME": "You", "GIT_AUTHOR_EMAIL": "you@example.com"}
    who |= {"GIT_COMMITTER_NAME": "You", "GIT_COMMITTER_EMAIL": "you@example.com"}
    return env | who | {"HOME": str(home), "RALPH_STATE_HOME": str(folder / "state"), "PYTHONDONTWRITEBYTECODE": "1"}


def say(text: str) -> None:
    print(text, flush=True)


def show(command: str) -> None:
    bold, plain = ("\x1b[1m", "\x1b[0m") if sys.stdout.isatty() and not os.environ.get("NO_COLOR") else ("", "")
    say(f"\n{bold}$ {command}{plain}")


if __name__ == "__main__":
    sys.exit(main())
