"""The agent of bench/liar.py in plans whose stories collide. For bench/parallel.py.

    python -S colliding_agent.py SEED        in a workspace, with the variables that a loop sets

Before it does what the liar does, it does what its story shares with others (`LIAR_SHARED`, a JSON object):
`lines`: stories that each have a line in src/lines.py, which conflict in the text; `slots`: stories that each take a
number in a file of their own, which do not conflict, but two with the same number break the checks.
"""

import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import liar  # type: ignore[import-not-found]

LINES = "src/lines.py"


def add_line(story: int) -> None:
    """Also resolves a conflict, by keeping the lines of both sides."""
    lines = liar.read(LINES).splitlines() if os.path.exists(LINES) else []
    kept = [line for line in lines if line.startswith("story_")]
    liar.write(LINES, "\n".join(sorted({*kept, f"story_{story} = True"}, key=_number, reverse=True)) + "\n")


def _number(line: str) -> int:
    return int(line.split()[0].removeprefix("story_"))


def take_slot(story: int) -> None:
    """The first number that no other story has taken here."""
    others = [name for name in os.listdir("src") if name.startswith("slot_") and name != f"slot_{story}.py"]
    taken = {liar.read(f"src/{name}").strip() for name in others}
    slot = next(slot for slot in (f"SLOT = {n}" for n in range(1, 99)) if slot not in taken)
    liar.write(f"src/slot_{story}.py", f"{slot}\n")


def main() -> None:
    shared = json.loads(os.environ["LIAR_SHARED"])
    story = int(os.environ["RALPH_STORY"].rpartition("-")[2])
    if story in shared["lines"]:
        add_line(story)
    if story in shared["slots"]:
        take_slot(story)
    liar.main()


if __name__ == "__main__":
    main()
