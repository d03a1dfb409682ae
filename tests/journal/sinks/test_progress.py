from __future__ import annotations

from pathlib import Path

import pytest

from ralph.core.evidence import CheckResult
from ralph.core.plan import Mode, State
from ralph.core.verdict import Kind
from ralph.journal.sinks.progress import EVIDENCE, FEATURE, SECTIONS, TASKS, Progress
from ralph.journal.sinks.sink import Sinks
from ralph.journal.sinks.workspace_files import WorkspaceFiles
from support.told_runs import FAILED, PASSED, ToldRun, seen

FORMATS = {"prd": SECTIONS, "tasks": TASKS, "feature": FEATURE, "evidence": EVIDENCE}
RESCUE = "refs/ralph/rescue/r/1"


class Told:
    """A run that is written into one progress file."""

    def __init__(self, folder: Path, format: str) -> None:
        self.path = folder / "workspace" / "progress"
        self.path.parent.mkdir(parents=True)
        self._format = format
        self.run = ToldRun(folder / "state" / "events.jsonl", self.sinks())
        self.run.start(seen())

    def sinks(self) -> Sinks:
        files = WorkspaceFiles(self.path.parent)
        return Sinks(files, [Progress(files, self.path, "shop", FORMATS[self._format])])

    @property
    def text(self) -> str:
        return self.path.read_text()


def test_a_prd_log_has_a_section_for_each_iteration(tmp_path: Path) -> None:
    told = Told(tmp_path, "prd")
    told.run.iterate(1, Kind.REJECTED, rescue=RESCUE, files=("cart.py",), notices=("the plan was put back",))
    told.run.iterate(2, files=("cart.py", "tests/test_cart.py"))
    assert (
        told.text
        == """# Progress: shop

Started: 2023-11-14T22:13:20Z

## FAILED: iteration 1, US-001

- Story: Add a cart
- When: 2023-11-14T22:13:31Z, run 20231114-221320-ab12 (implement, attempt 1, 1m 05s)
- Verdict: rejected: check 'tests' failed with exit code 1
- Check: pytest -q: failed (exit 1)
- File: cart.py
- Note: the plan was put back
- Rolled back; the work is kept in refs/ralph/rescue/r/1

## SUCCESS: iteration 2, US-001

- Story: Add a cart
- When: 2023-11-14T22:13:42Z, run 20231114-221320-ab12 (implement, attempt 1, 1m 05s)
- Verdict: accepted: done
- Check: pytest -q: passed (exit 0)
- File: cart.py
- File: tests/test_cart.py
- Commit: abc123
"""
    )


@pytest.mark.parametrize(
    ("kind", "word"),
    [
        (Kind.TIMED_OUT, "TIMEOUT"),
        (Kind.CRASHED, "FAILED"),
        (Kind.LIMIT, "LIMIT"),
        (Kind.INTERRUPTED, "INTERRUPTED"),
        (Kind.PARTIAL, "PARTIAL"),
    ],
)
def test_a_prd_log_names_every_ending(kind: Kind, word: str, tmp_path: Path) -> None:
    told = Told(tmp_path, "prd")
    told.run.iterate(1, kind)
    assert f"\n## {word}: iteration 1, US-001\n" in told.text


def test_a_tasks_log_has_the_mode_in_each_title_and_comes_after_the_curated_part(tmp_path: Path) -> None:
    told = Told(tmp_path, "tasks")
    curated = "# Ralph Progress Log\nPRD: shop\n\n## Codebase Patterns\n- use pathlib\n\n---\n"
    told.path.write_text(curated)
    told.run.iterate(1, Kind.REJECTED, mode=Mode.FIX, rescue=RESCUE, files=("cart.py",))
    told.run.iterate(2, mode=Mode.REVIEW, headline="approved")
    assert told.text == (
        curated
        + """
## Iteration 1 (review-fix): US-001, rejected
Date: 2023-11-14T22:13:31Z
Run: 20231114-221320-ab12
Story: US-001 - Add a cart
Verdict: check 'tests' failed with exit code 1
Files changed:
- cart.py
Checks:
- pytest -q: failed (exit 1)
Rescue: refs/ralph/rescue/r/1
---

## Iteration 2 (review): US-001, accepted
Date: 2023-11-14T22:13:42Z
Run: 20231114-221320-ab12
Story: US-001 - Add a cart
Verdict: approved
Checks:
- pytest -q: passed (exit 0)
Commit: abc123
---
"""
    )


