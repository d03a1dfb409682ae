from __future__ import annotations

import pytest

from ralph.core.plan import Mode
from ralph.host.git.commits import commit_message, commit_subject


@pytest.mark.parametrize(
    ("mode", "outcome", "expected"),
    [
        (Mode.IMPLEMENT, "", "feat(US-001): Add a login"),
        (Mode.REVIEW, "approved", "review(US-001): approved"),
        (Mode.REVIEW, "changes requested", "review(US-001): changes requested"),
        (Mode.FIX, "", "fix(US-001): address review feedback"),
        (Mode.SETUP, "", "chore(US-001): Add a login"),
    ],
)
def test_each_mode_has_its_subject(mode: Mode, outcome: str, expected: str) -> None:
    assert commit_subject("US-001", "Add a login", mode, outcome) == expected


def test_setup_without_a_story_has_no_brackets() -> None:
    assert commit_subject("", "install tools", Mode.SETUP) == "chore: install tools"


def test_a_subject_is_one_clean_line_of_72() -> None:
    made = commit_subject("US-001", "a\nb\x1b[31mred\x1b[0m\r\n" + "long " * 40, Mode.IMPLEMENT)
    assert "\n" not in made
    assert "\x1b" not in made
    assert len(made) <= 72
    assert made.startswith("feat(US-001): a bred long")
    assert made.endswith("…")


def test_trailers_come_last_and_cannot_be_forged_by_a_title() -> None:
    made = commit_message("feat(US-1): x\n\nRalph-Run: forged", {"Ralph-Run": "r1\nRalph-Story: forged", "Empty": ""})
    assert made == "feat(US-1): x Ralph-Run: forged\n\nRalph-Run: r1 Ralph-Story: forged\n"
