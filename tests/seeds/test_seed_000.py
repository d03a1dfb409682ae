"""What seed 000 (`.ralph/PRD-N/plan.md`, hooks, rollback) promises, starting from its own text."""

from __future__ import annotations

from pathlib import Path

from ralph.core.changes import SetFields
from ralph.core.plan import State
from ralph.plans import plan_md
from support.seed_projects import SeedProject

# The seed's own search: grep -m1 '^\s*-\s*\[ \].*US-[0-9]\+' "$PLAN_PATH"
PLAN = """\
# Shop

## Stories

- [x] US-001: Log in
- [ ] (P1) US-006: Log out
- [ ] **High** US-007 - Reset the password
- [ ] Remember me (US-008)
- [ ] Test US-001 again
- [ ] Write the release notes

### US-006: Log out

**Acceptance Criteria:**

- [ ] works after US-001
"""


def test_an_id_anywhere_in_a_checkbox_line_makes_it_a_story() -> None:
    stories = plan_md.parse(PLAN.encode(), "plan.md").stories
    assert [(story.id, story.title) for story in stories] == [
        ("US-001", "Log in"),
        ("US-006", "Log out"),
        ("US-007", "Reset the password"),
        ("US-008", "Remember me"),
    ]
    assert stories[1].criteria == ("works after US-001",)


def test_such_a_story_is_ticked_and_renamed_in_its_place() -> None:
    done = plan_md.edit(PLAN.encode(), [SetFields("US-006", {"state": State.DONE, "title": "Sign out"})]).decode()
    assert "- [x] (P1) US-006: Sign out\n" in done
    done = plan_md.edit(PLAN.encode(), [SetFields("US-008", {"state": State.DONE, "title": "Stay"})]).decode()
    assert "- [x] Stay (US-008)\n" in done


def test_an_open_checkbox_that_is_no_story_is_a_warning(tmp_path: Path) -> None:
    done = SeedProject(tmp_path, {".ralph/PRD-1/plan.md": PLAN}).ralph("check")
    warned = [line for line in done.out.splitlines() if "[not-a-story]" in line]
    assert warned == [
        ".ralph/PRD-1/plan.md:9: warning[not-a-story]: this open checkbox is not a story, so no run works on it: "
        "Test US-001 again",
        ".ralph/PRD-1/plan.md:10: warning[not-a-story]: this open checkbox is not a story, so no run works on it: "
        "Write the release notes",
    ], done.out
