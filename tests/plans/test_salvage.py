"""What is understood of a plan that cannot be read."""

from __future__ import annotations

import json

import pytest

from ralph.core.errors import PlanError
from ralph.plans import feature_json, plan_md, spec_md, steps_json

STEPS = {
    "project": "p",
    "tasks": [{"id": 1, "title": "One", "status": "todo"}, {"id": 2, "title": "Two", "status": "todo"}],
}
FEATURE = {
    "feature": "f",
    "branchName": "b",
    "description": "d",
    "createdAt": "2026-01-01",
    "userStories": [{"id": "S-1", "title": "One", "acceptanceCriteria": ["a"], "priority": 1, "passes": False}],
}
PLAN = "# P\n\n- [ ] US-001: One\n- [ ] US-002: Two\n"
SPEC = "# P\n\n- [ ] **1.1** One\n- [ ] **1.2** Two\n"


@pytest.mark.parametrize("word", ["completed", "Complete", "DONE", "In Progress", "in-progress"])
def test_a_status_of_a_step_in_other_words(word: str) -> None:
    before = json.dumps(STEPS)
    after = before.replace('"todo"', json.dumps(word), 1)
    with pytest.raises(PlanError):
        steps_json.parse(after.encode(), "f")
    source = steps_json.salvage(after.encode(), before.encode())
    assert source is not None
    one, two = steps_json.parse(source, "f").stories
    assert one.state.value == ("in_progress" if word.lower().startswith("in") else "done")
    assert two.state.value == "todo"


def test_a_comma_too_much_hides_no_claim() -> None:
    before = json.dumps(FEATURE)
    after = before.replace('"passes": false', '"passes": true, "notes": "done, [see] }",')
    source = feature_json.salvage(after.encode(), before.encode())
    assert source is not None
    (story,) = feature_json.parse(source, "f").stories
    assert (story.is_done, story.notes) == (True, "done, [see] }")


def test_a_second_list_of_ticked_stories_is_a_claim() -> None:
    after = PLAN + "\n## Completed\n\n- [x] US-001: One\n"
    with pytest.raises(PlanError):
        plan_md.parse(after.encode(), "f")
    source = plan_md.salvage(after.encode(), PLAN.encode())
    assert source == PLAN.replace("- [ ] US-001", "- [x] US-001").encode()


def test_a_tick_in_a_spec_with_a_wrong_step_beside_it() -> None:
    after = SPEC.replace("[ ] **1.2**", "[x] **1.2**") + "- [ ] **1.x** What?\n"
    with pytest.raises(PlanError):
        spec_md.parse(after.encode(), "f")
    assert spec_md.salvage(after.encode(), SPEC.encode()) == SPEC.replace("[ ] **1.2**", "[x] **1.2**").encode()


def test_nothing_is_read_into_what_makes_no_sense() -> None:
    assert plan_md.salvage(b"nothing here", PLAN.encode()) is None
    assert steps_json.salvage(b"{ oops", json.dumps(STEPS).encode()) is None
    assert steps_json.salvage(b"[]", json.dumps(STEPS).encode()) is None
    assert steps_json.salvage(b"\xff\x00", json.dumps(STEPS).encode()) is None
