"""Setting a key changes that key and not one other byte."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import yaml
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ralph.config.document import Mapping, Node, Scalar, parse, parse_value
from ralph.config.editing import remove_key, render, set_key
from ralph.core.errors import ConfigError


def value(text: str) -> Node:
    return parse_value(text, "value")


def set_in(text: str, path: str, new: str, file: str = "c.yaml") -> str:
    return set_key(text, file, tuple(path.split(".")), value(new))


@pytest.mark.parametrize(
    ("before", "path", "new", "after"),
    [
        # an empty file, a file of comments
        ("", "a", "1", "a: 1\n"),
        ("", "a.b", "x", "a:\n  b: x\n"),
        ("# only this\n", "a", "1", "# only this\na: 1\n"),
        ("# only this", "a", "1", "# only this\na: 1\n"),
        ("---\n", "a", "1", "---\na: 1\n"),
        # a value that is there: scalars of every style, with comments around
        ("a: 1", "a", "2", "a: 2"),
        ("# x\na:   1   # one\nb: 2\n", "a", "22", "# x\na:   22   # one\nb: 2\n"),
        ("a: 'one'\n", "a", "two", "a: two\n"),
        ('a: "one" # "1"\n', "a", "two", 'a: two # "1"\n'),
        ("a: |\n  one\n  two\n\n# c\nb: 2\n", "a", "x", "a: x\n\n# c\nb: 2\n"),
        ("a: one\n  two\nb: 2\n", "a", "x", "a: x\nb: 2\n"),
        ("a: 1\r\nb: 2\r\n", "a", "3", "a: 3\r\nb: 2\r\n"),
        ("a:\nb: 2\n", "a", "3", "a: 3\nb: 2\n"),
        ("a: # c\nb: 2\n", "a", "3", "a: 3 # c\nb: 2\n"),
        ("a: ~\n", "a", "3", "a: 3\n"),
        # lists
        ("a:\n  - 1\n  - 2\n\nb: 2\n", "a", "[3]", "a: [3]\n\nb: 2\n"),
        ("a:\n- 1\nb: 2\n", "a", "x", "a: x\nb: 2\n"),
        ("a: [1, 2] # c\n", "a", "[x, {y: z}]", 'a: ["x", {"y": "z"}] # c\n'),
        # a key that is not there yet
        ("a: 1\n", "b", "2", "a: 1\nb: 2\n"),
        ("a: 1", "b", "2", "a: 1\nb: 2"),
        ("a: 1 # one\n\n# end\n", "b", "2", "a: 1 # one\nb: 2\n\n# end\n"),
        ("a: 1\r\n", "b.c", "2", "a: 1\r\nb:\r\n  c: 2\r\n"),
        ("s:\n    a: 1 # one\n\nt: 2\n", "s.b", "2", "s:\n    a: 1 # one\n    b: 2\n\nt: 2\n"),
        ("s:\n  # a: 1\nt: 2\n", "s.b", "2", "s:\n  b: 2\n  # a: 1\nt: 2\n"),
        ("s: # c\n", "s.b", "2", "s: # c\n  b: 2\n"),
        ("s: {}\n", "s.b", "x", 's: {b: "x"}\n'),
        ("s: ~\n", "s.b", "2", "s: {b: 2}\n"),
        # flow mappings
        ("{a: 1}", "b", "2", "{b: 2, a: 1}"),
        ("{a: 1,}\n", "b", "2", "{b: 2, a: 1,}\n"),
        ("s: {a: 1}  # c\n", "s.b", "2", "s: {b: 2, a: 1}  # c\n"),
        ("s: {a: 1}\n", "s.a", "x", 's: {a: "x"}\n'),
        ("{\n  a: 1, # one\n}\n", "b", "2", "{\n  b: 2,\n  a: 1, # one\n}\n"),
        ("{ # c\n  a: 1 # one\n}\n", "b", "2", "{ # c\n  b: 2,\n  a: 1 # one\n}\n"),
    ],
)
def test_one_key_is_set(before: str, path: str, new: str, after: str) -> None:
    assert set_in(before, path, new) == after


@pytest.mark.parametrize(
    ("before", "path", "new", "after"),
    [
        ("", "a.b", "x", '{\n  "a": {"b": "x"}\n}\n'),
        ("{}", "a", "1", '{"a": 1}'),
        ('{\n\t"a": 1, // one\n\t"b": "x"\n}\n', "b", "20m", '{\n\t"a": 1, // one\n\t"b": "20m"\n}\n'),
        ('{\n\t"a": 1 // one\n}\n', "b", "x", '{\n\t"b": "x",\n\t"a": 1 // one\n}\n'),
        ('{"a":1}', "a", "true", '{"a":true}'),
    ],
)
def test_one_key_is_set_in_json(before: str, path: str, new: str, after: str) -> None:
    assert set_in(before, path, new, "c.json") == after


@pytest.mark.parametrize(
    ("before", "path", "after"),
    [
        ("a: 1\nb: 2 # two\nc: 3\n", "b", "a: 1\nc: 3\n"),
        ("a: 1\nb:\n  - 1\n  - 2\n\n# c\n", "b", "a: 1\n\n# c\n"),
        ("a: 1\r\nb: 2\r\n", "a", "b: 2\r\n"),
        ("a: 1", "a", ""),
        ("s:\n  # about a\n  a: 1\n  b: 2\n", "s.a", "s:\n  # about a\n  b: 2\n"),
        ("s:\n  a: 1\n", "s.a", "s:\n"),
        ("{a: 1, b: 2}", "a", "{b: 2}"),
        ("{a: 1, b: 2}", "b", "{a: 1}"),
        ("{a: 1}", "a", "{}"),
        ('{\n  "a": 1,\n  "b": 2\n}\n', "a", '{\n  "b": 2\n}\n'),
        ('{\n  "a": 1,\n  "b": 2\n}\n', "b", '{\n  "a": 1\n}\n'),
        ("a: 1\n", "b", "a: 1\n"),
        ("a: 1\n", "a.b", "a: 1\n"),
    ],
)
def test_one_key_is_removed(before: str, path: str, after: str) -> None:
    assert remove_key(before, "c.yaml", tuple(path.split("."))) == after


@pytest.mark.parametrize(
    ("before", "path"),
    [
        ("a:\n  - 1 # one\n  - 2\n", "a"),  # the comment would be lost
        ("a: # one\n  - 1\n", "a"),
        ("a: | # c\n  x\n", "a"),
        ("a: |\n  x # y\n", "a"),  # it may be a comment
        ("a: &x 1\nb: *x\n", "a"),  # the anchor is used elsewhere
        ("s: &x {a: 1}\nt: *x\n", "s.a"),
        ("s: &x {a: 1}\nt: *x\n", "t.a"),
        ("a: 1\n...\n", "a.b"),
        ("a: 1\n", "a.b"),  # not a section
        ("a: |+\n  x\n\n\n", "b"),  # the blank lines are part of the text
        ("# c\n---\n# d\n...\n", "a"),
    ],
)
def test_what_cannot_be_changed_alone_is_refused_with_what_to_write(before: str, path: str) -> None:
    with pytest.raises(ConfigError) as caught:
        set_in(before, path, "new")
    assert caught.value.hint.startswith("edit the file by hand: " + path.replace(".", ": ") + ": new")


@pytest.mark.parametrize(
    ("text", "yaml_text"),
    [
        ("5", "5"),
        ("'5'", '"5"'),
        ("20m", "20m"),
        ("sonnet", "sonnet"),
        ("'yes'", '"yes"'),
        ("off", '"off"'),
        ("'a: b'", '"a: b"'),
        ("'a #b'", '"a #b"'),
        ("é", '"é"'),
        ('"a\\nb"', '"a\\nb"'),
        ("feature/x", "feature/x"),
        ("pytest tests", "pytest tests"),
        ("0777", '"0777"'),
        ("1.50", "1.5"),
    ],
)
def test_values_are_written_so_that_every_yaml_reader_agrees(text: str, yaml_text: str) -> None:
    assert render(value(text), quoted=False) == yaml_text
    meant = value(text)
    assert isinstance(meant, Scalar)
    assert yaml.safe_load(yaml_text) == meant.resolve()
    assert json.loads(render(meant, quoted=True)) == meant.resolve()


# -- any file, any key ------------------------------------------------------------------------------------------

names = st.sampled_from(["alpha", "beta", "gamma", "delta"])
scalars = st.one_of(
    st.integers(-50, 5000).map(str),
    st.sampled_from(["true", "null", "text", "'quoted # not a comment'", '"double: \\"x\\""', "two words", "'é 😀'"]),
)
comments = st.sampled_from(["", "", "", "  # why", " # a: b", " # {x}"])
breaks = st.sampled_from(["", "", "\n", "\n# a line of its own\n", "\n\n"])


@st.composite
def flow_values(draw: st.DrawFn) -> str:
    inner = draw(st.lists(scalars, max_size=3))
    if draw(st.booleans()):
        return "[" + ", ".join(inner) + "]"
    used = draw(st.lists(names, unique=True, min_size=len(inner), max_size=len(inner)))
    return "{" + ", ".join(f"{name}: {item}" for name, item in zip(used, inner, strict=True)) + "}"


@st.composite
def documents(draw: st.DrawFn, indent: int = 0) -> str:
    text = ""
    step = draw(st.sampled_from([2, 3, 4]))
    for name in draw(st.lists(names, unique=True, min_size=1, max_size=4)):
        lead = draw(breaks).lstrip("\n") if not text else draw(breaks)[1:]
        text += lead + " " * indent + f"{name}:"
        kind = draw(st.integers(0, 5 if indent < 6 else 3))
        if kind <= 1:
            text += f" {draw(scalars)}{draw(comments)}\n"
        elif kind == 2:
            text += f" {draw(flow_values())}{draw(comments)}\n"
        elif kind == 3:
            items = draw(st.lists(scalars, min_size=1, max_size=3))
            text += "\n" + "".join(f"{' ' * (indent + step)}- {item}\n" for item in items)
        else:
            text += f"{draw(comments)}\n{draw(documents(indent=indent + step))}"
    return text


def lookup(tree: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        tree = tree.get(name) if isinstance(tree, dict) else None
    return tree


def without(tree: Any, path: tuple[str, ...]) -> Any:
    """The rest of a tree, with sections that hold nothing left out."""
    tree = tree or {}
    if not isinstance(tree, dict) or not path:
        return tree
    rest = {name: without(item, path[1:]) if name == path[0] else item for name, item in tree.items()}
    if len(path) == 1:
        rest.pop(path[0], None)
    return {name: item for name, item in rest.items() if item not in (None, {})}


def changed_part(before: str, after: str) -> tuple[int, int]:
    """The part of `before` that is not in `after` any more: everything on both sides of it is the same."""
    shorter = min(len(before), len(after))
    start = next((at for at in range(shorter) if before[at] != after[at]), shorter)
    room = shorter - start
    tail = next((at for at in range(room) if before[-1 - at] != after[-1 - at]), room)
    return start, len(before) - tail


def place_of(text: str, path: tuple[str, ...]) -> tuple[int, int] | None:
    """From the end of the key to the end of its value, when the key is there."""
    node: Node = parse(text, "c.yaml")
    place = None
    for name in path:
        item = node.get(name) if isinstance(node, Mapping) else None
        if item is None:
            return None
        place, node = (item[0].end, item[1].end), item[1]
    return place


def comments_in(text: str) -> list[str]:
    return re.findall(r"#[^\r\n]*", QUOTED.sub("", text))


QUOTED = re.compile(r"'[^']*'|\"(?:[^\"\\]|\\.)*\"")
paths = st.lists(names, min_size=1, max_size=3).map(tuple)
new_values = st.sampled_from(["1", "text", "'a # b'", "[x, 2]", "true", "20m"])


@settings(max_examples=150, deadline=None)
@given(documents(), paths, new_values, st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_any_key_of_any_file_is_set_alone_or_refused(
    text: str, path: tuple[str, ...], new: str, newline: str, cut: bool
) -> None:
    text = text.replace("\n", newline)
    text = text.removesuffix(newline) if cut else text
    before = yaml.safe_load(text)
    try:
        changed = set_key(text, "c.yaml", path, value(new))
    except ConfigError:
        return
    after = yaml.safe_load(changed)
    assert lookup(after, path) == yaml.safe_load(new)
    assert without(after, path) == without(before, path)
    start, end = place_of(text, path) or changed_part(text, changed)
    assert changed.startswith(text[:start])
    assert changed.endswith(text[end:])
    assert place_of(text, path) or text[start:end] in ("", "null"), "a new key takes nothing away"
    assert comments_in(changed) == comments_in(text)
    assert "\n" not in text or newline == "\n" or "\n" not in changed.replace("\r\n", "")


@settings(max_examples=150, deadline=None)
@given(documents(), paths)
def test_any_key_of_any_file_is_removed_alone_or_refused(text: str, path: tuple[str, ...]) -> None:
    before = yaml.safe_load(text)
    assume(lookup(before, path) is not None)
    try:
        changed = remove_key(text, "c.yaml", path)
    except ConfigError:
        return
    after = yaml.safe_load(changed)
    assert lookup(after, path) is None
    assert without(after, path) == without(before, path)
    kept = [line for line in text.splitlines() if line.strip().startswith("#")]
    assert [line for line in changed.splitlines() if line.strip().startswith("#")] == kept


@settings(max_examples=100, deadline=None)
@given(
    st.recursive(st.integers() | st.booleans(), lambda s: st.dictionaries(names, s, min_size=1), max_leaves=8), paths
)
def test_any_key_of_a_pretty_printed_json_file_is_set(tree: Any, path: tuple[str, ...]) -> None:
    assume(isinstance(tree, dict))
    text = json.dumps(tree, indent=2)
    assume(all(isinstance(lookup(tree, path[:n]), dict | None) for n in range(1, len(path))))
    changed = set_key(text, "c.json", path, value("new"))
    after = json.loads(changed)
    assert lookup(after, path) == "new"
    assert without(after, path) == without(tree, path)


def test_most_edits_are_not_refused() -> None:
    """Guards the property above against an editor that refuses everything."""
    text = "alpha: 1 # x\nbeta:\n  gamma: [1]\n  delta:\n    - 1\n"
    for path in (("alpha",), ("beta", "gamma"), ("beta", "delta"), ("beta", "alpha"), ("gamma",), ("gamma", "delta")):
        assert isinstance(parse(set_key(text, "c.yaml", path, value("1")), "c.yaml"), Mapping)
