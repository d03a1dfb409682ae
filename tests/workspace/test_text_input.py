"""What is given on the command line is clean before it becomes part of a plan."""

from __future__ import annotations

import pytest

from ralph.core.errors import UsageError
from ralph.workspace import plan_edit as given

UNFIT = {
    "escape sequence": "a \x1b[31mred\x1b[0m title",
    "NUL": "a\0b",
    "C1 control": "a \x9b31m b",
    "right-to-left override": "abc\u202egnp.exe",
    "zero width space": "a\u200bb",
    "byte order mark": "\ufeffa",
    "half a surrogate pair": "a\udcffb",
    "line separator": "a\u2028b",
}


@pytest.mark.parametrize("text", UNFIT.values(), ids=UNFIT)
def test_what_a_terminal_would_obey_is_refused(text: str) -> None:
    for check in (given.line, given.prose):
        with pytest.raises(UsageError, match=r"the title has .*\(U\+[0-9A-F]{4}\)") as refused:
            check("the title", text)
        assert refused.value.message.isprintable()


@pytest.mark.parametrize("text", ["a\nb", "a\r\nb", "a\rb"])
def test_a_line_is_one_line(text: str) -> None:
    with pytest.raises(UsageError, match="line break"):
        given.line("the title", text)


@pytest.mark.parametrize("text", ["", " ", "\t\n", "\u3000"])
def test_a_line_says_something(text: str) -> None:
    with pytest.raises(UsageError, match="--title is empty"):
        given.line("--title", text)


@pytest.mark.parametrize(
    "text",
    ["Zoë", "日本語　です", "\U0001f469\u200d\U0001f4bb works", "می‌خواهم", "-5 degrees", "--dashes", "a [b] `c`"],
)
def test_words_of_any_language_are_fine(text: str) -> None:
    assert given.line("the title", f"  {text} ") == text
    assert given.prose("--notes", f"{text}\n\n\t{text}\r\n") == f"{text}\n\n\t{text}"


def test_there_is_an_end_to_it() -> None:
    assert given.line("t", "x" * 500)
    with pytest.raises(UsageError, match="501 characters; the limit is 500"):
        given.line("t", "x" * 501)
    with pytest.raises(UsageError, match="the limit is 20,000"):
        given.prose("t", "x" * 20_001)


def test_one_empty_text_takes_a_list_away() -> None:
    assert given.lines("--verify", [""]) == ()
    assert given.lines("--verify", ["a", " b "]) == ("a", "b")
    with pytest.raises(UsageError, match="--verify is empty"):
        given.lines("--verify", ["a", ""])


@pytest.mark.parametrize("text", ["US-001", "1.R", "task_7", "A:1", "ä1", "x" * 100])
def test_an_id_is_a_short_word(text: str) -> None:
    assert given.new_id(text) == text


@pytest.mark.parametrize(
    "text", ["", "-x", "--force", "a b", "a\nb", "../x", "a/b", ".x", "x" * 101, "a\x1b[0m", "\udcff"]
)
def test_other_ids_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not a valid story ID") as refused:
        given.new_id(text)
    assert refused.value.message.isprintable()


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -1, 0, 1e10])
def test_a_priority_is_a_number_above_zero(number: float) -> None:
    with pytest.raises(UsageError, match="invalid priority"):
        given.priority(number)


def test_a_whole_priority_is_written_as_one() -> None:
    assert repr(given.priority(2.0)) == "2"
    assert given.priority(2.5) == 2.5
