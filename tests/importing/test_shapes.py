"""Shapes that files of other tools have in public projects, each as small as it can be."""

from __future__ import annotations

from pathlib import Path

import pytest

from ralph.core.plan import State
from ralph.importing.sources import read
from ralph.importing.stories import Batch, Item
from support.cli import ralph_here


def named(batch: Batch) -> dict[str, Item]:
    return {item.id or item.title: item for item in batch.items}


def needs(item: Item) -> list[str]:
    return [key.rpartition("#")[2] for key in item.depends_on]


KIRO = """\
- [x] 1. Store
- [x] 1.1 A table
  - has an index
  - _Requirements: 1.1, 2.4_
- [ ]* 1.2 (P) Tests
  - _Depends: 1.1_
- [-] 2. Show
  - [x] a list
- [ ] 2.10 Sort
  - _Exigences : 5.1, 5.2_
"""
GRAPH = """\
- [ ] 1. One
  - [ ] 1.1 A
  - [ ] 1.2 B
- [ ] 2. Two

## Task Dependency Graph

```json
{"waves": [{"id": 0, "tasks": ["1"]}, {"id": 1, "tasks": ["2"]}]}
```
"""


def test_parts_that_are_not_nested_are_parts_by_their_numbers() -> None:
    batch = read(KIRO.encode(), ".kiro/specs/a/tasks.md")
    found = named(batch)
    assert list(found) == ["1.1", "1.2", "2.10"]
    assert (found["1.1"].criteria, found["1.1"].notes) == (("has an index",), "Requirements: 1.1, 2.4")
    assert (found["1.2"].title, needs(found["1.2"])) == ("Tests", ["1.1"])  # and not 1, whose parts are 1.1 and 1.2
    assert "Optional" in found["1.2"].notes
    assert "a list" in found["2.10"].description  # what its task says
    assert (found["2.10"].criteria, found["2.10"].notes) == ((), "Exigences : 5.1, 5.2")


def test_the_waves_of_a_graph_are_dependencies() -> None:
    batch = read(GRAPH.encode(), ".kiro/specs/a/tasks.md")
    found = named(batch)
    assert {own: needs(item) for own, item in found.items()} == {"1.1": [], "1.2": [], "2": ["1.1", "1.2"]}
    assert batch.left == ()


BMAD = """\
# Story 1.1: Scaffolding

Status: review

## Acceptance Criteria

### AC1: Structure
**Given** a repository
**When** I clone it
**Then** I see:
```
ui/
```
**And** it builds

### AC2: Pipeline
**Given** a push

## Tasks / Subtasks

- [x] Task 1

## Dev Agent Record

done
"""


def test_a_criterion_of_a_story_is_all_that_its_heading_has() -> None:
    batch = read(BMAD.encode(), "_bmad-output/implementation-artifacts/1-1-scaffolding.md")
    [story] = batch.items
    assert [words.partition(":")[0] for words in story.criteria] == ["AC1", "AC2"]
    assert story.criteria[0].endswith("it builds")
    assert "ui/" in story.description
    assert (story.state, [problem.message for problem in batch.left]) == (
        State.TODO,
        ["the section 'Dev Agent Record', lines 23–25"],
    )


