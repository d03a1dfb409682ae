"""What every layout promises, whatever it looks like. A new one is tested here as soon as it is in the table."""

from __future__ import annotations

import difflib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ralph.core.changes import AddStory, Change, MoveStory, RemoveStory, SetFields, apply
from ralph.core.errors import IllegalChange, PlanError, UsageError
from ralph.core.plan import Order, Plan, State, Story
from ralph.core.ports import Layout, ProjectFacts
from ralph.core.problems import Problem
from ralph.core.review import Review, ReviewStatus
from ralph.core.select import next_story
from ralph.plans.plan_edits import next_id
from ralph.plans.registry import LAYOUTS, layout
from support.plans import SAMPLES, plan_name, sample

NAMES = LAYOUTS.built_in()
EVERY = pytest.mark.parametrize("name", NAMES)
FACTS = ProjectFacts(name="reports", date="2026-01-31T09:30:00Z", branch="ralph/reports", verify=("make test",))
BOM = b"\xef\xbb\xbf"


def variants(name: str, stories: int = 4) -> dict[str, bytes]:
    """The same plan in the ways that editors and people write it."""
    plain = sample(name, stories)
    odd = sample(name, stories, odd=True)
    return {
        "plain": plain,
        "odd": odd,
        "crlf": odd.replace(b"\n", b"\r\n"),
        "bom": BOM + odd,
        "no newline at the end": odd.rstrip(b"\n"),
        "more newlines at the end": odd + b"\n\n",
    }


def said(plan: Plan, form: Layout) -> list[dict[str, Any]]:
    """What the format can say about the stories. By file order, the priority is only a number in the file."""
    fields = sorted(form.SPEAKS - ({"priority"} if plan.order is Order.FILE else set()) | {"id"})
    return [{name: getattr(story, name) for name in fields} for story in plan.stories]


def changed(old: bytes, new: bytes) -> tuple[bytes, bytes]:
    """What is left of both without their common start and end."""
    start = len(_common(old, new))
    end = len(_common(old[start:][::-1], new[start:][::-1]))
    return old[start : len(old) - end], new[start : len(new) - end]


def _common(one: bytes, other: bytes) -> bytes:
    for at, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return one[:at]
    return min(one, other, key=len)


def test_every_layout_has_a_sample() -> None:
    assert set(SAMPLES) == set(NAMES)


@EVERY
def test_a_layout_says_who_it_is(name: str) -> None:
    form = layout(name)
    assert name == form.NAME
    assert "\n" not in form.TITLE
    assert form.TITLE
    assert set(Story.__struct_fields__) >= form.SPEAKS
    assert {"id", "title", "state"} <= form.SPEAKS
    assert {State.TODO, State.DONE} <= form.STATES


