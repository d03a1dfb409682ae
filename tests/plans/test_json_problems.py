"""Broken JSON plans: each is refused with what is wrong, where, and what is expected."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ralph.core.errors import PlanError
from ralph.core.problems import Problem
from ralph.plans.registry import layout
from support.plans import sample

Spoil = Callable[[dict[str, Any], list[dict[str, Any]]], object]


def problems(source: bytes, name: str = "tasks.json") -> list[Problem]:
    with pytest.raises(PlanError) as caught:
        layout(name).parse(source, "plan.json")
    found = list(caught.value.problems)
    assert found
    for problem in found:
        assert problem.where.file == "plan.json"
        assert problem.where.line, problem
        assert problem.hint
    assert str(caught.value).startswith("plan.json:")
    return found


def spoiled(spoil: Spoil, name: str = "tasks.json") -> list[tuple[str, str]]:
    """Code and path of each problem of a sample after `spoil(document, stories)`."""
    document = json.loads(sample(name, 2))
    spoil(document, document["tasks" if name == "steps" else "userStories"])
    return [(p.code, p.where.path) for p in problems(json.dumps(document, indent=2).encode(), name)]


def text(old: bytes, new: bytes) -> list[Problem]:
    source = sample("tasks.json", 2)
    assert old in source
    return problems(source.replace(old, new, 1))


@pytest.mark.parametrize(
    ("source", "line", "column", "words"),
    [
        (b"", 1, 1, "empty"),
        (b"\xef\xbb\xbf \n", 2, 1, "empty"),
        (b'{"a": 1,\n}', 2, 1, "trailing comma before a closing bracket"),
        (b'{"a": [1,\n ]}', 2, 2, "trailing comma before a closing bracket"),
        (b'{"a": 1\n "b": 2}', 2, 2, "delimiter"),
        (b"{'a': 1}", 1, 2, "double quotes"),
        (b'{"a": 1} {}', 1, 10, "extra data"),
        (b'{"a": 1, // why\n "b": 2}', 1, 10, "comments are not allowed"),
        (b'{\n<<<<<<< HEAD\n"a": 1}', 2, 1, "merge conflict"),
        (b'{"a": "x', 1, 7, "unterminated"),
        (b'{"a": [1, 2', 1, 12, "ends too early"),
        (b'{"a": "\t"}', 1, 8, "invalid control character"),
        (b'{"a": tru}', 1, 7, "expecting value"),
        (b'{"a": 01}', 1, 8, "delimiter"),
    ],
)
def test_what_is_not_json_is_refused_with_line_and_column(source: bytes, line: int, column: int, words: str) -> None:
    [problem] = problems(source)
    assert (problem.code, problem.where.line, problem.where.column) == ("not-json", line, column)
    assert words in problem.message


@pytest.mark.parametrize("source", [b"[]", b'"x"', b"1", b"null", b"true"])
def test_a_document_that_is_no_object_is_refused(source: bytes) -> None:
    [problem] = problems(source)
    assert problem.code == "not-an-object"
    assert "userStories" in problem.message


@pytest.mark.parametrize("opening", [b"[", b'{"a":', b'{"project": [{"b": '])
def test_deep_nesting_is_refused(opening: bytes) -> None:
    assert [p.code for p in problems(opening * 100_000)] == ["too-deep"]


def test_deep_nesting_in_an_unknown_key_is_refused() -> None:
    deep = b'"x": ' + b"[" * 100_000 + b"]" * 100_000 + b', "passes"'
    assert [p.code for p in text(b'"passes"', deep)] == ["too-deep"]


def test_every_problem_is_reported_at_once() -> None:
    def spoil(document: dict[str, Any], stories: list[dict[str, Any]]) -> None:
        del document["branchName"], stories[0]["title"]
        document["description"] = 3
        stories[0].update(passes="yes", reviewCount=-1)
        stories[1].update(acceptanceCriteria=[], reviewStatus="fine", reviewFeedback=None, priority="high")

    assert spoiled(spoil) == [
        ("missing-field", ""),
        ("wrong-type", "description"),
        ("missing-field", "userStories[0]"),
        ("wrong-type", "userStories[0].passes"),
        ("wrong-type", "userStories[0].reviewCount"),
        ("empty-list", "userStories[1].acceptanceCriteria"),
        ("wrong-type", "userStories[1].priority"),
        ("wrong-type", "userStories[1].reviewStatus"),
        ("wrong-type", "userStories[1].reviewFeedback"),
    ]


REQUIRED = {
    "tasks.json": (
        ["project", "branchName", "description", "userStories"],
        ["id", "title", "passes", "priority", "acceptanceCriteria", "reviewStatus", "reviewCount", "reviewFeedback"],
    ),
    "feature": (
        ["feature", "branchName", "description", "createdAt", "userStories"],
        ["id", "title", "acceptanceCriteria", "priority", "passes"],
    ),
    "steps": (["tasks"], ["id", "title", "status"]),
}
OPTIONAL = {
    "tasks.json": (["verifyCommands"], ["description", "dependsOn"]),
    "feature": ([], ["description", "notes", "dependsOn"]),
    "steps": (["project"], ["description", "acceptanceCriteria", "priority", "dependsOn", "notes", "attempts"]),
}
FIELDS = [(name, key, True) for name in REQUIRED for key in REQUIRED[name][0]]
FIELDS += [(name, key, False) for name in REQUIRED for key in REQUIRED[name][1]]


@pytest.mark.parametrize(("name", "key", "of_document"), FIELDS)
def test_a_missing_field_is_named(name: str, key: str, of_document: bool) -> None:
    document = json.loads(sample(name, 2))
    stories = document["tasks" if name == "steps" else "userStories"]
    del (document if of_document else stories[1])[key]
    [problem] = problems(json.dumps(document, indent=2).encode(), name)
    assert problem.code == "missing-field"
    assert key in problem.message
    assert f'"{key}"' in problem.hint


@pytest.mark.parametrize("name", list(OPTIONAL))
def test_optional_fields_may_be_missing(name: str) -> None:
    document = json.loads(sample(name, 2))
    for key in OPTIONAL[name][0]:
        del document[key]
    for story in document["tasks" if name == "steps" else "userStories"]:
        for key in OPTIONAL[name][1]:
            del story[key]
    assert len(layout(name).parse(json.dumps(document).encode(), "f").stories) == 2


@pytest.mark.parametrize("name", list(REQUIRED))
@pytest.mark.parametrize("wrong", [None, 7, {"a": 1}, [[]]])
def test_a_value_of_the_wrong_type_is_refused(name: str, wrong: Any) -> None:
    key = "tasks" if name == "steps" else "userStories"
    assert spoiled(lambda _, stories: stories[1].update(title=wrong), name) == [("wrong-type", f"{key}[1].title")]
    assert spoiled(lambda document, _: document.update({key: {"a": wrong}}), name) == [("wrong-type", key)]
    if not isinstance(wrong, dict):
        assert spoiled(lambda _, stories: stories.append(wrong), name) == [("wrong-type", f"{key}[2]")]


@pytest.mark.parametrize(
    ("field", "value", "code", "path"),
    [
        ("acceptanceCriteria", [], "empty-list", "acceptanceCriteria"),
        ("acceptanceCriteria", ["a", ""], "empty-text", "acceptanceCriteria[1]"),
        ("acceptanceCriteria", ["a", " \n"], "empty-text", "acceptanceCriteria"),
        ("acceptanceCriteria", ["a", 3], "wrong-type", "acceptanceCriteria[1]"),
        ("acceptanceCriteria", "a", "wrong-type", "acceptanceCriteria"),
        ("reviewCount", -1, "wrong-type", "reviewCount"),
        ("reviewCount", True, "wrong-type", "reviewCount"),
        ("reviewCount", 1.5, "wrong-type", "reviewCount"),
        ("reviewCount", "1", "wrong-type", "reviewCount"),
        ("reviewCount", 10**30, "wrong-type", "reviewCount"),
        ("reviewStatus", "done", "wrong-type", "reviewStatus"),
        ("reviewStatus", False, "wrong-type", "reviewStatus"),
        ("priority", True, "wrong-type", "priority"),
        ("priority", 10**30, "wrong-type", "priority"),
        ("priority", None, "wrong-type", "priority"),
        ("passes", 1, "wrong-type", "passes"),
        ("dependsOn", "US-001", "wrong-type", "dependsOn"),
        ("dependsOn", [""], "empty-text", "dependsOn[0]"),
        ("verify", [""], "empty-text", "verify[0]"),
        ("verify", " ", "empty-text", "verify"),
        ("touches", "src/a.py", "wrong-type", "touches"),
        ("touches", [1], "wrong-type", "touches[0]"),
        ("touches", [""], "empty-text", "touches[0]"),
        ("id", 3, "wrong-type", "id"),
        ("id", "", "bad-id", "id"),
        ("id", "a\nb", "bad-id", "id"),
        ("id", "a\x1b[2Jb", "bad-id", "id"),
        ("id", "x" * 101, "bad-id", "id"),
        ("id", "US-001", "duplicate-id", "id"),
        ("dependsOn", ["US-002"], "self-dependency", "id"),
        ("dependsOn", ["US-009"], "unknown-dependency", "id"),
        ("notes", None, "wrong-type", "notes"),
    ],
)
def test_a_story_with_one_wrong_value_is_refused(field: str, value: Any, code: str, path: str) -> None:
    found = spoiled(lambda _, stories: stories[1].update({field: value}))
    assert (code, f"userStories[1].{path}") in found
    assert len(found) == 1


def test_a_cycle_is_named() -> None:
    def spoil(_: object, stories: list[dict[str, Any]]) -> None:
        stories[0]["dependsOn"] = ["US-002"]

    assert spoiled(spoil) == [("dependency-cycle", "userStories[0].id")]
    document = json.loads(sample("tasks.json", 2))
    spoil(document, document["userStories"])
    assert "US-001 → US-002 → US-001" in problems(json.dumps(document).encode())[0].message


def test_a_long_cycle_is_found_and_cut_short() -> None:
    document = json.loads(sample("tasks.json", 3000))
    stories = document["userStories"]
    for story, following in zip(stories, [*stories[1:], stories[0]], strict=True):
        story["dependsOn"] = [following["id"]]
    [problem] = problems(json.dumps(document).encode())
    assert problem.code == "dependency-cycle"
    assert len(problem.message) < 250


def test_what_depends_on_an_unreadable_story_is_no_problem_of_its_own() -> None:
    assert spoiled(lambda _, stories: stories[0].update(title=None)) == [("wrong-type", "userStories[0].title")]


@pytest.mark.parametrize(
    ("new", "path", "column"),
    [
        (b'"passes": true, "passes": true', "userStories[0].passes", 33),
        (b'"passes": true, "passes" : true', "userStories[0].passes", 34),
        (b'"passes": true, "passes"\n: true', "userStories[0].passes", 3),
        (b'"passes": true, "\\u0070asses": true', "userStories[0].passes", 38),
        (b'"passes": true, "x": {"a": 1, "a": 2}', "userStories[0].x.a", 42),
        (b'"passes": true, "x": [{"": 1, "": 2}]', 'userStories[0].x[0][""]', 41),
        (b'"passes": true, "passes": true, "note": "a\\u003ab"', "userStories[0].passes", 33),
    ],
)
def test_a_key_that_comes_twice_is_refused(new: bytes, path: str, column: int) -> None:
    [problem] = text(b'"passes": true', new)
    assert (problem.code, problem.where.path, problem.where.column) == ("duplicate-key", path, column)


def test_a_key_of_the_document_that_comes_twice_is_refused() -> None:
    [problem] = text(b'"project"', b'"userStories": [],\n"project"')
    assert (problem.code, problem.where.path) == ("duplicate-key", "userStories")


PAIRS = st.tuples(
    st.sampled_from(['"notes"', '"n\\u006ftes"', '"x"', '"y:"', '"y\\u003a"', '":\\""', '"\\\\"']),
    st.sampled_from([":", " :", "\t: ", "\r\n:"]),
    st.sampled_from(['"a"', '"a: \\": \\u003a"', "1", '{"x": 1, "x" : 2}', '[{"y": {"x": ":"}}]']),
)


@given(st.lists(PAIRS, max_size=4), st.booleans())
@settings(max_examples=150)
def test_keys_that_come_twice_are_never_overlooked(pairs: list[tuple[str, str, str]], at_top: bool) -> None:
    more = "".join(f", {''.join(pair)}" for pair in pairs).encode()
    old = b'"project": "reports"' if at_top else b'"passes": false'
    source = sample("tasks.json", 1).replace(old, old + more)
    twice: list[str] = []

    def note(found: list[tuple[str, Any]]) -> None:
        keys = [key for key, _ in found]
        twice.extend({key for key in keys if keys.count(key) > 1})

    json.loads(source, object_pairs_hook=note)
    if twice:
        assert {p.where.path.rpartition(".")[2] for p in problems(source) if p.code == "duplicate-key"}
    else:
        layout("tasks.json").parse(source, "f")


def test_colons_in_texts_are_not_taken_for_keys() -> None:
    source = sample("tasks.json", 2).replace(b"Reports as", b'\\": \\u003a\\u003A : :\\\\')
    assert layout("tasks.json").parse(source, "f").description.startswith('": :: : :\\')


@pytest.mark.parametrize("number", [b"NaN", b"Infinity", b"-Infinity", b"1e999", b"-1e999", b"9" * 5000])
@pytest.mark.parametrize("key", [b'"priority"', b'"unknown"'])
def test_numbers_that_are_none_are_refused(number: bytes, key: bytes) -> None:
    found = text(b'"priority": 1,', key + b": " + number + b",")
    lines = sample("tasks.json", 2).splitlines()
    assert ("bad-number", lines.index(b'      "priority": 1,') + 1) in [(p.code, p.where.line) for p in found]


@pytest.mark.parametrize("half", [b"\\ud800", b"\\udc00", b"\\uD83D x", b"\\ud83d\\ud83d"])
def test_half_a_surrogate_pair_is_refused(half: bytes) -> None:
    [problem] = text(b"Reports as", half)
    assert (problem.code, problem.where.path) == ("bad-text", "description")
    assert [p.code for p in text(b'"project"', b'"x' + half + b'": 1, "project"')] == ["bad-text"]


def test_a_whole_surrogate_pair_is_read() -> None:
    source = sample("tasks.json", 1).replace(b"Reports as", b"\\ud83d\\ude80")
    assert layout("tasks.json").parse(source, "f").description.startswith("🚀")


def test_lines_are_counted_with_any_line_end_and_mark() -> None:
    source = b"\xef\xbb\xbf" + sample("tasks.json", 2).replace(b"\n", b"\r\n").replace(
        b'"passes": true', b'"passes": 1'
    )
    [problem] = problems(source)
    lines = source.decode().splitlines()
    assert '"passes": 1' in lines[(problem.where.line or 0) - 1]
    assert problem.where.column == 17


ODD_VALUES: list[Any] = [None, True, 0, -1, 1.5, 2**70, "", " ", "x", [], [""], ["US-001"], [1], {}, "2026", "\ud800"]


@given(st.data())
@settings(max_examples=60)
def test_a_file_with_problems_is_never_called_unreadable(data: st.DataObject) -> None:
    """The quick reader and the thorough one agree: what one refuses, the other can explain."""
    name = data.draw(st.sampled_from(["tasks.json", "feature", "steps"]))
    document = json.loads(sample(name, 2))
    stories = document["tasks" if name == "steps" else "userStories"]
    for _ in range(data.draw(st.integers(1, 3))):
        target = data.draw(st.sampled_from([document, *stories]))
        key = data.draw(st.sampled_from(sorted(target)))
        values: list[Any] = [
            None,
            True,
            0,
            -1,
            1.5,
            2**70,
            "",
            " ",
            "x",
            [],
            [""],
            ["US-001"],
            [1],
            {},
            "2026-01-01",
            "\ud800",
        ]
        target[key] = data.draw(st.sampled_from(values))
    source = json.dumps(document, indent=data.draw(st.sampled_from([None, 2]))).encode()
    found: tuple[Problem, ...] = ()
    try:
        layout(name).parse(source, "f")
    except PlanError as error:
        found = error.problems
    assert "unreadable" not in [problem.code for problem in found]


def test_a_plan_is_read_from_deep_inside_a_program() -> None:
    """Near the recursion limit the answer may be 'too deep', but it is an answer."""

    def deeper(levels: int) -> object:
        if levels:
            return deeper(levels - 1)
        try:
            return layout("tasks.json").parse(b"[" * 500 + b"]" * 500, "f")
        except PlanError as error:
            return error.problems[0].code

    assert deeper(sys.getrecursionlimit() - 300) in ("too-deep", "not-an-object")
