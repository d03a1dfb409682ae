"""The exam through real runs: what fails becomes a story, what passes stays as a regression test."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ralph.core.events import Noted
from ralph.core.plan import Plan
from ralph.plans.registry import layout
from support.accepted import APPROVES, CODE, IMPLEMENTS, Accepted, write

pytestmark = pytest.mark.usefixtures("git_identity")
LAYOUTS = ("feature", "plan.md", "tasks.json")
FAILS = "tests/test_exam_words.py"
PASSES = "tests/test_exam_numbers.py"
FAILING_TEST = 'import shop\n\n\ndef test_word_of_three():\n    assert shop.triple(shop.double("a")) == "aaaaaa!"\n'
PASSING_TEST = "import shop\n\n\ndef test_six_times():\n    assert shop.triple(shop.double(4)) == 24\n"
FIXED = CODE + '\n\ndef triple(x):\n    return 3 * x + "!" if isinstance(x, str) else 3 * x\n'
EXAMINES = [write(FAILS, FAILING_TEST), write(PASSES, PASSING_TEST), "claim"]
FINDS_NOTHING = [write("tests/test_exam_more.py", PASSING_TEST.replace("six", "other")), "claim"]
FIXES = [write("shop.py", FIXED), "claim"]


def script(made: Accepted, *rounds: list[Any], fix: list[Any] = FIXES) -> dict[str, Any]:
    first = plan_of(made).stories[0].id
    anybody = [{"exam": each, "implement": fix, "review": APPROVES} for each in rounds]
    return {"script": {first: [{"implement": IMPLEMENTS, "review": APPROVES}], "*": anybody}}


def plan_of(made: Accepted) -> Plan:
    return layout(made.ref.layout).parse(made.ref.path.read_bytes(), str(made.ref.path))


def notes(made: Accepted) -> list[str]:
    return [event.text for event in made.events() if isinstance(event, Noted)]


@pytest.mark.defaults
@pytest.mark.parametrize("name", LAYOUTS)
def test_a_failing_test_becomes_a_story_and_the_next_round_ends_the_exam(tmp_path: Path, name: str) -> None:
    made = Accepted(tmp_path, name)
    done = made.run("--exam", **script(made, EXAMINES, FINDS_NOTHING))
    assert done.code == 0, done.err + done.out
    modes = [mode for mode, kind in made.outcomes() if mode != "review" and kind == "accepted"]
    assert modes == ["implement", "exam", "implement", "exam"], made.outcomes()
    added = made.ended()[-2 if name != "tasks.json" else -3]
    assert added.title.startswith("Exam: test_word_of_three fails")
    assert {event.grade for event in made.ended() if event.completes} >= {"proven"}
    assert made.git("show", f"HEAD:{FAILS}") == FAILING_TEST.rstrip()
    assert made.git("show", f"HEAD:{PASSES}") == PASSING_TEST.rstrip()
    assert "test: write end-to-end tests" in made.log()
    assert "the exam found 1 failing test, added as" in done.out
    assert "the exam found no failure: 1 new test passes" in done.out
    assert "exam       the exam found 1 failing test" in made.ask("report").out
    assert "the exam found 1 failing test" in made.ask("log").out
    assert "0 differ" in made.ask("replay").out
