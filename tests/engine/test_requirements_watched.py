"""The page with the requirements: read-only for agents, a person's at any time."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from ralph.core.events import Noted
from ralph.core.verdict import Kind
from support.proven import CODE, Proven, shell, write

RIGHT = write("src/shop.py", CODE + "\n\ndef triple(x):\n    return 3 * x\n")
PAGE = ".ralph/work/prd.md"
TEXT = "# What is wanted\n\nA shop.\n"


def shop(folder: Path, *, ignored: bool = False, stories: int = 1) -> Proven:
    """The same shop with a plan that has such a page."""
    made = Proven(folder)
    review: dict[str, Any] = {"passes": False, "reviewStatus": None, "reviewCount": 0, "reviewFeedback": ""}
    listed = [
        {"id": f"US-{n:03}", "title": f"Story {n}", "description": "One.", "acceptanceCriteria": ["it is there"]}
        | {"priority": n, "notes": "", "dependsOn": []}
        | review
        for n in range(1, stories + 1)
    ]
    plan = {"project": "work", "branchName": "main", "description": "Work.", "verifyCommands": []}
    made.git("rm", "-rq", ".ralph/shop")
    made.write(".ralph/work/tasks.json", json.dumps(plan | {"userStories": listed}, indent=2) + "\n")
    made.write(PAGE, TEXT)
    if ignored:
        made.write(".gitignore", "__pycache__/\n.ralph/*/progress.txt\n.ralph/work/prd.md\n")
    made.git("add", "-A")
    made.git("commit", "-qm", "another plan")
    return made


DOINGS = {
    "edited": shell(f"echo 'and nothing else' >> {PAGE}"),
    "deleted": shell(f"rm {PAGE}"),
    "a link": shell(f"rm {PAGE} && ln -s /dev/null {PAGE}"),
    "a folder": shell(f"rm {PAGE} && mkdir {PAGE} && echo x > {PAGE}/x"),
    "committed": shell(f"echo x > {PAGE} && git add -f {PAGE} && git -c user.name=a -c user.email=a@b commit -qm x"),
}


@pytest.mark.parametrize(
    ("doing", "ignored"), [*((doing, False) for doing in DOINGS), ("edited", True), ("a folder", True)]
)
def test_what_an_agent_makes_of_the_page_is_put_back_and_told(tmp_path: Path, doing: str, ignored: bool) -> None:
    made = shop(tmp_path, ignored=ignored)
    made.run(US_001=[[DOINGS[doing], RIGHT, "claim"]])
    (only,) = made.ended()
    assert only.kind is Kind.ACCEPTED, only
    assert f"restored {PAGE}: agents do not change the rules" in "\n".join(only.notices)
    assert made.read(PAGE) == TEXT
    if not ignored:
        assert made.git("show", f"HEAD:{PAGE}") == TEXT.rstrip()
        assert made.is_clean()


def test_what_it_had_written_can_still_be_read(tmp_path: Path) -> None:
    made = shop(tmp_path)
    made.run(US_001=[[DOINGS["edited"], RIGHT, "claim"]])
    (notice,) = made.ended()[0].notices
    assert Path(notice.rpartition(" is in ")[2]).read_text() == TEXT + "and nothing else\n"


def test_a_persons_change_between_iterations_is_taken_and_told(tmp_path: Path) -> None:
    made = shop(tmp_path, stories=2)
    more = write("src/more.py", "MORE = 1\n")
    process = made.start(US_001=[[RIGHT, {"sleep": 1.5}, "claim"]], US_002=[[more, "claim"]])
    wait_for(made, "IterationStarted")
    made.ask("pause")
    wait_for(made, '"Paused"')
    made.write(PAGE, "# Something else is wanted\n")
    made.ask("resume")
    assert process.wait(60) == 0
    told = [event.text for event in made.events() if isinstance(event, Noted)]
    assert f"{PAGE} was changed outside the run: agents use it as it is now" in told
    assert made.read(PAGE) == "# Something else is wanted\n"


def wait_for(made: Proven, word: str) -> None:
    end = time.monotonic() + 30
    while time.monotonic() < end:
        if any(word in path.read_text() for path in made.state.glob("runs/*/events.jsonl")):
            return
        time.sleep(0.05)
    raise AssertionError(f"{word} never came")
