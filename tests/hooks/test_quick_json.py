"""JSON by the C parts alone says the same as the `json` module."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ralph.hooks.quick_json import dumps, loads

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=8,
)


@settings(max_examples=80)
@given(VALUES, st.sampled_from([None, 2]), st.booleans())
def test_what_json_writes_is_read_alike(value: object, indent: int | None, escape: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=escape)
    assert loads(f" \r\n{text}\t\n") == value


@settings(max_examples=80)
@given(VALUES)
def test_what_is_written_json_reads_alike(value: object) -> None:
    assert json.loads(dumps(value)) == value
    assert dumps(value).isascii()
    assert "\n" not in dumps(value)


@settings(max_examples=80)
@given(st.text(max_size=20))
def test_what_json_refuses_is_refused(text: str) -> None:
    try:
        json.loads(text, strict=False)
    except ValueError:
        with pytest.raises(ValueError):
            loads(text)
    else:
        loads(text)


def test_a_client_may_end_with_a_newline_or_begin_with_a_mark() -> None:
    assert loads('\ufeff{"a": 1}\n') == {"a": 1}


@pytest.mark.parametrize(
    "text", ["", " ", "{", "[1,", '"abc', '{"a"', '{"a":', "tru", "{} x", "nul", "'a'", "{a: 1}", "01"]
)
def test_what_is_no_json_is_a_value_error(text: str) -> None:
    with pytest.raises(ValueError):
        loads(text)


def test_what_cannot_be_written_is_said() -> None:
    with pytest.raises(TypeError):
        dumps(object())
