"""`plan.md`: which stories a checklist has, what each says, and edits that leave the rest alone."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ralph.core.changes import AddStory, Change, MoveStory, RemoveStory, SetFields, apply
from ralph.core.errors import IllegalChange, PlanError, UsageError
from ralph.core.plan import Order, Plan, State, Story
from ralph.core.ports import ProjectFacts
from ralph.core.select import next_story
from ralph.plans import plan_md

SOURCE = """\
# User login

Zoë wrote this on [2026-01-29].

- [x] US-001: The form
- [ ] **US-002**: The session
- [ ] US-003: Log out

```markdown
- [ ] US-999: not a story
### US-998: not a heading
```

## Details

### US-001: The form

As a user, I want to type my name
so that I can log in.

**Acceptance Criteria:**

- [x] The form has two fields
- [ ] Enter sends it
  - also on the number pad

Verify: `pytest tests/test_form.py`, ``sh -c "echo `date`"``
Notes: done in a hurry

### US-002: The session

- It lasts an hour
- Depends on: US-001

#### Background

This is not the description.

## Appendix

- [ ] order a cake
"""


def read(text: str) -> Plan:
    return plan_md.parse(text.encode(), "plan.md")


def story(text: str, story_id: str = "US-001") -> Story:
    found = read(text).story(story_id)
    assert found is not None
    return found


def edited(text: str, *changes: Change) -> str:
    return plan_md.edit(text.encode(), changes).decode()


def diff(old: str, new: str) -> list[str]:
    """The lines that are gone and the lines that are new."""
    rows = difflib.unified_diff(old.splitlines(), new.splitlines(), n=0, lineterm="")
    return [row for row in rows if not row.startswith(("---", "+++", "@@"))]


def codes(text: str) -> list[str]:
    with pytest.raises(PlanError) as caught:
        read(text)
    return [problem.code for problem in caught.value.problems]


def test_a_plan_with_items_and_blocks_is_read() -> None:
    plan = read(SOURCE)
    assert plan.name == "User login"
    assert plan.order is Order.FILE
    assert [(s.id, s.title, s.state, s.priority, s.line) for s in plan.stories] == [
        ("US-001", "The form", State.DONE, 1, 5),
        ("US-002", "The session", State.TODO, 2, 6),
        ("US-003", "Log out", State.TODO, 3, 7),
    ]
    first, second, third = plan.stories
    assert first.description == "As a user, I want to type my name\nso that I can log in."
    assert first.criteria == ("The form has two fields", "Enter sends it")
    assert first.verify == ("pytest tests/test_form.py", 'sh -c "echo `date`"')
    assert first.notes == "done in a hurry"
    assert second.criteria == ("It lasts an hour",)
    assert second.depends_on == ("US-001",)
    assert second.description == ""
    assert third.criteria == ()


def test_the_first_open_story_is_next() -> None:
    following = next_story(read("- [x] US-002: b\n- [ ] US-009: c\n- [ ] US-001: a\n"))
    assert following is not None
    assert following.id == "US-009"


@pytest.mark.parametrize(
    ("head", "title"),
    [
        ("US-001: A title", "A title"),
        ("US-001 A title", "A title"),
        ("US-001 - A title", "A title"),
        ("US-001 – A title", "A title"),
        ("US-001. A title", "A title"),
        ("**US-001**: A title", "A title"),
        ("**US-001:** A title", "A title"),
        ("**US-001** A title", "A title"),
        ("**US-001: A title**", "A title"),
        ("__US-001__: A title", "A title"),
        ("US-001:   A title   ", "A title"),
        ("US-001: **A** title", "**A** title"),
        ("US-001: - a", "- a"),
        ("US-001: A & B \\ $1 [x](y)", "A & B \\ $1 [x](y)"),
        ("US-001", ""),
    ],
)
def test_an_id_and_a_title_are_told_apart(head: str, title: str) -> None:
    for line in (f"- [ ] {head}\n", f"* [x] {head}", f"1. [X] {head}\r\n", f"### [ ] {head}\n\ntext\n"):
        found = story(line)
        assert (found.id, found.title) == ("US-001", title), line
        new = edited(line, SetFields("US-001", {"title": "B"}))
        assert story(new).title == "B"
        assert new.replace("B", "", 1).strip() in line.replace(title, "", 1).strip() or title == ""


def test_a_heading_with_a_checkbox_is_item_and_block() -> None:
    text = "### [ ] US-001: One\n\nWhat for.\n\n- a\n\n### [x] US-002: Two\n\n- b\n"
    assert [(s.id, s.state, s.criteria) for s in read(text).stories] == [
        ("US-001", State.TODO, ("a",)),
        ("US-002", State.DONE, ("b",)),
    ]
    assert diff(text, edited(text, SetFields("US-001", {"state": State.DONE}))) == [
        "-### [ ] US-001: One",
        "+### [x] US-001: One",
    ]


def test_both_checkboxes_of_a_story_are_marked() -> None:
    text = "- [ ] US-001: One\n\n### [ ] US-001: One\n"
    assert edited(text, SetFields("US-001", {"state": State.DONE})) == text.replace("[ ]", "[x]")


def test_criteria_may_be_nested_in_the_item() -> None:
    text = (
        "- [ ] US-001: One\n  More about it.\n  - a\n  - [x] b\n    - detail\n  - Verify: `make`\n- [ ] US-002: Two\n"
    )
    found = story(text)
    assert found.criteria == ("a", "b")
    assert found.description == "More about it."
    assert found.verify == ("make",)
    assert story(text, "US-002").criteria == ()


def test_a_story_nested_in_another_item_is_a_story_of_its_own() -> None:
    text = "- [ ] Phase one\n  - [ ] US-001: One\n    - a\n  - [ ] US-002: Two\n"
    assert [(s.id, s.criteria) for s in read(text).stories] == [("US-001", ("a",)), ("US-002", ())]


def test_a_block_ends_at_the_next_story_or_heading_of_its_level() -> None:
    text = "- [ ] US-001: One\n- [ ] US-002: Two\n\n### US-001\n\n- a\n\n#### More\n\n- b\n\n### Other\n\n- c\n"
    assert story(text).criteria == ("a", "b")
    assert plan_md.story_block(text.encode(), "US-001") == "### US-001\n\n- a\n\n#### More\n\n- b\n"
    assert plan_md.story_block(text.encode(), "US-002") == "- [ ] US-002: Two\n"


def test_the_block_for_the_prompt_is_what_stands_in_the_file() -> None:
    block = plan_md.story_block(SOURCE.replace("\n", "\r\n").encode(), "US-002")
    assert block.startswith("### US-002: The session\r\n\r\n- It lasts an hour\r\n")
    assert block.endswith("This is not the description.\n")
    with pytest.raises(IllegalChange):
        plan_md.story_block(SOURCE.encode(), "US-777")


@pytest.mark.parametrize(
    ("body", "field", "value"),
    [
        ("**Acceptance Criteria:**\n- a\n- b\n", "criteria", ("a", "b")),
        ("Acceptance criteria:\n\n- [ ] a\n- [x] b\n", "criteria", ("a", "b")),
        ("#### Acceptance Criteria\n\n1. a\n2. b\n", "criteria", ("a", "b")),
        ("- other\n\n**Acceptance Criteria**\n\n- a\n", "criteria", ("a",)),
        ("- a long\n  one\n- b\n", "criteria", ("a long one", "b")),
        ("- **Acceptance:**\n  - a\n  - b\n- c\n", "criteria", ("a", "b")),
        ("```\n- a\n```\n- b\n", "criteria", ("b",)),
        ("<!-- - a -->\n- b\n", "criteria", ("b",)),
        ("> - a\n\n- b\n", "criteria", ("b",)),
        ("- \\# a\n- 1\\. b\n", "criteria", ("# a", "1. b")),
        ("Verify: `a b`\n", "verify", ("a b",)),
        ("**Verify:** `a` and `b`\n", "verify", ("a", "b")),
        ("**Verify**:\n\n- run `a`\n- run `b`\n", "verify", ("a", "b")),
        ("#### Verification\n\nRun `a`.\n", "verify", ("a",)),
        ("Verify: `a`\nVerify: `b`\n", "verify", ("a", "b")),
        ("Verify: by looking at it\n", "verify", ()),
        ("Verify: by looking at it\n", "description", "Verify: by looking at it"),
        ("```\nVerify: `rm -rf /`\n```\n", "verify", ()),
        ("We verify: `no`\n", "verify", ()),
        ("Touches: src/a.py, docs/\n", "touches", ("src/a.py", "docs/")),
        ("**Touches:** `src/a b.py` and `docs/*.md`.\n", "touches", ("src/a b.py", "docs/*.md")),
        ("Touches:\n\n- src/a.py\n- `Makefile`\n", "touches", ("src/a.py", "Makefile")),
        ("Touches: src/a.py.\n", "touches", ("src/a.py",)),
        ("Touches: the login page, and more\n", "touches", ()),
        ("Depends on: US-002, US-003\n", "depends_on", ("US-002", "US-003")),
        ("**Dependencies:** US-002 (the form) and `US-003`\n", "depends_on", ("US-002", "US-003")),
        ("Depends on: none\n", "depends_on", ()),
        ("Depends on:\n- US-002\n- US-003\n", "depends_on", ("US-002", "US-003")),
        ("Notes: one\ntwo\n\nthree\n", "notes", "one\ntwo\n\nthree"),
        ("#### Notes\n\n- one\n- two\n", "notes", "one\ntwo"),
        ("one\ntwo\n\nthree\n", "description", "one\ntwo\n\nthree"),
        ("Description: one\n", "description", "one"),
        ("one\nVerify: `a`\n", "description", "one"),
    ],
)
def test_what_a_block_says(body: str, field: str, value: Any) -> None:
    rest = "\n### US-002\n\n### US-003\n"
    text = f"- [ ] US-001: One\n- [ ] US-002: Two\n- [ ] US-003: Three\n\n### US-001: One\n\n{body}{rest}"
    for newline in ("\n", "\r\n"):
        assert getattr(story(text.replace("\n", newline)), field) == value


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        ("# Plan\n\ntext\n", "no-stories", None),
        ("", "no-stories", None),
        ("```\n- [ ] US-001: a\n```\n", "no-stories", None),
        ("- [ ] US-001: a\n- [ ] US-abc: b\n", "bad-id", 2),
        ("- [ ] us-1: a\n", "bad-id", 1),
        ("- [ ] US-: a\n", "bad-id", 1),
        ("- [ ] **US-1a**: a\n", "bad-id", 1),
        ("- [ ] US-001-b: a\n", "bad-id", 1),
        ("- [ ] US-001.*: a\n- [ ] US-001; rm -rf /\n", "duplicate-id", 2),
        ("- [ ] US-001: a\n\n- [x] US-001: b\n", "duplicate-id", 3),
        ("- [ ] US-001: a\n\n### US-002: b\n", "no-checkbox", 3),
        ("- [ ] US-001: a\n\n### US-001\n\n### US-001\n", "duplicate-block", 5),
        ("- [ ] US-001: a\n  - Depends on: US-009\n", "unknown-dependency", 1),
        ("- [ ] US-001: a\n  - Depends on: us-001\n", "unknown-dependency", 1),
        ("- [ ] US-001: a\n  - Depends on: US-001\n", "self-dependency", 1),
    ],
)
def test_what_is_wrong_is_said_with_its_line(text: str, code: str, line: int | None) -> None:
    with pytest.raises(PlanError) as caught:
        plan_md.parse(text.encode(), ".ralph/PRD-1/plan.md")
    problem = caught.value.problems[0]
    assert (problem.code, problem.where.line) == (code, line)
    assert problem.where.file == ".ralph/PRD-1/plan.md"
    assert problem.hint


def test_every_problem_is_reported_in_the_order_of_the_file() -> None:
    assert codes("- [ ] US-x: a\n- [ ] US-001: b\n- [ ] US-001: c\n### US-005\n") == [
        "bad-id",
        "duplicate-id",
        "no-checkbox",
    ]


def test_a_criterion_may_look_like_a_bad_id() -> None:
    nested = "- [ ] US-001: One\n  - [ ] US-style dates\n"
    block = "- [ ] US-001: One\n\n### US-001\n\n- [ ] US-style dates\n"
    assert story(nested).criteria == story(block).criteria == ("US-style dates",)


def test_marking_one_story_changes_one_byte() -> None:
    marked = edited(SOURCE, SetFields("US-002", {"state": State.DONE}))
    assert [(a, b) for a, b in zip(SOURCE, marked, strict=True) if a != b] == [(" ", "x")]
    assert diff(SOURCE, marked) == ["-- [ ] **US-002**: The session", "+- [x] **US-002**: The session"]
    assert edited(marked, SetFields("US-002", {"state": State.TODO})) == SOURCE


def test_a_large_x_is_done_and_stays() -> None:
    text = "- [X] US-001: One\n"
    assert story(text).is_done
    assert edited(text, SetFields("US-001", {"state": State.DONE})) == text
    assert edited(text, SetFields("US-001", {"state": State.TODO})) == "- [ ] US-001: One\n"


def test_a_title_changes_in_the_item_and_in_the_heading() -> None:
    assert diff(SOURCE, edited(SOURCE, SetFields("US-002", {"title": "Stay & \\1 logged in"}))) == [
        "-- [ ] **US-002**: The session",
        "+- [ ] **US-002**: Stay & \\1 logged in",
        "-### US-002: The session",
        "+### US-002: Stay & \\1 logged in",
    ]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"notes": "a\n- b"}, ["-Notes: done in a hurry", "+Notes: a", "+\\- b"]),
        ({"notes": ""}, ["-Notes: done in a hurry"]),
        (
            {"verify": ("make", "a `b`")},
            ['-Verify: `pytest tests/test_form.py`, ``sh -c "echo `date`"``', "+Verify: `make`, `` a `b` ``"],
        ),
        ({"depends_on": ("US-003",)}, ["+Depends on: US-003"]),
        ({"criteria": ("The form has two fields", "New", "Enter sends it")}, ["+- [ ] New"]),
        ({"criteria": ("Enter sends it",)}, ["-- [x] The form has two fields"]),
        ({"criteria": ("The form has two fields",)}, ["-- [ ] Enter sends it", "-  - also on the number pad"]),
        (
            {"description": "Short.\n\n# Not a heading"},
            [
                "-As a user, I want to type my name",
                "-so that I can log in.",
                "+Short.",
                "+",
                "+\\# Not a heading",
            ],
        ),
    ],
)
def test_a_field_changes_in_its_own_lines(fields: dict[str, Any], expected: list[str]) -> None:
    for newline in ("\n", "\r\n"):
        source = SOURCE.replace("\n", newline)
        new = edited(source, SetFields("US-001", fields))
        assert diff(source, new) == expected
        assert re.findall(r"(?<!\r)\n", new) == [] or newline == "\n"
        changed = story(new)
        assert {name: getattr(changed, name) for name in fields} == fields


def test_a_story_without_a_block_gets_its_fields_nested() -> None:
    text = "- [ ] US-001: One\n- [ ] US-002: Two"
    fields = {"description": "Why.", "criteria": ("a", "# b"), "verify": ("make",), "depends_on": ("US-002",)}
    new = edited(text, SetFields("US-001", fields | {"notes": "n\nm"}))
    assert new == (
        "- [ ] US-001: One\n  Why.\n  - a\n  - \\# b\n  - Verify: `make`\n  - Depends on: US-002\n"
        "  - Notes: n\n    m\n- [ ] US-002: Two"
    )


def test_a_story_without_a_body_gets_one_in_its_block() -> None:
    text = "- [ ] US-001: One\n- [ ] US-002: Two\n\n### US-001: One\n### US-002: Two\n"
    fields = {"description": "Why.", "criteria": ("a",), "verify": ("make",), "notes": "n"}
    assert edited(text, SetFields("US-001", fields)) == (
        "- [ ] US-001: One\n- [ ] US-002: Two\n\n### US-001: One\n\nWhy.\n\n**Acceptance Criteria:**\n\n- [ ] a\n\n"
        "Verify: `make`\nNotes: n\n\n### US-002: Two\n"
    )


NEW = Story(id="US-004", title="Remember me", criteria=("a",), verify=("make",), description="Why.", notes="n")


def test_an_added_story_has_an_item_and_a_block_in_the_style_of_its_neighbour() -> None:
    assert diff(SOURCE, edited(SOURCE, AddStory(NEW, "US-002"))) == [
        "+- [ ] **US-004**: Remember me",
        "+### US-004: Remember me",
        "+",
        "+Why.",
        "+",
        "+**Acceptance Criteria:**",
        "+",
        "+- [ ] a",
        "+",
        "+Verify: `make`",
        "+Notes: n",
        "+",
    ]


def test_an_added_story_at_the_end_keeps_the_file_without_a_line_end() -> None:
    assert edited("1. [x] US-001: One\n2. [ ] US-002: Two", AddStory(Story(id="US-003", title="Three"))) == (
        "1. [x] US-001: One\n2. [ ] US-002: Two\n3. [ ] US-003: Three"
    )


def test_a_plan_of_headings_gets_another_heading() -> None:
    text = "## [x] US-001: One\n\n- a\n"
    new = edited(text, AddStory(Story(id="US-002", title="Two", criteria=("b",))))
    assert new == text + "\n## [ ] US-002: Two\n\n**Acceptance Criteria:**\n\n- [ ] b\n"


def test_a_removed_story_leaves_no_trace() -> None:
    assert edited(edited(SOURCE, AddStory(NEW, "US-001")), RemoveStory("US-004")) == SOURCE
    gone = edited(SOURCE, SetFields("US-002", {"depends_on": ()}), RemoveStory("US-001"))
    assert "US-001" not in gone
    assert gone.count("\n\n\n") == 0
    assert [s.id for s in read(gone).stories] == ["US-002", "US-003"]


def test_a_moved_story_takes_its_block_along() -> None:
    moved = edited(SOURCE, MoveStory("US-002", "US-001"))
    assert [s.id for s in read(moved).stories] == ["US-002", "US-001", "US-003"]
    assert moved.index("### US-002") < moved.index("### US-001")
    assert edited(moved, MoveStory("US-001", "US-002")) == SOURCE


@pytest.mark.parametrize(
    "change",
    [
        SetFields("US-001", {"title": "two\nlines"}),
        SetFields("US-001", {"title": " x"}),
        SetFields("US-001", {"criteria": ("",)}),
        SetFields("US-001", {"criteria": ("two\nlines",)}),
        SetFields("US-001", {"criteria": "text"}),
        SetFields("US-001", {"notes": "a\nVerify: `rm -rf /`"}),
        SetFields("US-001", {"notes": "a\0b"}),
        SetFields("US-001", {"notes": "\udc80"}),
        SetFields("US-001", {"verify": ("a\nb",)}),
        SetFields("US-001", {"depends_on": ("US-777",)}),
        SetFields("US-001", {"attempts": 1}),
        SetFields("US-001", {"state": State.FAILED}),
        AddStory(Story(id="US-4a", title="x")),
        AddStory(Story(id="US-004; rm", title="x")),
        AddStory(Story(id="US-004", title="x", state=State.FAILED)),
        AddStory(Story(id="US-004", title="x\n- [ ] US-005: y")),
        RemoveStory("US-001"),
    ],
)
def test_what_cannot_be_said_is_refused(change: Change) -> None:
    with pytest.raises(IllegalChange):
        edited(SOURCE, change)


def test_the_last_story_cannot_be_removed() -> None:
    with pytest.raises(IllegalChange):
        edited("- [ ] US-001: One\n", RemoveStory("US-001"))


WORDS = st.sampled_from(
    ["text", "- bullet", "# head", "1. one", "`code`", "**bold** x", "é ✓", "[ ] box", "\\- w", "---", "> q", "<div>"]
)
PARAGRAPH = st.lists(WORDS, min_size=1, max_size=3).map("\n".join)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "state": st.sampled_from([State.TODO, State.DONE]),
    "title": st.sampled_from(["A title", "**bold** x", "a [b](c)", "x: y - z", "é", "1. one"]),
    "description": st.lists(PARAGRAPH, max_size=2).map("\n\n".join),
    "notes": st.lists(PARAGRAPH, max_size=2).map("\n\n".join),
    "criteria": st.lists(WORDS, max_size=3).map(tuple),
    "touches": st.lists(st.sampled_from(["src/a.py", "docs/", "a b", "x, y", "`"]), max_size=2).map(tuple),
    "verify": st.lists(st.sampled_from(["make", "a `b` c", "x, y", "``"]), max_size=2).map(tuple),
}
SOURCES = [
    SOURCE,
    "- [ ] US-001: One\n- [x] US-002: Two\n- [ ] US-003: Three\n",
    "- [ ] US-001: One\n\n- [x] US-002: Two\n\n- [ ] US-003: Three\n",
    "1. [ ] US-001: One\n   - a\n2. [x] US-002: Two\n3. [ ] US-003: Three\n",
    "### [ ] US-001: One\n\ntext\n\n### [x] US-002: Two\n\n- a\n\n### [ ] US-003: Three\n",
    "* [ ] **US-001**: One\n* [ ] **US-002: Two**\n* [ ] US-003 - Three\n### US-003\nVerify: `a`\n### US-001\n- b\n",
    "### US-001: One\n\n- [ ] US-001: One\n\ntext\n\n### US-002: Two\n\n- [ ] US-002: Two\n\n### [ ] US-003: Three\n",
]


@st.composite
def changes(draw: st.DrawFn) -> Change:
    story_id = draw(st.sampled_from(["US-001", "US-002", "US-003"]))
    match draw(st.sampled_from(["set", "set", "set", "add", "move", "remove"])):
        case "add":
            fields = {name: draw(VALUES[name]) for name in VALUES}
            return AddStory(Story(id="US-004", **fields), draw(st.sampled_from([None, story_id])))
        case "move":
            return MoveStory(story_id, draw(st.sampled_from([None, "US-001", "US-003"])))
        case "remove":
            return RemoveStory(story_id)
        case _:
            names = draw(st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=3, unique=True))
            return SetFields(story_id, {name: draw(VALUES[name]) for name in names})


def said(plan: Plan) -> list[list[Any]]:
    return [[getattr(s, name) for name in sorted(plan_md.SPEAKS)] for s in plan.stories]


@settings(max_examples=300)
@given(st.sampled_from(SOURCES), st.sampled_from(["\n", "\r\n"]), changes())
def test_tidy_plans_take_every_change_and_keep_every_other_line(text: str, newline: str, change: Change) -> None:
    source = text.replace("\n", newline)
    plan = read(source)
    try:
        meant = apply(plan, [change])
    except IllegalChange:
        return
    if text == SOURCE and change == RemoveStory("US-001"):  # another story depends on it
        return
    new = edited(source, change)
    assert said(read(new)) == said(meant)
    if isinstance(change, SetFields | AddStory):
        own = change.story if isinstance(change, SetFields) else "US-004"
        for other in plan.stories:
            if other.id != own:
                block = plan_md.story_block(source.encode(), other.id)
                assert plan_md.story_block(new.encode(), other.id).split() == block.split()


LINES = ["", "", "text", "- a", "  - b", "- [ ] c", "    code", "> q", "```", "<!-- x", "-->", "---", "# h"]
LINES += ["#### h", "- [ ] US-001: One", "- [x] US-002: Two", "  - [ ] US-003: x", "* [ ] **US-004**: y"]
LINES += ["1. [ ] US-005", "- [ ] US-", "### US-001: One", "### US-002", "## [ ] US-003: x", "### US-004"]
LINES += ["Verify: `a`", "- Verify: `a`", "Notes: n", "Depends on: US-001", "**Acceptance Criteria:**", "#### Notes"]
LINES += ["- **Verify:**", "Notes:", "\\# e", "[ ] d", "é"]


@settings(max_examples=400)
@given(st.lists(st.sampled_from(LINES), max_size=14).map("\n".join), changes())
def test_untidy_plans_are_refused_or_changed_as_meant(text: str, change: Change) -> None:
    try:
        plan = read(text)
        meant = apply(plan, [change])
        new = edited(text, change)
    except (PlanError, IllegalChange):
        return
    assert said(read(new)) == said(meant)


@settings(max_examples=400)
@given(st.binary(max_size=60), st.lists(st.sampled_from(LINES), max_size=8), st.integers(0, 200))
def test_any_bytes_are_read_or_refused(junk: bytes, rows: list[str], at: int) -> None:
    source = "\n".join(rows).encode()
    found: Sequence[object] = ()
    try:
        found = plan_md.parse(source[:at] + junk + source[at:], "f").stories
    except PlanError as error:
        found = error.problems
    assert found


PLAIN = ["- [ ] US-001: One", "- [x] US-002: Two  ", "- [X] US-003: [é](x)", "  - a", "  - [x] b", "  - Verify: `a`"]
PLAIN += ["", "", "  - Depends on: US-001", "  - Notes: n", "  - ", "text", "# Plan", "## Part ##", "  - \\# e", " "]
BLOCKS = ["### US-001: One", "### US-002: Two", "- a", "- [ ] b", "text", "Verify: `a`", "- Verify: `b`, `c`"]
BLOCKS += ["Notes: n", "**Acceptance Criteria:**", "", "", "", "## Part", "Depends on: US-001", "Description: d"]
BLOCKS += ["- 1\\. e", "text  "]


@settings(max_examples=300)
@given(
    st.lists(st.sampled_from(PLAIN), max_size=7),
    st.lists(st.sampled_from(BLOCKS), max_size=9),
    st.sampled_from(["\n", "\n", "\r\n"]),
    st.sampled_from(["", "\ufeff"]),
)
def test_a_mark_changes_the_boxes_of_its_story_and_nothing_else(
    items: list[str], blocks: list[str], end: str, mark: str
) -> None:
    text = mark + end.join(["- [ ] US-009: Nine", *items, *blocks])
    try:
        plan = read(text)
    except PlanError:
        return
    for one in plan.stories:
        state = State.TODO if one.is_done else State.DONE
        marked = edited(text, SetFields(one.id, {"state": state}))
        assert sum(a != b for a, b in zip(text, marked, strict=True)) in (1, 2)  # the item, the heading
        assert said(read(marked)) == said(apply(plan, [SetFields(one.id, {"state": state})]))


def test_plans_are_found_by_number(tmp_path: Path) -> None:
    for name in ("PRD-10", "PRD-2", "PRD-1", "PRD-0", "PRD-01", "PRD-x", "prd-3", "PRD-4"):
        (tmp_path / ".ralph" / name).mkdir(parents=True)
        if name != "PRD-4":
            (tmp_path / ".ralph" / name / "plan.md").write_text("- [ ] US-001: a\n")
    assert [ref.name for ref in plan_md.detect(tmp_path)] == ["1", "2", "10"]
    assert plan_md.refer(tmp_path, "7").path == tmp_path / ".ralph" / "PRD-7" / "plan.md"
    assert plan_md.refer(tmp_path, "PRD-7") == plan_md.refer(tmp_path, "7")
    for bad in ("0", "01", "-1", "1.5", "../1", "x", ""):
        with pytest.raises(UsageError):
            plan_md.refer(tmp_path, bad)


def test_the_prompt_of_the_agents_folder_wins_when_it_is_there(tmp_path: Path) -> None:
    ref = plan_md.refer(tmp_path, "1")
    assert plan_md.locations(ref).prompt == ref.folder / "prompt.md"
    shared = tmp_path / ".agents" / "ralph" / "PROMPT_simplified.md"
    shared.parent.mkdir(parents=True)
    shared.write_text("x")
    assert plan_md.locations(ref).prompt == shared
    assert plan_md.locations(ref).progress == ref.folder / "progress.md"
    assert plan_md.locations(ref).requirements == ref.folder / "prd.md"


def test_a_fresh_plan_has_an_example_with_the_checks_of_the_project(tmp_path: Path) -> None:
    facts = ProjectFacts(name="Log in", date="2026-01-31", verify=("make test", "a `b`"))
    files = plan_md.scaffold(plan_md.refer(tmp_path, "3"), facts)
    assert set(files) == {".ralph/PRD-3/plan.md", ".ralph/PRD-3/progress.md"}
    found = story(files[".ralph/PRD-3/plan.md"])
    assert found.verify == ("make test", "a `b`")
    assert found.criteria
    assert found.description