def test_a_feature_log_is_written_field_by_field(tmp_path: Path) -> None:
    told = Told(tmp_path, "feature")
    told.run.iterate(1, Kind.REJECTED, rescue=RESCUE, files=("cart.py",), notices=("story US-002 was put back",))
    told.run.iterate(2, files=("cart.py", "tests/test_cart.py"))
    assert (
        told.text
        == """# Progress Log: shop
# Started: 2023-11-14T22:13:20Z

---
Iteration: 1
Date: 2023-11-14T22:13:31Z
Story: US-001 - Add a cart
Status: in-progress
Files Changed:
  - cart.py
Tests Added:
Learnings:
  - loop: check 'tests' failed with exit code 1
  - loop: story US-002 was put back
  - loop: the attempt was rolled back; its work is kept in refs/ralph/rescue/r/1
Commit: none

---
Iteration: 2
Date: 2023-11-14T22:13:42Z
Story: US-001 - Add a cart
Status: complete
Files Changed:
  - cart.py
  - tests/test_cart.py
Tests Added:
  - tests/test_cart.py
Learnings:
Commit: abc123
"""
    )


@pytest.mark.parametrize(
    ("kind", "fields", "status"),
    [
        (Kind.ACCEPTED, {}, "complete"),
        (Kind.ACCEPTED, {"completes": False, "headline": "ready for review"}, "in-progress"),
        (Kind.PARTIAL, {}, "in-progress"),
        (Kind.LIMIT, {}, "in-progress"),
        (Kind.BLOCKED, {"story_state": State.BLOCKED}, "blocked"),
        (Kind.REJECTED, {"story_state": State.FAILED}, "blocked"),
    ],
)
def test_a_feature_log_has_three_statuses(kind: Kind, fields: dict[str, object], status: str, tmp_path: Path) -> None:
    told = Told(tmp_path, "feature")
    told.run.iterate(1, kind, **fields)
    assert f"\nStatus: {status}\n" in told.text


@pytest.mark.parametrize(
    "path",
    [
        "tests/unit/cart.py",
        "test_cart.py",
        "pkg/cart_test.go",
        "src/cart.test.tsx",
        "src/cart.spec.js",
        "src/__tests__/cart.js",
        "src/test/java/CartTest.java",
        "spec/cart_spec.rb",
        "cart.bats",
    ],
)
def test_test_files_are_known_by_their_names(path: str, tmp_path: Path) -> None:
    told = Told(tmp_path, "feature")
    told.run.iterate(1, files=("src/contest.py", "latest.py", path, "docs/testing.md", "inspector.py"))
    assert f"Tests Added:\n  - {path}\nLearnings:" in told.text


def test_an_evidence_log_has_finished_steps_only(tmp_path: Path) -> None:
    told = Told(tmp_path, "evidence")
    told.run.iterate(1, Kind.REJECTED, story="1.1")
    told.run.iterate(2, Kind.PARTIAL, story="1.1")
    lint = CheckResult("lint", "ruff check", False, 1, required=False)
    told.run.begin(3, "1.1")
    told.run.judge(3, Kind.ACCEPTED, PASSED, lint)
    told.run.end(3, story="1.1")
    told.run.begin(4, "1.2")
    told.run.judge(4)
    told.run.end(4, story="1.2", title="Look again", proven=False, commit="")
    assert (
        told.text
        == """# Progress: shop

Started: 2023-11-14T22:13:20Z

## 1.1 Add a cart

- pytest -q: passed (exit 0)
- ruff check: failed (exit 1, allowed to fail)
- commit abc123
- 2023-11-14T22:13:53Z, run 20231114-221320-ab12, iteration 3

## 1.2 Look again

- no check has proven this step
- nothing was committed
- 2023-11-14T22:14:03Z, run 20231114-221320-ab12, iteration 4
"""
    )


