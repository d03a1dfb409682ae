"""Checklists, fix_plan.md and plans of other tools: what becomes a story, and its criteria and commands."""

from __future__ import annotations

import pytest

from ralph.core.plan import State
from ralph.importing.body import is_proof
from ralph.importing.formats.checklist import read as read_checklist
from ralph.importing.formats.fix_plan import read as read_fix_plan
from ralph.importing.formats.task_plan import read as read_task_plan
from ralph.importing.formats.task_plan import shortened

CHECKLIST = """\
# Shop

## Backend

- [ ] Add **the schema**
  of the users
  - [ ] the table `users` exists
  - [x] there is an index on email
    - and it is unique
  - It answers:
    - 200 to GET
    - 201 to POST
  - Verify: `pytest tests/test_schema.py`
  - Notes: ask Zoë
- [x] Set it up
- Group
  - [ ] Same
  - [ ] Same

## Frontend

1. [ ] A page
   ```
   - [ ] not a task
   ```
- [-] Given up

> - [ ] quoted, so no task

<!-- - [ ] hidden -->
"""


def test_a_task_is_a_story_and_what_is_nested_are_its_criteria() -> None:
    first = read_checklist(CHECKLIST, "TODO.md").items[0]
    assert first.title == "Add **the schema**"
    assert first.description == "of the users"
    assert first.criteria == (
        "the table `users` exists",
        "there is an index on email",
        "and it is unique",
        "It answers: 200 to GET",
        "It answers: 201 to POST",
    )
    assert first.verify == ("pytest tests/test_schema.py",)
    assert first.notes == "ask Zoë"
    assert (first.phase, first.line) == ("Backend", 5)


def test_what_stands_in_code_quotes_and_comments_is_no_task() -> None:
    batch = read_checklist(CHECKLIST, "TODO.md")
    assert [item.title for item in batch.items] == ["Add **the schema**", "Set it up", "Same", "Same", "A page"]
    assert "not a task" in batch.items[-1].description
    assert [(p.code, p.where.line) for p in batch.left] == [("left-out", 26), ("left-out", 28)]
    assert batch.name == "Shop"


def test_ticked_is_done_and_groups_and_headings_are_parts_of_the_work() -> None:
    items = read_checklist(CHECKLIST, "TODO.md").items
    assert [item.state is State.DONE for item in items] == [False, True, False, False, False]
    assert [item.phase for item in items] == ["Backend", "Backend", "Backend › Group", "Backend › Group", "Frontend"]


def test_keys_are_unique_and_stay_when_the_file_changes_around_them() -> None:
    before = read_checklist(CHECKLIST, "TODO.md").items
    assert len({item.key for item in before}) == len(before)
    changed = CHECKLIST.replace("- [ ] Add", "- [x] Add").replace("# Shop\n", "# Shop\n\nAn introduction.\n")
    after = read_checklist(f"\ufeff{changed}".removeprefix("\ufeff").replace("\n", "\r\n"), "sub/TODO.md").items
    assert [item.key for item in after] == [item.key for item in before]
    assert after[0].state is State.DONE


def test_control_and_invisible_characters_go() -> None:
    text = "- [ ] red \x1b[31malert\x1b[0m \u202eback\u200b \u2066x\u2069 👨\u200d👩\u200d👧\n"
    assert read_checklist(text, "f").items[0].title == "red alert back x 👨\u200d👩\u200d👧"


def test_a_very_long_title_is_cut_and_said_whole_in_the_description() -> None:
    item = read_checklist(f"- [ ] {'word ' * 100}end\n", "f").items[0]
    assert len(item.title) <= 200
    assert item.description.endswith("word end")


def test_deep_nesting_costs_nothing_but_criteria() -> None:
    text = "".join(f"{'  ' * depth}- [ ] d{depth}\n" for depth in range(2000))
    (item,) = read_checklist(text, "f").items
    assert item.title == "d0"
    assert len(item.criteria) > 50


FIX_PLAN = """\
# Fix Plan

Some words.

## Low Priority
- Speed it up
- ~~Old thing~~
- Rename it ✅

## High Priority
- [ ] Fix the parser
  - `parse('a b')` gives two words
- a remark, because its neighbour has a checkbox
- [-] Not any more

## Completed
- [x] Project set up
- Without a box

## Notes
- Focus on one thing
"""


