"""What a config file may look like, and what is refused with its line."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from ralph.config import document
from ralph.config.document import Mapping, Node, Scalar, Sequence, decode, parse
from ralph.config.reading import read_file
from ralph.core.errors import ConfigError


def plain(node: Node) -> Any:
    if isinstance(node, Mapping):
        return {name.text: plain(value) for name, value in node.items}
    if isinstance(node, Sequence):
        return [plain(item) for item in node.items]
    assert isinstance(node, Scalar)
    return node.resolve()


def refused(source: bytes | str, file: str = "c.yaml") -> tuple[str, int | None]:
    with pytest.raises(ConfigError) as caught:
        parse(decode(source if isinstance(source, bytes) else source.encode(), file), file)
    (problem,) = caught.value.problems
    assert problem.where.file == file
    return problem.code, problem.where.line


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1:30", "1:30"),
        ("0777", "0777"),
        ("0x1F", "0x1F"),
        ("1_000", "1_000"),
        ("yes", "yes"),
        ("2024-01-01", "2024-01-01"),
        ("12", 12),
        ("-1.5", -1.5),
        ("1e3", 1000.0),
        ("True", True),
        ("~", None),
        ("'12'", "12"),
        ("!!str 12", "12"),
    ],
)
def test_scalars_mean_what_is_written(text: str, value: object) -> None:
    assert plain(parse(f"a: {text}", "c.yaml")) == {"a": value}


def test_json_with_comments_and_tabs_is_read() -> None:
    text = (
        '{\n\t"a": 1, // not "b": 2\n\t"url": "http://x//y", // "\n\t"q": "\\"//",\n\t"c": [true, null, "\\u00e9"]\n}\n'
    )
    assert plain(parse(text, "c.json")) == {"a": 1, "url": "http://x//y", "q": '"//', "c": [True, None, "é"]}


def test_a_json_comment_does_not_move_the_lines_below_it() -> None:
    assert refused('{ // one\n // two\n "a": 1,\n "a": 2 }', "c.json") == ("duplicate-key", 4)


def test_aliases_are_read() -> None:
    assert plain(parse("a: &x [1, 2]\nb: *x\n", "c.yaml")) == {"a": [1, 2], "b": [1, 2]}


@pytest.mark.parametrize("text", ["", "\n\n", "# nothing\n", "---\n", "null\n", "\ufeff# x\n"])
def test_a_file_that_says_nothing_is_empty(text: str) -> None:
    assert parse(decode(text.encode(), "c.yaml"), "c.yaml").items == ()


@pytest.mark.parametrize(
    ("source", "code", "line"),
    [
        (b"a: 1\nb: \xff\n", "not-utf8", 2),
        (b"a: 1\nb: \x00\n", "control-character", 2),
        (b"a: 1\nb: \x1b[31m\n", "control-character", 2),
        ("a: 1\nb: 2\na: 3\n", "duplicate-key", 3),
        ("s:\n  a: 1\n  a: 2\n", "duplicate-key", 3),
        ("a: 1\n'a': 3\n", "duplicate-key", 2),
        ("a: !!python/object:os.system x\n", "tag", 1),
        ("a: !mine x\n", "tag", 1),
        ("a: 1\n---\nb: 2\n", "two-documents", 2),
        ("a: 1\n? [x]\n: 2\n", "key", 2),
        ("a: 1\n2: b\n", "key", 2),
        ("true: 1\n", "key", 1),
        ("a: 1\n<<: {b: 2}\n", "merge-key", 2),
        ("a: *x\n", "alias", 1),
        ("a: &x [*x]\n", "alias", 1),
        ("- a\n", "not-a-mapping", 1),
        ("just text\n", "not-a-mapping", 1),
        ("a:\n\tb: 1\n", "tab", 2),
        ("a: 1\nb: [1\nc: 2\n", "not-yaml", 3),
        ("a: b: c\n", "not-yaml", 1),
        ('a: "x\n', "not-yaml", 2),
        ("a: " + "[" * 60 + "]" * 60, "too-deep", 1),
        ("a: " + "{a: " * 100_000, "too-deep", 1),
    ],
)
def test_what_cannot_be_read_is_refused_with_its_line(source: bytes | str, code: str, line: int) -> None:
    assert refused(source) == (code, line)


def test_aliases_cannot_grow_without_bound() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    assert refused("\n".join(lines))[0] == "too-many-nodes"


def test_many_values_are_refused_before_they_fill_the_memory() -> None:
    assert refused("a: [" + "1," * 200_000 + "]")[0] == "too-many-nodes"


def test_the_slow_parser_reads_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "a: |\n  x\n  y\n\n# c\nb: {c: 1, d: [2, 'é']}\ne: &x !!str 5\nf: *x\n"
    fast = parse(text, "c.yaml")
    monkeypatch.setattr(document, "_loader", lambda: yaml.SafeLoader)
    assert parse(text, "c.yaml") == fast


def test_nodes_know_the_text_they_stand_for() -> None:
    text = "é: |\n  x\n\nb:\n  - '1'\n  - {c: d}   # e\n\n"
    first, second = parse(text, "c.yaml").items
    assert text[first[1].start : first[1].end] == "|\n  x"
    assert text[second[1].start : second[1].end] == "- '1'\n  - {c: d}"
    assert (second[0].line, second[0].column) == (4, 1)


yaml_like = st.text(st.sampled_from(list("ab:-?[]{},#&*!|>'\"%@` \n\t\r0.~<$\\x\u2028é😀")), max_size=60)
key_like = st.lists(
    st.sampled_from(
        ["max_iterations", "agent", "checks", "steps", "defaults", "\n", "\n  ", "- ", ": ", "{", "}", "[", "]", "3",
         "'", '"', "~", "&a ", "*a", "${X}", "${", "name: a", ", ", "timeout_minutes", "!!str ", "type: b", "|\n", "1h"]
    ),
    max_size=25,
).map("".join)  # fmt: skip


@settings(max_examples=300)
@given(yaml_like | key_like | st.binary(max_size=40), st.sampled_from(["c.yaml", "c.json"]))
def test_any_file_is_read_or_refused_and_nothing_else_happens(content: str | bytes, file: str) -> None:
    refused: ConfigError | None = None
    try:
        root = parse(decode(content if isinstance(content, bytes) else content.encode(), file), file)
        read_file(root, file, {})
    except ConfigError as error:
        refused = error
    assert refused is None or refused.problems[0].where.file == file
