"""Reading a planner's answer: every problem has its place, and whatever is said, nothing else is ever raised."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import jsonschema
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralph.core.changes import apply
from ralph.core.plan import Plan, State, Story
from ralph.planning.add import compose
from ralph.planning.answer import LAYERS, DraftStory, Form, in_order, read_answer, schema_for
from ralph.session.json_answer import Unusable
from support.planners import story

FORM = Form()


def problems(text: str, form: Form = FORM) -> list[str]:
    with pytest.raises(Unusable) as caught:
        read_answer(text, form)
    return [str(problem) for problem in caught.value.problems]


def stories(*given: dict[str, Any], **more: Any) -> str:
    return json.dumps({"stories": list(given), **more})


@pytest.mark.parametrize(
    ("text", "form", "said"),
    [
        ("", FORM, "the answer is empty"),
        ("  \n", FORM, "the answer is empty"),
        ("no", FORM, "the answer contains no JSON object"),
        ('{"stories": [}', FORM, "invalid JSON at line 1, column 14: Expecting value"),
        ('{"questions": [{"question": 1}]}', FORM, "questions[0].question: Expected `str`, got `int`"),
        ('{"storys": []}', FORM, "unknown field `storys`"),
        ('{"stories": [{"id": "a"}]}', FORM, "stories[0]: missing field `title`"),
        ("{}", FORM, "stories: the answer has no stories"),
        ('{"questions": [{"question": "x"}]}', Form(may_ask=False), "questions: questions cannot be answered now"),
        (stories(story("a"), questions=[{"question": "x"}]), FORM, "questions: the answer has both"),
        (stories(story("a"), story("a")), FORM, "stories[1].id: the id 'a' is used more than once"),
        (stories(story("a", dependsOn=["b"])), FORM, "stories[0].dependsOn: 'b' is not a story"),
        (stories(story("a", dependsOn=["a"])), FORM, "stories[0].dependsOn: a depends on itself"),
        (
            stories(story("a", dependsOn=["b"]), story("b", dependsOn=["a"])),
            FORM,
            "stories: circular dependency: a → b → a",
        ),
        (stories(story("a", acceptanceCriteria=[])), FORM, "stories[0].acceptanceCriteria: a story needs at least one"),
        (
            stories(story("a", acceptanceCriteria=["x\ny"])),
            FORM,
            "stories[0].acceptanceCriteria[0]: it has a line break",
        ),
        (stories(story("a", verify=["\x1b[31m"])), FORM, "stories[0].verify[0]: it has a control character"),
        (stories(story("a", description="\x1b]0;x\x07")), FORM, "stories[0].description: it has a control character"),
        (stories(story("a"), requirements="x\n" * 9000 + "\x07"), FORM, "requirements: it has a control character"),
        (stories(story("a", layer="cloud")), FORM, "stories[0].layer: 'cloud' is not a layer"),
        (stories(story("a")), Form(requirements=True), "requirements: the requirements are empty"),
        (stories(story("a")), Form(only_one=True), "stories[0].verify: the story needs a command that fails now"),
        (stories(story("a"), story("b")), Form(only_one=True), "stories: there are 2 stories"),
        (stories(story("US-1")), Form(known=frozenset({"US-1"})), "the id 'US-1' already exists in the plan"),
    ],
)
def test_a_problem_is_said_with_its_place(text: str, form: Form, said: str) -> None:
    assert any(said in problem for problem in problems(text, form)), problems(text, form)
    with pytest.raises(Unusable, match=r"^[a-z]") as caught:  # a sentence, also where there is no place to name
        read_answer(text, form)
    assert ": :" not in str(caught.value)


@pytest.mark.parametrize(
    "around",
    [
        "ANSWER",
        "Here it is:\n\n```json\nANSWER\n```\nDone.",
        "I looked at {x}.\nANSWER",
        "```\nANSWER\n```",
        "{}\nANSWER\n",
        "The answer: ANSWER",
    ],
)
def test_the_answer_is_found_among_other_words(around: str) -> None:
    given = json.dumps(json.loads(stories(story("a"))), indent=1)
    assert [s.id for s in read_answer(around.replace("ANSWER", given), FORM).stories] == ["a"]


NAMES = st.sampled_from(["stories", "questions", "id", "title", "question", "dependsOn"])
VALUES = st.recursive(
    st.none() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)


@given(st.text(max_size=200) | VALUES.map(json.dumps))
def test_whatever_is_said_only_one_error_comes_out(text: str) -> None:
    with contextlib.suppress(Unusable):
        read_answer(text, FORM)


@pytest.mark.parametrize("form", [FORM, Form(may_ask=False, requirements=True), Form(only_one=True)])
def test_the_schema_is_one_and_takes_what_is_taken(form: Form) -> None:
    schema = schema_for(form)
    jsonschema.Draft202012Validator.check_schema(schema)
    document = json.loads(stories(story("a", verify=["make test"], layer="api")))
    if form.requirements:
        document["requirements"] = "# Page"
    jsonschema.validate(document, schema)
    read_answer(json.dumps(document), form)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"stories": [{"id": 1}]}, schema)


def draft(label: str, *needs: str, layer: str = "") -> DraftStory:
    return DraftStory(label, label, "", (f"{label} is there",), needs, (), layer)


@given(st.data())
def test_what_others_need_comes_first(data: st.DataObject) -> None:
    labels = data.draw(st.lists(st.integers(0, 30), unique=True, min_size=1, max_size=12))
    layered = data.draw(st.booleans())
    made = [
        draft(
            str(n),
            *(str(m) for m in labels if m < n and data.draw(st.booleans())),
            layer=data.draw(st.sampled_from(LAYERS)) if layered else "",
        )
        for n in labels
    ]
    ordered = in_order(made)
    assert sorted(s.id for s in ordered) == sorted(map(str, labels))
    seen: set[str] = set()
    for one in ordered:
        assert set(one.depends_on) <= seen
        seen.add(one.id)


def test_free_stories_go_from_the_ground_up() -> None:
    made = [draft("page", layer="frontend"), draft("all", layer="integration"), draft("table", layer="schema")]
    assert [s.id for s in in_order(made)] == ["table", "page", "all"]
    assert [s.id for s in in_order([*made, draft("other")])] == ["page", "all", "table", "other"], "not all say a layer"


def test_new_ids_are_of_the_plans_kind_and_never_those_of_the_archive() -> None:
    plan = Plan(name="p", stories=(Story(id="task-7", title="x", priority=3, state=State.DONE),))
    made = compose(plan, [draft("a"), draft("b", "a", "task-7", "task-2")], taken=["task-2", "task-9"])
    assert made.ids == {"a": "task-10", "b": "task-11"}
    after = apply(plan, made.changes)
    assert [(s.id, s.priority, s.depends_on) for s in after.stories[1:]] == [
        ("task-10", 3, ()),
        ("task-11", 3, ("task-10", "task-7")),
    ]


def test_first_is_before_every_other_story() -> None:
    plan = Plan(name="p", stories=tuple(Story(id=f"US-{n}", title="x", priority=n) for n in (2, 3)))
    after = apply(plan, compose(plan, [draft("a")], first=True).changes)
    assert [(s.id, s.priority) for s in after.stories] == [("US-4", 2), ("US-2", 2), ("US-3", 3)]


def test_the_answer_can_be_kept_and_read_again() -> None:
    answer = read_answer(stories(story("a", verify=["make"])), FORM)
    assert read_answer(msgspec.json.encode(answer).decode(), FORM) == answer