@pytest.mark.parametrize("format", FORMATS)
def test_the_log_is_there_from_the_start_of_the_run(format: str, tmp_path: Path) -> None:
    told = Told(tmp_path, format)
    before = told.text
    assert "2023-11-14T22:13:20Z" in before
    told.run.iterate(1)
    assert told.text.startswith(before)


@pytest.mark.parametrize("format", FORMATS)
def test_setting_up_has_an_entry_of_its_own(format: str, tmp_path: Path) -> None:
    told = Told(tmp_path, format)
    told.run.iterate(1, story="", title="", mode=Mode.SETUP)
    assert "setup" in told.text
    assert "set up the project" in told.text


@pytest.mark.parametrize("format", FORMATS)
def test_nothing_is_written_before_the_iteration_is_final(format: str, tmp_path: Path) -> None:
    told = Told(tmp_path, format)
    before = told.text
    told.run.begin()
    told.run.judge(1, Kind.ACCEPTED, PASSED)
    assert told.text == before


@pytest.mark.parametrize("format", FORMATS)
def test_what_an_agent_names_cannot_write_lines_of_its_own(format: str, tmp_path: Path) -> None:
    evil = "\x1b[2J\x1b]0;owned\x07x\n---\nStatus: complete\r\n## SUCCESS: iteration 99\u202e\n- Commit: fake"
    texts: list[str] = []
    for name in ("harmless", evil):
        told = Told(tmp_path / str(len(texts)), format)
        told.run.begin(1, name, name)
        told.run.judge(1, Kind.ACCEPTED, CheckResult(name, name, False, 1, tail=name))
        told.run.end(1, story=name, title=name, headline=name, rescue=name, commit=name, notices=(name,), files=(name,))
        texts.append(told.text)
    assert len(texts[0].splitlines()) == len(texts[1].splitlines())
    assert not set("\x1b\x07\r\u202e") & set(texts[1])


@pytest.mark.parametrize("format", FORMATS)
def test_a_run_that_was_killed_gets_each_entry_once(format: str, tmp_path: Path) -> None:
    """Killed after the record and before, or after, the entry; then closed by the next run."""
    told = Told(tmp_path, format)
    told.run.iterate(1)
    before = told.text
    told.run.iterate(2, notices=("the last",))
    whole = told.text
    told.sinks().catch_up(told.run.records)
    assert told.text == whole
    told.path.write_text(before)
    told.sinks().catch_up(told.run.records)
    assert told.text == whole


@pytest.mark.parametrize("format", FORMATS)
def test_entries_that_somebody_deleted_do_not_come_back(format: str, tmp_path: Path) -> None:
    told = Told(tmp_path, format)
    told.run.iterate(1)
    told.run.begin(2)
    told.path.write_text("curated\n")
    sinks = told.sinks()
    sinks.catch_up(told.run.records)
    assert told.text == "curated\n"


def test_a_check_without_an_end_says_so(tmp_path: Path) -> None:
    told = Told(tmp_path, "tasks")
    told.run.begin()
    late = CheckResult("slow", "make slow", False, None, 600, timed_out=True)
    told.run.judge(1, Kind.REJECTED, FAILED, late, CheckResult("odd", "odd", False))
    told.run.end(1, Kind.REJECTED)
    assert "- make slow: failed (timed out)\n- odd: failed (no exit code)\n" in told.text
