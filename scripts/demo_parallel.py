"""The demo of `ralph run --parallel`: four workers, a text conflict, and a clean merge that breaks the tests."""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from demo_loop import environment, say, show

EXAMPLE = Path(__file__).resolve().parent.parent / "examples" / "parallel"
INTRODUCTION = """\
A small shop with eight stories, four at a time, each in a clone of its own. The agent plays a script:

  US-001, US-002  change the same line
  US-003          renames a function and all of its callers
  US-004          calls that function by its old name in a new file; its tests pass, in its clone
  US-005 … 008    have nothing to do with each other

Accepted work is merged one story at a time, and the checks run on the merged tree before the branch moves.
"""


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/demo --parallel", description=__doc__)
    parser.add_argument("--plain", action="store_true", help="print lines instead of the live view")
    parser.add_argument("--keep", action="store_true", help="keep the folder and print its path")
    args = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="ralph-demo-"))
    try:
        return demo(folder, plain=args.plain)
    finally:
        if args.keep:
            say(f"kept: {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)


def demo(folder: Path, *, plain: bool) -> int:
    project = folder / "shop"
    shutil.copytree(EXAMPLE, project)
    env = environment(folder)
    for command in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-qm", "A shop"]):
        subprocess.run(["git", *command], cwd=project, env=env, check=True)
    say(INTRODUCTION)
    begun = time.monotonic()
    show("ralph run --parallel 4 --trust")
    run = [sys.executable, "-m", "ralph", "run", "--parallel", "4", "--trust", *(["--plain"] if plain else [])]
    code = subprocess.run(run, cwd=project, env=env, check=False).returncode
    show("git log --oneline --reverse")
    subprocess.run(["git", "log", "--oneline", "--reverse"], cwd=project, env=env, check=True)
    say("\nWhat the journal says about the merge queue:\n")
    for line in merges(events(folder / "state")):
        say(f"  {line}")
    show("python3 -m unittest -q")
    tests = subprocess.run([sys.executable, "-m", "unittest", "-q"], cwd=project, env=env, check=False).returncode
    say(f"\nexit code {code}, {time.monotonic() - begun:.0f} s. The final tree {'fails' if tests else 'passes'}.")
    return code or tests


def events(state: Path) -> Iterator[dict[str, object]]:
    """From the journal of the run. Workers have journals of their own, further down."""
    for journal in state.glob("*/runs/*/events.jsonl"):
        for line in journal.read_text().splitlines():
            yield json.loads(line)["event"]


def merges(found: Iterator[dict[str, object]]) -> Iterator[str]:
    """One line for each story that went through the queue, in order."""
    proved: dict[object, object] = {}
    for event in found:
        if event["type"] == "QueueProved":
            for iteration in event["iterations"]:  # type: ignore[attr-defined]
                proved[iteration] = event["seconds"]
        elif event["type"] == "IterationEnded" and event["kind"] in ("accepted", "returned"):
            number, story = event["iteration"], event["story"]
            how = (
                f"proved on the merged tree in {proved[number]:.1f} s" if number in proved else "the tip had not moved"
            )
            if event["kind"] == "returned":
                how = str(event["headline"])
            yield f"{story}  {event['kind']}: {how}"


if __name__ == "__main__":
    sys.exit(main())
