"""Edits of JSON plans as people and tools write them: what changes, to the letter."""

from __future__ import annotations

import difflib
from pathlib import Path

import pytest

from ralph.core.changes import AddStory, Change, RemoveStory, SetFields
from ralph.core.errors import IllegalChange
from ralph.core.plan import State, Story
from ralph.core.review import Review, ReviewStatus
from ralph.plans.registry import layout
from support.plans import sample

SAMPLES = Path(__file__).parent / "samples"


def difference(name: str, *changes: Change) -> list[str]:
    """The lines that are gone, then the lines that are new."""
    source = (SAMPLES / name).read_bytes()
    old = source.decode().split("\n")
    new = edit(name, source, *changes).decode().split("\n")
    steps = difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    gone = [f"- {line}" for step in steps if step[0] != "equal" for line in old[step[1] : step[2]]]
    return gone + [f"+ {line}" for step in steps if step[0] != "equal" for line in new[step[3] : step[4]]]


def edit(name: str, source: bytes, *changes: Change) -> bytes:
    form = layout({"tasks": "tasks.json"}.get(name.partition("-")[0], name.partition("-")[0]))
    form.parse(source, name)
    edited = form.edit(source, changes)
    form.parse(edited, name)
    return edited


@pytest.mark.parametrize("name", sorted(path.name for path in SAMPLES.glob("*.json")))
def test_samples_come_back_byte_for_byte(name: str) -> None:
    source = (SAMPLES / name).read_bytes()
    assert edit(name, source) == source


def test_approving_a_story_changes_the_lines_that_say_so() -> None:
    approved = Review(ReviewStatus.APPROVED, 2, "")
    fields = {"state": State.DONE, "review": approved, "notes": "The badge is hidden at 0."}
    assert difference("tasks-prettier.json", SetFields("US-002", fields)) == [
        '-       "passes": false,',
        '-       "reviewStatus": "changes_requested",',
        '-       "reviewCount": 1,',
        '-       "reviewFeedback": "The badge shows 0 for an empty basket; hide it.",',
        '-       "labels": ["ui"]',
        '+       "passes": true,',
        '+       "reviewStatus": "approved",',
        '+       "reviewCount": 2,',
        '+       "reviewFeedback": "",',
        '+       "labels": ["ui"],',
        '+       "notes": "The badge is hidden at 0."',
    ]


def test_a_criterion_is_added_and_the_others_stay() -> None:
    criteria = ("The badge shows 3 after 3 additions", "It is hidden at 0")
    assert difference("tasks-prettier.json", SetFields("US-002", {"criteria": criteria})) == [
        '-       "acceptanceCriteria": ["The badge shows 3 after 3 additions"],',
        '+       "acceptanceCriteria": ["The badge shows 3 after 3 additions", "It is hidden at 0"],',
    ]


def test_an_empty_list_is_filled_in_the_style_of_the_others() -> None:
    free = SetFields("US-002", {"depends_on": ()})
    assert difference("tasks-prettier.json", free, SetFields("US-001", {"depends_on": ("US-002",)})) == [
        '-       "dependsOn": []',
        '-       "dependsOn": ["US-001"],',
        '+       "dependsOn": ["US-002"]',
        '+       "dependsOn": [],',
    ]


def test_a_list_on_many_lines_stays_on_many_lines() -> None:
    fields = {"criteria": ("GET /geo answers 200", "An unknown café answers 404")}
    assert difference("steps-tabs.json", SetFields("2", fields)) == [
        '- \t\t\t\t"GET /geo answers 200"',
        '+ \t\t\t\t"GET /geo answers 200",',
        '+ \t\t\t\t"An unknown caf\\u00e9 answers 404"',
    ]


def test_a_new_story_is_written_like_its_neighbours() -> None:
    story = Story(id="C", title="Three", criteria=("d",), priority=3, notes="n")
    line = (
        '        {"id": "%s", "title": "%s", "acceptanceCriteria": ["%s"], "priority": %s, "passes": false, '
        '"reviewStatus": null, "reviewCount": 0, "reviewFeedback": "", "notes": "n"}'
    )
    two, three = line % ("B", "Two", "c", 2), line % ("C", "Three", "d", 3)
    assert difference("tasks-story-per-line.json", AddStory(story)) == [f"- {two}", f"+ {two},", f"+ {three}"]


def test_a_new_task_takes_over_numbers_and_names_of_keys() -> None:
    story = Story(id="3", title="Près d’ici", criteria=("GET /near answers 200",), depends_on=("2",))
    assert difference("steps-tabs.json", AddStory(story)) == [
        "+ \t\t},",
        "+ \t\t{",
        '+ \t\t\t"id": 3,',
        '+ \t\t\t"name": "Pr\\u00e8s d\\u2019ici",',
        '+ \t\t\t"acceptance_criteria": [',
        '+ \t\t\t\t"GET /near answers 200"',
        "+ \t\t\t],",
        '+ \t\t\t"dependencies": [',
        "+ \t\t\t\t2",
        "+ \t\t\t],",
        '+ \t\t\t"status": "todo"',
    ]


