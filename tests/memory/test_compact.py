"""A scripted agent summarises what was learned; whatever it does, nothing is lost and nothing is half written."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ralph.core.learning import in_log, in_notes
from support.cli import Completed, ralph_here
from support.planners import Project, story

NOTES = """# Learnings

- Prices are in cents. (US-001, 2026-01-01, 1a2b3c4d5)
- Prices are stored in cents, as integers.
- Redis has to run before the tests. (US-002, 2026-01-02, not accepted)
- Redis has to be flushed between the tests. (US-002, 2026-01-03)
- The weather was fine.
"""
GOOD = {
    "learnings": [
        {"text": "Prices are integers, in cents", "from": [1, 2]},
        {"text": "Redis runs, flushed between tests", "from": [3, 4]},
    ],
    "dropped": [{"number": 5, "why": "it is no fact about the code"}],
}


def said(answer: Any) -> dict[str, str]:
    return {"say": answer if isinstance(answer, str) else json.dumps(answer)}


class Shop(Project):
    def __init__(self, folder: Path, layout: str = "steps") -> None:
        super().__init__(folder)
        ralph_here("init", "shop", "--layout", layout, cwd=self.root)
        self.memory = self.root / (".ralph/learnings.md" if layout == "steps" else ".ralph/shop/progress.txt")
        self.memory.write_text(NOTES)
        self.commit()

    def compact(self, *answers: Any, flags: tuple[str, ...] = ("--force",)) -> Completed:
        sessions = [answer if isinstance(answer, list) else [said(answer)] for answer in answers]
        env = self.plays(*sessions, kind="compact")
        return ralph_here("compact", "--trust", *flags, cwd=self.root, env=env)

    def archives(self) -> list[Path]:
        return sorted(self.memory.parent.glob(f"{self.memory.stem}.2*"))


def test_a_summary_takes_the_place_of_the_notes_and_the_original_stays_beside_it(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    done = shop.compact(GOOD)
    assert done.code == 0, done.err
    (archive,) = shop.archives()
    assert archive.read_text() == NOTES
    assert "left out: The weather was fine." in done.out
    assert [(one.text, one.story, one.date, one.accepted) for one in in_notes(shop.memory.read_text())] == [
        ("Prices are integers, in cents", "", "2026-01-01", True),
        ("Redis runs, flushed between tests", "US-002", "2026-01-03", False),
    ]
    assert "1. Prices are in cents. (US-001, 2026-01-01, 1a2b3c4d5)" in shop.prompt(1)


def test_a_broken_summary_is_told_once_and_then_used_or_given_up(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    broken = {"learnings": [{"text": "Prices are in cents", "from": [1, 2, 3, 4]}]}
    assert shop.compact(broken, GOOD).code == 0
    assert "Your last answer was rejected" in shop.prompt(2)
    shop.memory.write_text(NOTES)
    before = shop.files()
    done = shop.compact(broken, "I have summarised everything.")
    assert done.code == 65
    assert "still invalid" in done.err
    assert shop.files() == before


def test_what_the_agent_changes_in_the_tree_is_put_back(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    done = shop.compact([{"write": {"path": "src/app.py", "text": "gone"}}, said(GOOD)])
    assert done.code == 0
    assert "src/app.py; restored" in done.err
    assert (shop.root / "src/app.py").read_text() == "print('hello')\n"


def test_small_notes_are_left_alone_and_no_agent_is_started(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    done = shop.compact(GOOD, flags=())
    assert "less than 6,000 (memory.compact_tokens)" in done.out
    assert shop.sessions() == 0
    assert shop.memory.read_text() == NOTES


def test_without_an_agent_only_exact_duplicates_go(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    twice = NOTES + "- The weather was fine.\n- the weather was fine\n"
    shop.memory.write_text(twice)
    done = shop.compact(flags=("--no-agent", "--json"))
    assert (done.json["before"], done.json["after"]) == (7, 6)
    assert shop.memory.read_text() == NOTES + "- the weather was fine\n"
    assert shop.archives()[0].read_text() == twice
    assert shop.compact(flags=("--no-agent",)).out == "Nothing to change.\n"
    assert shop.sessions() == 0


def test_a_log_keeps_what_was_learned_as_its_patterns_and_its_entries_in_an_archive(tmp_path: Path) -> None:
    shop = Shop(tmp_path, "tasks.json")
    entry = "\n## Iteration 1 (implement): US-001, accepted\nStory: US-001 - One\nLearnings:\n- Cents only\n---\n"
    text = f"# Ralph Progress Log\nStarted: then\n\n## Codebase Patterns\n- Use the pool\n\n---\n{entry * 400}"
    shop.memory.write_text(text)
    done = shop.compact(flags=())
    assert done.code == 0, done.err
    assert shop.sessions() == 0, "what fits into a prompt needs no summary"
    assert shop.archives()[0].read_text() == text
    new = shop.memory.read_text()
    assert new.startswith("# Ralph Progress Log\nStarted: then\n\n## Codebase Patterns\n")
    assert [one.text for one in in_log(new)] == ["Use the pool", "Cents only"]
    assert all(one.curated for one in in_log(new))
    assert len(new) < 400


def test_two_summaries_on_one_day_keep_both_originals(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    assert shop.compact(GOOD).code == 0
    shorter = {"learnings": [{"text": "Cents; Redis flushed", "from": [1, 2]}]}
    assert shop.compact(shorter).code == 0
    assert len(shop.archives()) == 2
    assert [one.text for one in in_notes(shop.memory.read_text())] == ["Cents; Redis flushed"]


def test_an_agent_of_a_run_may_not_do_it(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    done = ralph_here("compact", "--force", cwd=shop.root, env={"RALPH_LOOP": "1"})
    assert done.code != 0
    assert shop.memory.read_text() == NOTES


def test_adding_work_summarises_what_has_grown_large(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    answer = {"stories": [story("a")]}
    told = [{"prompt": str(tmp_path / "prompt-9.txt")}, said(GOOD)]
    env = shop.plays(said(answer), kind="add", compact=[told])
    small = ralph_here("add", "more", "--no-input", "--trust", cwd=shop.root, env=env)
    assert small.code == 0, small.err
    assert shop.archives() == []
    large = ralph_here(
        "add", "more", "--no-input", "--trust", cwd=shop.root, env=env | {"RALPH_MEMORY_COMPACT_TOKENS": "9"}
    )
    assert large.code == 0, large.err
    assert "the original is" in large.err
    assert shop.archives()[0].read_text() == NOTES