def test_a_fix_plan_puts_the_most_important_first() -> None:
    items = read_fix_plan(FIX_PLAN, "fix_plan.md").items
    assert [item.title for item in items] == [
        "Fix the parser",
        "Project set up",
        "Speed it up",
        "Old thing",
        "Rename it",
    ]
    assert items[0].criteria == ("`parse('a b')` gives two words",)
    assert [item.priority for item in items] == [2, 0, 4, 4, 4]
    assert [item.state.value for item in items] == ["todo", "done", "todo", "done", "done"]


def test_what_is_no_task_in_a_fix_plan_is_said() -> None:
    batch = read_fix_plan(FIX_PLAN, "fix_plan.md")
    assert [(problem.where.line, problem.message) for problem in batch.left] == [
        (3, "text under 'Fix Plan', line 3: Some words."),
        (
            13,
            "'a remark, because its neighbour has a checkbox' has no checkbox, but others in the section do",
        ),
        (14, "'Not any more' is marked as dropped"),
        (18, "'Without a box' has no checkbox, but others in the section do"),
        (21, "'Focus on one thing' is under 'Notes'"),
    ]


def test_a_fix_plan_without_headings_goes_by_its_order() -> None:
    items = read_fix_plan("* one\n* two\n\n1. three\n", "fix_plan.md").items
    assert [(item.title, item.priority) for item in items] == [("one", 0), ("two", 0), ("three", 0)]


PLAN = """\
# Login Implementation Plan

**Goal:** people log in

## Validation Commands
- `go test ./...`
- `golangci-lint run`

## Phase 1: Core

### Task 1: Hash **passwords**

**Files:**
- Create: `src/hash.py`
- Test: `tests/test_hash.py`

- [ ] **Step 1: Write the failing test**

Run: `pytest tests/test_hash.py -v`
Expected: FAIL with "no module"

```python
- [ ] not a step
```

- [x] Step 2: Make it pass

Run: `pytest tests/test_hash.py -q`
Expected: PASS

### Task 2: The page ✅

**Depends on:** Task 1, Task 9

**Acceptance criteria:**
- GET /login answers 200

**Verification:**
```bash
$ make e2e
git commit -m done
# a comment
```

### Task 3: All ticked
- [x] a
- [x] b
"""


def test_each_heading_of_a_task_is_a_story() -> None:
    batch = read_task_plan(PLAN, "docs/plans/login.md")
    one, two, three = batch.items
    assert [item.title for item in batch.items] == ["Hash **passwords**", "The page", "All ticked"]
    assert one.criteria == ("Step 1: Write the failing test", "Step 2: Make it pass")
    assert one.description.startswith("Files: src/hash.py, tests/test_hash.py")
    assert two.criteria == ("GET /login answers 200",)
    assert two.depends_on == (one.key, "task 9")
    assert [item.state.value for item in batch.items] == ["todo", "done", "done"]
    assert {item.phase for item in batch.items} == {"Phase 1: Core"}
    assert three.line == PLAN.split("\n").index("### Task 3: All ticked") + 1


def test_commands_that_prove_are_taken_and_those_that_fail_or_do_something_are_not() -> None:
    batch = read_task_plan(PLAN, "docs/plans/login.md")
    assert batch.verify == ("go test ./...", "golangci-lint run")
    assert batch.items[0].verify == ("pytest tests/test_hash.py -q",)
    assert batch.items[1].verify == ("make e2e",)


@pytest.mark.parametrize("code", ["pytest -q", "make", "./check.sh", "npm test", "cargo test --all"])
def test_a_command_can_be_a_proof(code: str) -> None:
    assert is_proof(code)


@pytest.mark.parametrize(
    "code", ["tests/test_x.py", "git add -A", "rm -rf x", "pip install x", "x = 1; y", "README", ""]
)
def test_a_path_or_a_deed_is_none(code: str) -> None:
    assert not is_proof(code)


def test_a_plan_that_lies_in_the_project_is_pointed_to() -> None:
    item = shortened(read_task_plan(PLAN, "x").items[0], "docs/plans/login.md")
    assert item.description.endswith("The steps are in docs/plans/login.md, from line 11 on.")
    assert "```" not in item.description