def test_a_minified_file_stays_minified() -> None:
    source = (SAMPLES / "feature-minified.json").read_bytes()
    story = Story(id="STORY-002", title="Log out", criteria=("It does",), priority=2, depends_on=("STORY-001",))
    edited = edit("feature-minified.json", source, AddStory(story), SetFields("STORY-001", {"state": State.DONE}))
    new = (
        b'"passes":true,"notes":""},{"id":"STORY-002","title":"Log out","description":"","acceptanceCriteria":'
        b'["It does"],"priority":2,"passes":false,"notes":"","dependsOn":["STORY-001"]}]}'
    )
    assert edited == source.replace(b'"passes":false,"notes":""}]}', new)


def test_the_first_story_of_an_empty_plan_gets_the_indentation_of_the_file() -> None:
    story = Story(id="1", title="First")
    source = b'{\r\n\t"tasks": []\r\n}\r\n'
    expected = b'{\r\n\t"tasks": [\r\n\t\t{\r\n\t\t\t"id": "1",\r\n\t\t\t"title": "First",\r\n\t\t\t"status": "todo"'
    assert edit("steps", source, AddStory(story)) == expected + b"\r\n\t\t}\r\n\t]\r\n}\r\n"
    assert edit("steps", b'{"tasks":[]}', AddStory(story)) == b'{"tasks":[{"id":"1","title":"First","status":"todo"}]}'


def test_the_last_story_can_be_removed() -> None:
    assert edit("steps", b'{"tasks": [\n  {"id": 1, "title": "", "status": "todo"}\n]}', RemoveStory("1")) == (
        b'{"tasks": []}'
    )


def test_unknown_keys_of_a_new_story_are_written_too() -> None:
    source = sample("tasks.json", 1)
    story = Story(id="N", title="", criteria=("c",), extra={"size": {"points": 3}, "cost": 0, "passes": True})
    read = layout("tasks.json").parse(edit("tasks.json", source, AddStory(story)), "f").stories[1]
    assert read.extra == {"size": {"points": 3}, "cost": 0}
    assert read.state is State.TODO


@pytest.mark.parametrize("name", ["tasks.json", "feature", "steps"])
@pytest.mark.parametrize(
    "fields",
    [
        {"title": "\ud800"},
        {"title": 3},
        {"priority": float("nan")},
        {"priority": float("inf")},
        {"priority": 1e300},
        {"criteria": ("a", "")},
        {"criteria": ("a", " \t")},
        {"criteria": "abc"},
        {"depends_on": ("",)},
        {"state": "halfway"},
        {"ref": "x"},
        {"line": 1},
    ],
)
def test_values_that_cannot_be_written_are_refused(name: str, fields: dict[str, object]) -> None:
    with pytest.raises(IllegalChange) as caught:
        layout(name).edit(sample(name, 2), [SetFields("US-002", fields)])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("story_id", ["", " ", "a\nb", "x" * 101, "a\x1b[2J"])
def test_a_new_story_needs_a_proper_id(story_id: str) -> None:
    with pytest.raises(IllegalChange, match="the story ID"):
        layout("steps").edit(sample("steps", 1), [AddStory(Story(id=story_id, title="t"))])


@pytest.mark.parametrize("name", ["tasks.json", "feature", "steps"])
def test_any_text_can_be_written(name: str) -> None:
    odd = 'quote " backslash \\ newline \n tab \t nul \x00 bell \x07 é 日本 🚀 \u2028 </script>'
    form = layout(name)
    fields = {"title": odd, "description": odd, "notes": odd, "criteria": (odd, "x"), "verify": (odd,)}
    edited = form.edit(sample(name, 2, odd=True), [SetFields("US-002", fields)])
    read = form.parse(edited, "f").stories[1]
    assert {key: getattr(read, key) for key in fields} == fields


def test_items_that_stay_in_a_list_keep_their_spelling() -> None:
    source = b'{"tasks": [{"id": 1, "title": "\xc3\xa9", "status": "todo", "criteria": ["\\u00e9",  "b" , "\\/c"]}]}'
    edited = edit("steps", source, SetFields("1", {"criteria": ("é", "B", "ü", "/c")}))
    assert edited == source.replace(b'"b" ,', '"B" , "ü" ,'.encode())


def test_one_command_stays_one_command() -> None:
    source = b'{"tasks": [{"id": 1, "title": "", "status": "todo", "verify": "make a"}]}'
    assert edit("steps", source, SetFields("1", {"verify": ("make b",)})) == source.replace(b"make a", b"make b")
    assert b'"verify": ["make b", "make c"]' in edit("steps", source, SetFields("1", {"verify": ("make b", "make c")}))
