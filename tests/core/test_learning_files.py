"""Learnings are found in files that agents, people and the loop have written, and nothing else is."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ralph.core.learning import in_log, in_notes, with_pattern

NOTES = """\
# Learnings

What one iteration found out and the next ones should know.

## Tests
- Redis has to run. (US-001, 2026-01-02, 1a2b3c4d5)
- A long one
  that goes on
  - and has a point of its own
* (placeholder)
1. Numbered

A paragraph is one, too,
over two lines.
<!-- - not this -->
"""
LOG = """\
# Ralph Progress Log
Started: 2026-01-01

## Codebase Patterns
- (what the next iterations should know about this code base)
- Use the pool

More words of a person.
- Another pattern

---

## Iteration 1 (implement): US-001, rejected
Date: 2026-01-02T03:04:05Z
Story: US-001 - Add a cart
Files changed:
- cart.py
Learnings:
- Cents only (US-001, 2026-01-02, not accepted)
Rescue: refs/ralph/rescue/r/1
---

---
Iteration: 2
Date: 2026-01-03T00:00:00Z
Story: STORY-002 - Pay
Tests Added:
  - tests/test_pay.py
Learnings:
  - by the agent itself,
    over two lines
  - loop: check 'tests' failed with exit code 1
Commit: none

## SUCCESS: iteration 3, US-003
- Check: pytest: passed (exit 0)
- Learned: the port is 8080 (US-003, 2026-01-04, 1a2b3c4d5)
- Commit: abc
"""


def test_notes_are_memory_from_the_first_to_the_last_line() -> None:
    assert [(one.text, one.line) for one in in_notes(NOTES)] == [
        ("Redis has to run.", 6),
        ("A long one that goes on - and has a point of its own", 7),
        ("Numbered", 11),
        ("A paragraph is one, too, over two lines.", 13),
    ]


def test_a_log_has_patterns_and_what_its_entries_say_was_learned() -> None:
    assert [(one.text, one.story, one.date, one.curated, one.accepted) for one in in_log(LOG)] == [
        ("Use the pool", "", "", True, True),
        ("Another pattern", "", "", True, True),
        ("Cents only", "US-001", "2026-01-02", False, False),
        ("by the agent itself, over two lines", "STORY-002", "2026-01-03", False, True),
        ("the port is 8080", "US-003", "2026-01-04", False, True),
    ]


def test_what_other_loops_write_into_their_log_is_found() -> None:
    log = """\
## 2026-01-02 10:00 - US-001
- Added the cart
- **Learnings for future iterations:**
  - Prices are in cents
  - The cart is
    per session
- Files changed: cart.py
  - cart.py
- Learnings: the port is 8080
---
## US-002
* Learnings:
    * Tests need Redis
* Done
"""
    assert [one.text for one in in_log(log)] == [
        "Prices are in cents",
        "The cart is per session",
        "the port is 8080",
        "Tests need Redis",
    ]


@given(st.text())
def test_any_text_can_be_read(text: str) -> None:
    in_notes(text)
    in_log(text)


def test_a_pattern_is_added_at_the_end_of_its_section() -> None:
    new = with_pattern(LOG, "One more")
    assert new is not None
    assert new.replace("- One more\n", "") == LOG
    assert [one.text for one in in_log(new) if one.curated] == ["Use the pool", "Another pattern", "One more"]
    assert with_pattern("# Progress\n\n- x\n", "One more") is None


pieces = st.sampled_from(
    ["# a\n", "## Codebase Patterns\n", "- x\r\n", "\n", "---\n", "text", "## b\n", "\u2028", "- y"]
)


@given(st.lists(pieces, max_size=8).map("".join))
def test_adding_a_pattern_changes_no_other_byte(text: str) -> None:
    new = with_pattern(text, "QQQ")
    if new is not None:
        before, _, after = new.partition("- QQQ")
        assert (before + after.removeprefix("\r\n").removeprefix("\n")).replace("\r\n", "\n").replace("\n", "") == (
            text.replace("\r\n", "\n").replace("\n", "")
        )
        assert new.startswith(before.rstrip("\r\n"))
