"""What kind of source something is, told from its content."""

from __future__ import annotations

import json

import pytest

from ralph.core.errors import BadData, PlanError, UsageError
from ralph.importing.detect import detect
from ralph.importing.kinds import names
from ralph.importing.sources import read
from ralph.plans.registry import LAYOUTS
from support.plans import sample

CHECKLIST = "# Things\n\n- [ ] Add a page\n"


@pytest.mark.parametrize("layout", LAYOUTS.built_in())
def test_a_plan_of_ralphs_own_is_recognised(layout: str) -> None:
    for odd in (False, True):
        batch = read(sample(layout, 5, odd=odd), "f")
        assert (batch.kind, len(batch.items)) == (layout, 5)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ('[{"number": 3, "title": "x"}]', "github"),
        ('{"number": 3, "title": "x"}', "github"),
        ('{"number": 3, "title": "x"}\n{"number": 4, "title": "y"}\n', "github"),
        ('{"total_count": 1, "items": [{"number": 3, "title": "x"}]}', "github"),
        ('{"id": "bd-1", "title": "x"}\n{"id": "bd-2", "title": "y"}\n', "beads"),
        ('{"id": "bd-1", "title": "a { brace"}\n{"id": "bd-2", "title": "y"}\n', "beads"),
        ('[\n  {"id": "bd-1", "title": "x", "issue_type": "bug"}\n]', "beads"),
        (CHECKLIST, "checklist"),
        ("1. [ ] one\n2. [x] two\n", "checklist"),
        ("- [ ] US-001: x\n- [ ] and one without an id\n", "checklist"),
        ("- [ ] US-001: x\n\n### US-001: x\n\n- [ ] a criterion\n", "plan.md"),
        ("- [ ] **1.1** x\n", "spec.md"),
        ("- [ ] **1.1** x\n- [ ] y\n", "checklist"),
        ("# Fix Plan\n\n- one\n- two\n", "fix_plan"),
        ("# X\n\n### Task 1: Add a page\n\n- [ ] step\n", "plans"),
        ("## Task 2 - Add a page\n", "plans"),
    ],
)
def test_a_source_is_recognised(text: str, kind: str) -> None:
    assert detect(text, "f") == kind


@pytest.mark.parametrize("name", ["fix_plan.md", "@fix_plan.md", "a/b/FIX_PLAN.md"])
def test_a_fix_plan_is_recognised_by_its_name(name: str) -> None:
    assert detect("- one\n", name) == "fix_plan"


def test_what_cannot_be_told_is_asked_for() -> None:
    with pytest.raises(BadData, match="could not be detected") as raised:
        read(b"# Hello\n\nJust text.\n", "notes.md")
    assert "--from" in raised.value.hint
    assert str(raised.value.where) == "notes.md"


def test_a_kind_that_is_named_is_not_guessed() -> None:
    assert read(b"- one\n- two\n", "notes.md", "fix_plan").kind == "fix_plan"
    assert len(read(b"- [ ] US-001: x\n", "f", "checklist").items) == 1
    with pytest.raises(UsageError, match="unknown kind"):
        read(b"x", "f", "trello")
    assert set(names()) >= {"github", "checklist", "beads", "fix_plan", "plans", *LAYOUTS.built_in()}


@pytest.mark.parametrize(
    ("data", "line", "words"),
    [
        (b"", None, "empty"),
        (b"\xef\xbb\xbf \n", None, "empty"),
        (b"- [ ] a\n- [ ] caf\xe9\n", 2, "UTF-8"),
        (b"- [ ] a\n\n- [ ] b\0\n", 3, "NUL"),
        (b'[{"number": 1,\n "title": }]', 2, "not valid JSON"),
        (b'{"id": "a-1", "title": "x"}\n\n{"id": \n', 3, "not valid JSON"),
        (b'[\n {"number": 1, "title": "x"},\n 7]', 3, "not an object"),
        (b'[\n {"number": 1, "title": "x"},\n {"number": 2}]', 3, "no title"),
        (b'[\n {"number": 0, "title": "x"}]', 2, "no number"),
        (b'{"id": "a-1", "title": "x"}\n{"title": "y"}\n', 2, "no ID"),
        (b"[]", None, "empty"),
        (b"[" * 5000, 1, "nested too deeply"),
        (b"```\n- [ ] in code\n```\n", None, "no task"),
        (b"<!--\n- [ ] hidden\n-->\n", None, "no task"),
    ],
)
def test_bad_input_is_told_with_file_and_line(data: bytes, line: int | None, words: str) -> None:
    with pytest.raises(BadData, match=words) as raised:
        read(data, "the-file")
    where = raised.value.where
    assert where is not None
    assert (where.file, where.line) == ("the-file", line)
    assert raised.value.hint


def test_a_broken_plan_of_ralphs_own_is_told_as_ralph_check_tells_it() -> None:
    with pytest.raises(PlanError) as raised:
        read(json.dumps({"tasks": [{"id": 1, "status": "maybe"}]}, indent=1).encode(), "prd.json")
    assert raised.value.problems[0].where.line


def test_a_checklist_that_nobody_could_work_through_is_refused_at_once() -> None:
    with pytest.raises(BadData, match="600,000"):
        read(b"- [ ] task number\n" * 600_000, "f")