@EVERY
@pytest.mark.parametrize("stories", [1, 2, 25])
def test_the_sample_is_read(name: str, stories: int) -> None:
    plan = layout(name).parse(sample(name, stories), "f")
    assert len(plan.stories) == stories
    assert plan.count(State.DONE) == stories // 2
    assert plan.stories[0].title == "Export report 1 as a file"
    following = next_story(plan)
    assert following is plan.stories[stories // 2]


@EVERY
def test_every_way_to_write_a_file_reads_the_same(name: str) -> None:
    form = layout(name)
    plans = {way: form.parse(source, "f") for way, source in variants(name).items()}
    for way, plan in plans.items():
        assert said(plan, form) == said(plans["plain"], form), way


@EVERY
def test_reading_twice_gives_the_same_plan(name: str) -> None:
    source = bytearray(sample(name, 5, odd=True))
    kept = bytes(source)
    assert layout(name).parse(bytes(source), "f") == layout(name).parse(kept, "f")
    assert source == kept


@EVERY
def test_a_scaffold_is_found_and_read(name: str, tmp_path: Path) -> None:
    form = layout(name)
    assert form.detect(tmp_path) == []
    ref = form.refer(tmp_path, plan_name(name))
    assert (ref.layout, ref.root) == (name, tmp_path)
    files = form.scaffold(ref, FACTS)
    for path, text in files.items():
        assert not Path(path).is_absolute()
        target = tmp_path / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    assert form.detect(tmp_path) == [ref]
    plan = form.parse(ref.path.read_bytes(), str(ref.path))
    assert plan.count(State.TODO) == len(plan.stories) > 0
    where = form.locations(ref)
    assert where.plan == ref.path
    assert where.archive.is_relative_to(tmp_path)


@EVERY
def test_a_scaffold_is_found_by_its_own_layout_only(name: str, tmp_path: Path) -> None:
    form = layout(name)
    for path, text in form.scaffold(form.refer(tmp_path, plan_name(name)), FACTS).items():
        target = tmp_path / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    assert [other for other in NAMES if layout(other).detect(tmp_path)] == [name]


@EVERY
@pytest.mark.parametrize("bad", ["../x", "/etc", "a/b", "a\0b", "a\nb", "x" * 300, "con", "-n", ".hidden", "..", " "])
def test_a_name_cannot_leave_its_folder(name: str, bad: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        layout(name).refer(tmp_path, bad)


@EVERY
def test_detecting_reads_nothing_and_follows_no_link(name: str, tmp_path: Path) -> None:
    """A link in place of the plan is detected, for the reader to refuse; a link to a folder is not followed."""
    form = layout(name)
    root, elsewhere = tmp_path / "root", tmp_path / "elsewhere"
    ref = form.refer(root, plan_name(name))
    ref.folder.mkdir(parents=True)
    ref.path.symlink_to(elsewhere / "nothing")
    assert form.detect(root) == [ref]
    ref.path.unlink()
    ref.path.write_bytes(sample(name, 1))
    for folder in {ref.folder, root / ref.folder.relative_to(root).parts[0]}:
        folder.rename(elsewhere)
        folder.symlink_to(elsewhere, target_is_directory=True)
        assert form.detect(root) == []
        folder.unlink()
        elsewhere.rename(folder)
    assert form.detect(root) == [ref]


@EVERY
@pytest.mark.parametrize("way", ["plain", "odd", "crlf", "bom", "no newline at the end", "more newlines at the end"])
def test_marking_a_story_changes_only_the_bytes_that_say_so(name: str, way: str) -> None:
    form = layout(name)
    source = variants(name)[way]
    for story in form.parse(source, "f").stories:
        other = State.TODO if story.is_done else State.DONE
        marked = form.edit(source, [SetFields(story.id, {"state": other})])
        again = form.parse(marked, "f").story(story.id)
        assert again is not None
        assert again.state is other
        old, new = changed(source, marked)
        assert 0 < len(old) <= len(b"false")
        assert 0 < len(new) <= len(b"false")
        assert b"\n" not in old + new
        assert form.edit(marked, [SetFields(story.id, {"state": story.state})]) == source


@EVERY
def test_no_change_is_no_change(name: str) -> None:
    form = layout(name)
    for way, source in variants(name).items():
        assert form.edit(source, []) == source, way
        same = [SetFields(s.id, {"state": s.state, "title": s.title}) for s in form.parse(source, "f").stories]
        assert form.edit(source, same) == source, way


@EVERY
def test_moving_there_and_back_restores_the_file(name: str) -> None:
    form = layout(name)
    for way, source in variants(name).items():
        first, second = form.parse(source, "f").stories[:2]
        moved = form.edit(source, [MoveStory(second.id, first.id)])
        assert [s.id for s in form.parse(moved, "f").stories][:2] == [second.id, first.id], way
        assert form.edit(moved, [MoveStory(first.id, second.id)]) == source, way


@EVERY
def test_an_added_story_changes_no_line_that_was_there(name: str) -> None:
    form = layout(name)
    for way, source in variants(name).items():
        plan = form.parse(source, "f")
        story = Story(id=next_id(s.id for s in plan.stories), title="Print é", **_needed(form))
        for after in (plan.stories[0].id, None):
            added = form.edit(source, [AddStory(story, after)])
            read = form.parse(added, "f")
            at = 1 if after else len(plan.stories)
            assert [s.id for s in read.stories] == [s.id for s in (*plan.stories[:at], story, *plan.stories[at:])], way
            lost = [line for line in difflib.ndiff(_lines(source), _lines(added)) if line.startswith("- ")]
            # A comma or a line end may have to follow what was last before.
            assert all(line[2:] + "," in _lines(added) for line in lost), (way, lost)
            assert form.edit(added, [RemoveStory(story.id)]).rstrip() == source.rstrip(), way


def _lines(source: bytes) -> list[str]:
    return source.decode().splitlines()


@EVERY
def test_what_is_not_there_cannot_be_changed(name: str) -> None:
    form = layout(name)
    source = sample(name, 3)
    ids = [story.id for story in form.parse(source, "f").stories]
    wrong: list[Change] = [
        SetFields("US-777", {"state": State.DONE}),
        SetFields(ids[0], {"id": "US-778"}),
        SetFields(ids[0], {"no_such_field": 1}),
        RemoveStory("US-777"),
        MoveStory("US-777"),
        MoveStory(ids[0], "US-777"),
        MoveStory(ids[0], ids[0]),
        AddStory(Story(id=ids[1], title="again", **_needed(form))),
        AddStory(Story(id=next_id(ids), title="new", **_needed(form)), after="US-777"),
    ]
    for change in wrong:
        with pytest.raises(IllegalChange):
            form.edit(source, [change])


@EVERY
def test_a_state_the_format_cannot_say_is_refused(name: str) -> None:
    form = layout(name)
    source = sample(name, 2)
    for state in set(State) - form.STATES:
        with pytest.raises(IllegalChange):
            form.edit(source, [SetFields(form.parse(source, "f").stories[1].id, {"state": state})])


def _needed(form: Layout) -> dict[str, Any]:
    """Fields without which some layouts have no valid story."""
    fields: dict[str, Any] = {"criteria": ("It prints",), "priority": 7.5, "notes": "n"}
    return {name: value for name, value in fields.items() if name in form.SPEAKS}


WORD = st.text("abcxyzEZ019éß日本–", min_size=1, max_size=6)
LINE = st.lists(WORD, min_size=1, max_size=4).map(" ".join)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "title": LINE,
    "description": LINE,
    "criteria": st.lists(LINE, min_size=1, max_size=4).map(tuple),
    "priority": st.one_of(st.integers(1, 99), st.sampled_from([0.5, 1.25, 2.0])),
    "review": st.builds(Review, st.sampled_from([None, *ReviewStatus]), st.integers(0, 9), LINE),
    "notes": LINE,
    "verify": st.lists(LINE, max_size=3).map(tuple),
    "touches": st.lists(LINE, max_size=3).map(tuple),
    "attempts": st.integers(0, 9),
}


def legal_change(data: st.DataObject, plan: Plan, form: Layout) -> Change:
    """One that leads to a valid plan again: nothing depends on what is gone, nor on what comes later by id."""
    ids = [story.id for story in plan.stories]
    needed = {wanted for story in plan.stories for wanted in story.depends_on}
    story = data.draw(st.sampled_from(plan.stories))
    match data.draw(st.sampled_from(["set", "set", "set", "add", "move", "remove"])):
        case "remove" if len(ids) > 1 and story.id not in needed:
            return RemoveStory(story.id)
        case "move" if len(ids) > 1:
            others = [i for i in ids if i != story.id]
            return MoveStory(story.id, data.draw(st.sampled_from([None, *others])))
        case "add":
            fields = _fields(data, plan, form, [n for n in VALUES if n in form.SPEAKS], before=len(ids))
            new = Story(id=next_id(sorted(ids)), **fields)
            return AddStory(new, data.draw(st.sampled_from([None, *ids])))
        case _:
            speakable = sorted(n for n in (*VALUES, "state", "depends_on") if n in form.SPEAKS)
            names = data.draw(st.lists(st.sampled_from(speakable), min_size=1, max_size=3, unique=True))
            return SetFields(story.id, _fields(data, plan, form, names, before=sorted(ids).index(story.id)))


def _fields(data: st.DataObject, plan: Plan, form: Layout, names: list[str], before: int) -> dict[str, Any]:
    fields = {name: data.draw(VALUES[name], name) for name in names if name in VALUES}
    if "state" in names:
        fields["state"] = data.draw(st.sampled_from(sorted(form.STATES)))
    if "depends_on" in names:
        earlier = sorted(story.id for story in plan.stories)[:before]
        fields["depends_on"] = tuple(data.draw(st.lists(st.sampled_from(earlier), unique=True))) if earlier else ()
    return fields


@EVERY
@given(data=st.data())
@settings(max_examples=60)
def test_editing_the_text_means_the_same_as_changing_the_plan(name: str, data: st.DataObject) -> None:
    form = layout(name)
    source = data.draw(st.sampled_from(list(variants(name).values())))
    plan = form.parse(source, "f")
    changes: list[Change] = []
    expected = plan
    for _ in range(data.draw(st.integers(1, 5))):
        change = legal_change(data, expected, form)
        try:
            form.edit(form.edit(source, changes), [change])
        except IllegalChange:
            continue  # a layout may refuse what it cannot say; what it accepts, it must get right
        changes.append(change)
        expected = apply(expected, [change])
    edited = form.edit(source, changes)
    assert said(form.parse(edited, "f"), form) == said(expected, form)
    step_by_step = source
    for change in changes:
        step_by_step = form.edit(step_by_step, [change])
    assert step_by_step == edited


@EVERY
@given(data=st.data())
@settings(max_examples=40)
def test_stories_that_are_not_edited_keep_their_lines(name: str, data: st.DataObject) -> None:
    form = layout(name)
    source = data.draw(st.sampled_from(list(variants(name).values())))
    plan = form.parse(source, "f")
    story = data.draw(st.sampled_from(plan.stories))
    names = [n for n in ("title", "criteria", "notes", "verify", "touches") if n in form.SPEAKS]
    fields = _fields(data, plan, form, data.draw(st.lists(st.sampled_from(names), min_size=1, unique=True)), 0)
    try:
        edited = form.edit(source, [SetFields(story.id, fields)])
    except IllegalChange:
        return
    gone = Counter(source.split(b"\n")) - Counter(edited.split(b"\n"))
    for other in plan.stories:
        if other.id != story.id:
            assert not any(other.title.encode() in line for line in gone)


@EVERY
@pytest.mark.parametrize(
    "spoil",
    [lambda s: s + b"\0", lambda s: s + b"\xff", lambda s: s.replace(b"Export", b"\xc3\x28", 1), lambda s: b"\0" * 9],
    ids=["nul", "not utf-8 at the end", "not utf-8 inside", "only nul"],
)
def test_bytes_that_are_no_text_are_refused_with_their_line(name: str, spoil: Any) -> None:
    with pytest.raises(PlanError) as caught:
        layout(name).parse(spoil(sample(name, 2)), "plan.file")
    assert caught.value.where is not None
    assert caught.value.where.file == "plan.file"
    assert caught.value.where.line
    assert caught.value.hint


@EVERY
def test_a_repeated_id_is_refused(name: str) -> None:
    form = layout(name)
    source = sample(name, 3)
    first, second = (story.id.encode() for story in form.parse(source, "f").stories[:2])
    _refused(form, source.replace(second, first), "duplicate-id")


@EVERY
@pytest.mark.parametrize(
    ("wanted", "code"),
    [([[], ["US-777"]], "unknown-dependency"), ([[], [1]], "self-dependency"), ([[1], [0]], "dependency-cycle")],
)
def test_dependencies_that_cannot_be_met_are_refused(name: str, wanted: list[list[Any]], code: str) -> None:
    form = layout(name)
    if "depends_on" not in form.SPEAKS:
        pytest.skip("this layout has no dependencies")
    source = sample(name, 2)
    ids = [story.id for story in form.parse(source, "f").stories]
    try:
        for story, needs in zip(ids, wanted, strict=True):
            names = tuple(ids[need] if isinstance(need, int) else need for need in needs)
            source = form.edit(source, [SetFields(story, {"depends_on": names})])
    except IllegalChange:
        return  # a layout may look at the whole plan after each edit; then it is not even written
    _refused(form, source, code)


def _refused(form: Layout, source: bytes, code: str) -> None:
    with pytest.raises(PlanError) as caught:
        form.parse(source, "plan.file")
    assert code in [problem.code for problem in caught.value.problems]
    for problem in caught.value.problems:
        assert problem.where.file == "plan.file"
        assert problem.where.line or problem.where.path
        assert problem.hint


@EVERY
@given(data=st.data())
@settings(max_examples=120)
def test_damaged_files_are_read_or_refused_and_nothing_else(name: str, data: st.DataObject) -> None:
    form = layout(name)
    source = bytearray(data.draw(st.sampled_from(list(variants(name, 3).values()))))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(source)))
        match data.draw(st.sampled_from(["cut", "insert", "replace", "repeat"])):
            case "cut":
                del source[at : at + data.draw(st.integers(1, 40))]
            case "insert":
                source[at:at] = data.draw(st.one_of(st.binary(max_size=5), st.sampled_from(TOKENS)))
            case "replace":
                source[at : at + 1] = data.draw(st.binary(min_size=1, max_size=1))
            case _:
                source[at:at] = source[at : at + data.draw(st.integers(1, 200))]
    plan = _read_or_refused(form, bytes(source))
    if plan is not None:
        assert form.edit(bytes(source), []) == bytes(source)
        assert len({story.id for story in plan.stories}) == len(plan.stories)


def _read_or_refused(form: Layout, source: bytes) -> Plan | None:
    found: tuple[Problem, ...] = ()
    try:
        return form.parse(source, "plan.file")
    except PlanError as error:
        found = error.problems
    assert found
    assert all(problem.where.file == "plan.file" for problem in found)
    return None


TOKENS = [b"[", b"]", b"{", b"}", b'"', b":", b",", b"\\", b"\\u", b"null", b"1e999", b"NaN", b"-", b"```", b"<!--"]
