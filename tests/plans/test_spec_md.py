"""`spec.md`: steps, review steps, beads, and the budget of tokens."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ralph.core.changes import AddStory, Change, MoveStory, RemoveStory, SetFields, apply
from ralph.core.errors import IllegalChange, PlanError
from ralph.core.plan import Order, Plan, State, Story
from ralph.core.ports import ProjectFacts
from ralph.core.select import next_story
from ralph.plans import spec_md

SOURCE = """\
# Database

## 1. Schema

- [x] **1.1** Create database schema [TASK-abc]
- [ ] **1.2** Add validation logic [br-12ab]
  - an empty name is refused
  - Verify: `make test`
- [ ] **1.10**: See [the docs](docs.md)
- [ ] **1.R** Review: tests pass, no bugs [TASK-ghi]

<!-- - [ ] **9.9** not a step -->
"""


def read(text: str) -> Plan:
    return spec_md.parse(text.encode(), "spec.md")


def edited(text: str, *changes: Change) -> str:
    return spec_md.edit(text.encode(), changes).decode()


def test_steps_are_read_in_the_order_of_the_file() -> None:
    plan = read(SOURCE)
    assert plan.name == "Database"
    assert plan.order is Order.FILE
    assert [(s.id, s.title, s.ref, s.state, s.is_review_step, s.line) for s in plan.stories] == [
        ("1.1", "Create database schema", "TASK-abc", State.DONE, False, 5),
        ("1.2", "Add validation logic", "br-12ab", State.TODO, False, 6),
        ("1.10", "See [the docs](docs.md)", "", State.TODO, False, 9),
        ("1.R", "Review: tests pass, no bugs", "TASK-ghi", State.TODO, True, 10),
    ]
    assert plan.stories[1].criteria == ("an empty name is refused",)
    assert plan.stories[1].verify == ("make test",)
    following = next_story(plan)
    assert following is not None
    assert following.id == "1.2"


@pytest.mark.parametrize(
    ("rest", "title", "ref"),
    [
        ("** Title", "Title", ""),
        ("**: Title", "Title", ""),
        (":** Title", "Title", ""),
        ("** Title [TASK-abc]", "Title", "TASK-abc"),
        ("** Title [proj-a1b2]  ", "Title", "proj-a1b2"),
        ("** Title [my-proj-a1b2.3]", "Title", "my-proj-a1b2.3"),
        ("** [TASK-abc]", "", "TASK-abc"),
        ("** Title [a](b)", "Title [a](b)", ""),
        ("** Title [a][b-c]", "Title [a][b-c]", ""),
        ("** Title [2026-01-29]", "Title [2026-01-29]", ""),
        ("** Title [TASK]", "Title [TASK]", ""),
        ("** Title [TASK-abc] more", "Title [TASK-abc] more", ""),
        ("** Title [--rm-rf]", "Title [--rm-rf]", ""),
        ("** Title [TASK-a;b]", "Title [TASK-a;b]", ""),
        ("**", "", ""),
    ],
)
def test_a_title_and_a_bead_are_told_apart(rest: str, title: str, ref: str) -> None:
    for mark in ("- [ ] **", "* [x] **", "1. [X] **"):
        step = read(f"{mark}2.1{rest}\n").stories[0]
        assert (step.id, step.title, step.ref) == ("2.1", title, ref)


@pytest.mark.parametrize("step_id", ["1.1", "2.10", "1.R", "12.34", "1.2.3", "2.R1"])
def test_ids_have_a_phase_and_a_number(step_id: str) -> None:
    assert [s.id for s in read(f"- [ ] **{step_id}** x\n").stories] == [step_id]


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        ("# Spec\n", "no-stories", None),
        ("- [ ] something\n", "no-stories", None),
        ("- [ ] **1.1** a\n- [ ] **1** b\n", "bad-id", 2),
        ("- [ ] **1.r** a\n", "bad-id", 1),
        ("- [ ] **1.1a** a\n", "bad-id", 1),
        ("- [ ] 1.1 a\n", "bad-id", 1),
        ("- [ ] **1.1 a**\n", "bad-id", 1),
        ("- [ ] **1.1** a\n- [x] **1.1** b\n", "duplicate-id", 2),
        ("- [ ] **1.1** a\n  - Depends on: 1.9\n", "unknown-dependency", 1),
    ],
)
def test_what_is_wrong_is_said_with_its_line(text: str, code: str, line: int | None) -> None:
    with pytest.raises(PlanError) as caught:
        spec_md.parse(text.encode(), ".ralph/spec.md")
    problem = caught.value.problems[0]
    assert (problem.code, problem.where.line, problem.where.file) == (code, line, ".ralph/spec.md")
    assert problem.hint


def test_a_criterion_may_look_like_a_step() -> None:
    assert read("- [ ] **1.1** a\n  - [ ] 1.5 MB at most\n").stories[0].criteria == ("1.5 MB at most",)


def test_marking_a_step_changes_one_byte() -> None:
    for newline in ("\n", "\r\n"):
        source = SOURCE.replace("\n", newline)
        marked = edited(source, SetFields("1.2", {"state": State.DONE}))
        assert [(a, b) for a, b in zip(source, marked, strict=True) if a != b] == [(" ", "x")]
        assert edited(marked, SetFields("1.2", {"state": State.TODO})) == source


def test_a_new_title_keeps_the_bead() -> None:
    new = edited(SOURCE, SetFields("1.2", {"title": "Validate"}))
    assert new == SOURCE.replace("Add validation logic", "Validate")
    empty = edited("- [ ] **1.1**\n", SetFields("1.1", {"title": "Named"}))
    assert read(empty).stories[0].title == "Named"


def test_a_step_is_added_with_its_bead_and_its_criteria() -> None:
    new = Story(id="1.3", title="Index", ref="TASK-9", criteria=("a", "- b"), verify=("make",), depends_on=("1.1",))
    text = edited(SOURCE, AddStory(new, "1.2"))
    added = "- [ ] **1.3** Index [TASK-9]\n  - a\n  - \\- b\n  - Verify: `make`\n  - Depends on: 1.1\n"
    assert text == SOURCE.replace("- [ ] **1.10**", added + "- [ ] **1.10**")
    assert edited(text, RemoveStory("1.3")) == SOURCE


def test_a_step_moves_with_what_is_nested_in_it() -> None:
    moved = edited(SOURCE, MoveStory("1.2", "1.1"))
    assert [s.id for s in read(moved).stories] == ["1.2", "1.1", "1.10", "1.R"]
    assert edited(moved, MoveStory("1.1", "1.2")) == SOURCE


@pytest.mark.parametrize(
    "change",
    [
        SetFields("1.10", {"title": "ends like [a-bead]"}),
        SetFields("1.1", {"title": "two\nlines"}),
        SetFields("1.1", {"state": State.IN_PROGRESS}),
        SetFields("1.1", {"depends_on": ("9.9",)}),
        AddStory(Story(id="US-001", title="x")),
        AddStory(Story(id="1.3", title="x", ref="no ref")),
        AddStory(Story(id="1.1", title="x")),
    ],
)
def test_what_cannot_be_said_is_refused(change: Change) -> None:
    with pytest.raises(IllegalChange):
        edited(SOURCE, change)


TEXTS = st.sampled_from(["text", "- b", "# h", "1. x", "`c`", "é", "[ ] q", "\\- w", "---", "> q", "<div>", "a [b](c)"])
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "state": st.sampled_from([State.TODO, State.DONE]),
    "title": st.sampled_from(["A title", "**b** x", "a [b](c)", "x: y"]),
    "description": st.lists(TEXTS, max_size=2).map("\n".join),
    "notes": st.lists(TEXTS, max_size=2).map("\n\n".join),
    "criteria": st.lists(TEXTS, max_size=3).map(tuple),
    "verify": st.lists(st.sampled_from(["make", "a `b`"]), max_size=2).map(tuple),
    "depends_on": st.sampled_from([(), ("1.1",)]),
}


@settings(max_examples=200)
@given(
    st.sampled_from([SOURCE, SOURCE.rstrip(), SOURCE.replace("\n", "\r\n"), SOURCE.replace("\n- ", "\n\n- ")]),
    st.sampled_from(["1.2", "1.10", "1.R"]),
    st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=3, unique=True),
    st.data(),
)
def test_every_field_can_be_set(source: str, step: str, names: list[str], data: st.DataObject) -> None:
    change = SetFields(step, {name: data.draw(VALUES[name], name) for name in names})
    new = edited(source, change)
    assert said(read(new)) == said(apply(read(source), [change]))
    kept = [line for line in source.splitlines() if "1.1**" in line or "9.9" in line or "## 1." in line]
    assert [line for line in new.splitlines() if line in kept] == kept


def said(plan: Plan) -> list[list[Any]]:
    return [[getattr(story, name) for name in sorted(spec_md.SPEAKS)] for story in plan.stories]


LINES = ["", "text", "- a", "  - b", "  - [ ] c", "    code", "> q", "```", "<!-- x", "-->", "---", "# h", "  text"]
LINES += ["- [ ] **1.1** One [TASK-1]", "- [x] **1.2**: Two", "  - [ ] **1.3** x", "* [ ] **1.R** y", "- [ ] **2** z"]
LINES += ["  - Verify: `a`", "  - Notes: n", "  Depends on: 1.1", "  - Depends on: 1.1", "- [ ] 1.5 x", "  - [ ] 1.5 y"]


@settings(max_examples=300)
@given(st.lists(st.sampled_from(LINES), max_size=12), st.sampled_from(["\n", "\r\n"]), st.binary(max_size=8))
def test_any_spec_is_read_or_refused(rows: list[str], newline: str, junk: bytes) -> None:
    found: Sequence[object] = ()
    try:
        found = spec_md.parse(newline.join(rows).encode() + junk, "f").stories
    except PlanError as error:
        found = error.problems
    assert found


PLAIN = [
    "- [ ] **1.1** One [TASK-1]",
    "- [x] **1.R** Two ",
    "- [ ] **2.1** [a](b)",
    "  - a",
    "  - [x] b",
    "",
    " ",
    "# h",
]
PLAIN += [
    "  - Verify: `a`",
    "  - Notes: n",
    "  - Depends on: 1.1",
    "  - Verify: no",
    "text",
    "## h ##",
    "  - [ ] 1.5 y",
    "  - ",
]


@settings(max_examples=300)
@given(st.lists(st.sampled_from(PLAIN), max_size=9), st.sampled_from(["\n", "\r\n"]))
def test_a_mark_changes_one_character(rows: list[str], newline: str) -> None:
    text = newline.join(["- [ ] **9.9** Nine", *rows])
    try:
        plan = spec_md.parse(text.encode(), "f")
    except PlanError:
        return
    for one in plan.stories:
        state = State.TODO if one.is_done else State.DONE
        marked = edited(text, SetFields(one.id, {"state": state}))
        assert sum(a != b for a, b in zip(text, marked, strict=True)) == 1
        assert [story.is_done for story in spec_md.parse(marked.encode(), "f").stories] == [
            story.is_done != (story.id == one.id) for story in plan.stories
        ]


def test_the_budget_counts_each_file_and_all_of_them() -> None:
    lines = spec_md.token_budget("x" * 4 * 450, "x" * (4 * 550 + 1), "x" * 40)
    assert [(line.name, line.tokens, line.budget, line.over) for line in lines] == [
        ("prompt", 450, 450, False),
        ("readme", 551, 550, True),
        ("spec", 10, 4000, False),
        ("total", 1011, 5000, False),
    ]
    assert spec_md.token_budget("x" * 1800, "x" * 2200, "x" * 16001)[3].over


def test_there_is_one_spec_in_a_workspace(tmp_path: Path) -> None:
    assert spec_md.detect(tmp_path) == []
    (tmp_path / ".ralph").mkdir()
    (tmp_path / ".ralph" / "spec.md").write_text(SOURCE)
    (ref,) = spec_md.detect(tmp_path)
    where = spec_md.locations(ref)
    assert where.plan == tmp_path / ".ralph" / "spec.md"
    assert where.readme == tmp_path / ".ralph" / "readme.md"
    assert where.prompt == tmp_path / "prompt.md"
    assert where.progress == tmp_path / ".ralph" / "progress.md"


def test_a_fresh_spec_has_steps_a_review_and_stays_in_its_budget(tmp_path: Path) -> None:
    facts = ProjectFacts(name="Log in", date="2026-01-31", verify=("make test",))
    files = spec_md.scaffold(spec_md.refer(tmp_path, ""), facts)
    assert set(files) == {".ralph/spec.md", ".ralph/readme.md"}
    plan = read(files[".ralph/spec.md"])
    assert [s.is_review_step for s in plan.stories] == [False, False, True]
    assert plan.stories[0].verify == ("make test",)
    assert not any(s.ref for s in plan.stories)
    assert not any(line.over for line in spec_md.token_budget("", files[".ralph/readme.md"], files[".ralph/spec.md"]))
