"""JSON text taken apart, changed in one place, and put together again."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ralph.plans.json_text import Array, Locator, Object, Style, dump, escapes_non_ascii, show_path, style_of

SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**53), 2**53), st.floats(allow_nan=False, allow_infinity=False), st.text()
)
KEYS = st.text(max_size=4)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=6
)
CONTAINERS: dict[Any, st.SearchStrategy[Any]] = {
    list: st.lists(VALUES, max_size=4),
    dict: st.dictionaries(KEYS, VALUES, max_size=4),
}
FEWER = settings(max_examples=40)
SPACE = st.text(" \t\r\n", max_size=3)


@st.composite
def written(draw: st.DrawFn, value: Any) -> str:
    """A value as somebody might have typed it: any white space, any escapes."""

    def space() -> str:
        return draw(SPACE)

    if isinstance(value, dict):
        pairs = [space() + draw(written(k)) + space() + ":" + draw(written(v)) for k, v in value.items()]
        return space() + "{" + (",".join(pairs) or space()) + "}" + space()
    if isinstance(value, list):
        return space() + "[" + (",".join(draw(written(item)) for item in value) or space()) + "]" + space()
    return space() + json.dumps(value, ensure_ascii=draw(st.booleans())) + space()


@st.composite
def containers(draw: st.DrawFn, kind: type) -> tuple[Any, bytes]:
    value: Any = draw(CONTAINERS[kind])
    try:
        return value, draw(written(value)).strip(" \t\r\n").encode()
    except UnicodeEncodeError:  # half a surrogate pair
        return kind(), b"[]" if kind is list else b"{}"


@FEWER
@given(containers(list))
def test_an_array_comes_back_byte_for_byte(sample: tuple[Any, bytes]) -> None:
    value, text = sample
    array = Array.of(text)
    assert array.join() == text
    assert [json.loads(item) for item in array.items] == value


@FEWER
@given(containers(dict))
def test_an_object_comes_back_byte_for_byte(sample: tuple[Any, bytes]) -> None:
    value, text = sample
    pieces = Object.of(text)
    assert pieces.join() == text
    assert {m.key: json.loads(m.value) for m in pieces.members} == value


@FEWER
@given(containers(dict), st.text("abc"), SCALARS.filter(lambda v: not isinstance(v, str)))
def test_setting_a_key_leaves_the_others_alone(sample: tuple[Any, bytes], key: str, new: Any) -> None:
    value, text = sample
    pieces = Object.of(text)
    before = {m.key: m.label + m.value for m in pieces.members}
    style = style_of(pieces)
    pieces.set(key, dump(new, style), style)
    assert json.loads(pieces.join()) == {**value, key: new}
    assert {m.key: m.label + m.value for m in Object.of(pieces.join()).members if m.key != key} == {
        k: v for k, v in before.items() if k != key
    }


@FEWER
@given(containers(list), st.data())
def test_array_edits_mean_what_they_do_to_a_list(sample: tuple[Any, bytes], data: st.DataObject) -> None:
    value, text = sample
    array = Array.of(text)
    for _ in range(3):
        match data.draw(st.sampled_from(["insert", "remove", "move"])):
            case "insert":
                at = data.draw(st.integers(0, len(value)))
                array.insert(at, b"77", Style(one_line=data.draw(st.booleans())))
                value.insert(at, 77)
            case "remove" if value:
                at = data.draw(st.integers(0, len(value) - 1))
                array.remove(at)
                del value[at]
            case "move" if value:
                at, to = (data.draw(st.integers(0, len(value) - 1)) for _ in "12")
                array.move(at, to)
                value.insert(to, value.pop(at))
        assert json.loads(array.join()) == value


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{"a": 1}', '{"a": 1, "b": 2}'),
        ('{"a":1}', '{"a":1,"b":2}'),
        ('{"a" : 1}', '{"a" : 1, "b" : 2}'),
        ('{ "a": 1, "c": 3 }', '{ "a": 1, "c": 3, "b": 2 }'),
        ('{\n  "a": 1\n}', '{\n  "a": 1,\n  "b": 2\n}'),
        ('{\r\n\t"a": 1\r\n}', '{\r\n\t"a": 1,\r\n\t"b": 2\r\n}'),
        ('{\n    "a": 1,\n    "c":3\n}', '{\n    "a": 1,\n    "c":3,\n    "b":2\n}'),
        ('{"a": 1\n, "c": 3\n}', '{"a": 1\n, "c": 3\n, "b": 2\n}'),
        ("{}", '{"b": 2}'),
        ("{ }", '{"b": 2}'),
        ("{\n}", '{\n  "b": 2\n}'),
        ('{"b": 1.0e0, "b2": 1}', '{"b": 2, "b2": 1}'),
        ('{"\\u0062": 1}', '{"\\u0062": 2}'),
    ],
)
def test_a_key_is_set_in_the_style_of_its_object(before: str, after: str) -> None:
    pieces = Object.of(before.encode())
    style = style_of(pieces)
    pieces.set("b", b"2", style)
    assert pieces.join().decode() == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("[1]", "[1, 9]"),
        ("[1,2]", "[1,2,9]"),
        ("[1,  2]", "[1,  2,  9]"),
        ("[\n  1\n]", "[\n  1,\n  9\n]"),
        ("[\r\n  1,\r\n  2\r\n]", "[\r\n  1,\r\n  2,\r\n  9\r\n]"),
        ("[]", "[\n    9\n  ]"),
        ("[ ]", "[\n    9\n  ]"),
    ],
)
def test_an_item_is_added_in_the_style_of_its_array(before: str, after: str) -> None:
    array = Array.of(before.encode())
    array.insert(len(array.items), b"9", Style(), indent=b"  ")
    assert array.join().decode() == after


def test_adding_and_removing_an_item_restores_the_text() -> None:
    for text in (b"[1]", b"[1,2]", b"[ 1 , 2 ]", b"[\n 1,\n 2\n]", b"[]"):
        for at in range(len(Array.of(text).items) + 1):
            array = Array.of(text)
            array.insert(at, b"9", Style())
            array.remove(at)
            assert array.join() == text


@pytest.mark.parametrize(("at", "left"), [(0, b"[2,   3]"), (1, b"[1 , 3]"), (2, b"[1 , 2]")])
def test_the_separator_after_an_item_goes_with_it(at: int, left: bytes) -> None:
    array = Array.of(b"[1 , 2,   3]")
    array.remove(at)
    assert array.join() == left


def test_repeated_keys_are_kept_as_they_are() -> None:
    text = b'{"a": [1, "]"], "b": {"c": "}"}, "a": [1, "]", 2], "b": 4}'
    pieces = Object.of(text)
    assert pieces.join() == text
    assert [m.value for m in pieces.members] == [b'[1, "]"]', b'{"c": "}"}', b'[1, "]", 2]', b"4"]


@pytest.mark.parametrize("style", [Style(), Style(one_line=True), Style(flat_lists=True), Style(newline=b"\r\n")])
@FEWER
@given(value=VALUES)
def test_what_is_written_is_read_back(style: Style, value: Any) -> None:
    try:
        text = dump(value, style, b"  ").decode()
    except UnicodeEncodeError:
        return
    assert json.loads(text) == value
    assert not style.one_line or "\n" not in text


def test_the_usual_style_is_that_of_the_standard_library() -> None:
    value = {"a": [1, {"b": []}], "c": {}, "d": "é"}
    assert dump(value, Style()).decode() == json.dumps(value, indent=2, ensure_ascii=False)
    assert dump(value, Style(one_line=True)).decode() == json.dumps(value, ensure_ascii=False)


@pytest.mark.parametrize(
    ("text", "escapes"),
    [('{"a": "\\u00e9"}', True), ('{"a": "é", "b": "\\u00e9"}', False), ('{"a": "e\\u0007\\n"}', False), ("{}", False)],
)
def test_a_file_that_escapes_everything_is_recognised(text: str, escapes: bool) -> None:
    assert escapes_non_ascii(text.encode()) is escapes


def test_values_are_located_by_line_and_column() -> None:
    text = '\ufeff{\r\n  "é": 1, "list": [\r\n    {"x": 1},\r\n    {"日本": {"y": null}}\r\n  ]\r\n}\r\n'
    locator = Locator(text.encode())
    assert locator.position(()) == (1, 1)
    assert locator.position(("é",)) == (2, 8)
    assert locator.position(("list",)) == (2, 19)
    assert locator.position(("list", 0, "x")) == (3, 11)
    assert locator.position(("list", 1, "日本", "y")) == (4, 18)
    assert locator.position(("list", 1, "missing", 3)) == (4, 5), "of the object that should have it"


def test_repeated_keys_are_located_at_any_depth() -> None:
    text = b'{"a": 1,\n "b": [{"c": 1,\n "c": 2}],\n "a": 3}'
    assert sorted(Locator(text).repeated_keys()) == [(("a",), (4, 7)), (("b", 0, "c"), (3, 7))]


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ((), ""),
        (("userStories", 2, "title"), "userStories[2].title"),
        (("a b", "c"), '["a b"].c'),
        ((0, "$ref"), "[0].$ref"),
    ],
)
def test_a_path_reads_like_code(path: tuple[str | int, ...], shown: str) -> None:
    assert show_path(path) == shown