@pytest.mark.parametrize(
    ("file", "text", "titles"),
    [
        ("specs/001-a/tasks.md", "- [x] T1: Add it\n- [ ] T10: Show it (depends on T1)\n", ["Add it", "Show it"]),
        (
            ".claude/plans/plan.md",
            "## Context\n\n1. a\n2. b\n\n## Phase A\n\n### A1. One\n\nx\n\n### A2. Two\n\ny\n\n## Order\n\nA1 → A2\n",
            ["One", "Two"],
        ),
        (
            "IMPLEMENTATION_PLAN.md",
            "# Plan\n\n## 1. Goals\n\n- be quick\n\n## Stage 1 – Fix\n\n- Fix it\n\n## Stage 2\n\n- Show it\n",
            ["Fix it", "Show it"],
        ),
        (
            "IMPLEMENTATION_PLAN.md",
            "# Plan\n\n## Phase 1: Fix\n\n**Goal:** x\n\n- a\n- b\n\n## Phase 2: Show\n\n**Goal:** y\n\n- c\n",
            ["Fix", "Show"],
        ),
        (
            "IMPLEMENTATION_PLAN.md",
            "## Phase 1\n\n### Step 1: Set up\n\n### Step 2: Go\n\n## Phase 2: More\n\n1. a\n\n## Success\n\n- [ ] b\n",
            ["Set up", "Go", "More"],
        ),
        (".claude/plans/plan.md", "# 計画\n\n## フェーズ1\n\n- [ ] one\n  - [ ] part\n- [x] two\n", ["one", "two"]),
        (
            "openspec/changes/a/tasks.md",
            "- [ ] 1.1 Tags in\n      `src/a`\n- [ ] 1.2 b\n",
            ["Tags in `src/a`", "b"],
        ),
        ("TODO.md", "# Step 1: Publish\n\n## Steps\n- [ ] 1. Copy\n- [ ] 2. Push\n", ["Publish"]),
        (
            ".claude/plans/plan.md",
            "## What\n\n### 1. Keys\n\nx\n\n### 2. Pages\n\ny\n\n## MVP\n\n- [x] a\n- [ ] b\n\n## Later\n\n- [ ] c\n",
            ["a", "b", "c"],
        ),
        (
            "specs/001-a/tasks.md",
            "## Phase 1\n\n- [ ] T001 Add it\n- [ ] and this\n\n## Validation Checklist\n\n- [ ] All tests pass\n",
            ["Add it", "and this"],
        ),
        ("docs/plans/a.md", "## Checks\n\n- `make test`\n\n### Iteration 1: One\n\n- [x] a\n", ["One"]),
    ],
)
def test_what_is_work_and_what_is_not(file: str, text: str, titles: list[str]) -> None:
    batch = read(text.encode(), file)
    assert [item.title.partition(" (")[0] for item in batch.items] == titles


def test_a_field_that_was_passed_over_for_another_is_listed() -> None:
    batch = read(
        b'{"features": [{"id": 1, "name": "slug", "title": "Tags", "status": "done", "passes": true}]}', "f.json"
    )
    assert (batch.items[0].title, set(batch.fields)) == ("Tags", {"name", "status"})


def test_a_part_whose_whole_is_in_another_file_names_it() -> None:
    text = "---\nid: TASK-2.1\ntitle: Part\nstatus: To Do\nparent_task_id: TASK-2\n---\n"
    assert read(text.encode(), "backlog/tasks/task-2.1.md").items[0].notes == "Part of TASK-2"


SPEC_KIT = """\
# Tasks: Tags

**Input**: Design documents from `/specs/001-tags/`
**Prerequisites**: plan.md, spec.md

## Phase 3: User Story 1

**Goal**: Users can tag a note

**Independent Test**: Add a tag and see it

### Tests

- [ ] T010 [US1] Contract test in tests/test_tags.py

### Implementation

- [ ] T012 [US1] Create the model in src/tag.py

**Checkpoint**: it works
"""


def test_what_a_section_says_goes_to_the_tasks_of_its_parts_and_the_rest_is_listed() -> None:
    batch = read(SPEC_KIT.encode(), "specs/001-tags/tasks.md")

    goal = "**Goal**: Users can tag a note\n\n**Independent Test**: Add a tag and see it"
    assert [item.description for item in batch.items] == [goal, goal]
    assert [problem.message for problem in batch.left] == [
        "text under 'Tasks: Tags', lines 3–4: Input: Design documents from `/specs/001-tags/`",
        "text under 'Implementation', line 20: Checkpoint: it works",
    ]


def test_lines_that_a_reader_drops_are_listed() -> None:
    text = "## Task 1: Hash it\n\nHash it well.\n\n**Verification:**\n\n```bash\npytest -q\ngit commit -m hashed\n```\n"

    batch = read(text.encode(), "docs/superpowers/plans/login.md")

    assert batch.items[0].verify == ("pytest -q",)
    assert [problem.message for problem in batch.left] == ["line 9: git commit -m hashed"]


def test_a_dependency_on_skipped_work_is_listed(tmp_path: Path) -> None:
    tasks = tmp_path / "backlog" / "tasks"
    tasks.mkdir(parents=True)
    (tmp_path / ".git").mkdir()
    for number, status, needs in ((1, "Done", "[]"), (2, "To Do", "[task-1]")):
        front = f"---\nid: task-{number}\ntitle: Step {number}\nstatus: {status}\ndependencies: {needs}\n---\n"
        (tasks / f"task-{number} - Step.md").write_text(front)

    done = ralph_here("import", "backlog/tasks", "--done", "skip", "--dry-run", cwd=tmp_path)

    assert "[left-out]: dependencies on finished work that is not imported: US-001 on task-1" in done.out
    assert ".json:" not in done.out, "a dry run names no line of a file that does not exist"
