from __future__ import annotations

import pytest

from ralph.core.errors import UsageError
from ralph.core.names import plain_path, prd_number, safe_name
from ralph.core.text import clean


@pytest.mark.parametrize("name", ["login", "user-login", "v1.2_x", "A", "9", "x" * 100])
def test_plain_names_are_fine(name: str) -> None:
    assert safe_name(name) == name


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "../x", "a/b", "/abs", "a\\b", ".hidden", "a\0b", "a\nb", "x" * 101, "x" * 300, "con", "NUL.txt",
     "com1", "lpt9.md", "a.", "a ", "naïve", "a b", "~", "$HOME", "-x", "a\u202eb"],
)  # fmt: skip
def test_names_cannot_leave_their_folder_or_surprise_another_system(name: str) -> None:
    with pytest.raises(UsageError) as caught:
        safe_name(name, "feature")
    assert "feature" in caught.value.message
    assert caught.value.hint
    assert "\0" not in caught.value.message
    assert "\n" not in caught.value.message


def test_a_prd_number_is_a_positive_integer() -> None:
    assert prd_number("12") == 12
    for bad in ("0", "-1", "01", "1.5", "../1", "", " 1", "1\n", "١", "9" * 20):
        with pytest.raises(UsageError, match="positive integer"):
            prd_number(bad)


@pytest.mark.parametrize("path", ["ralph", "a/b c", "naïve", "x" * 255])
def test_a_plain_path_is_fine(path: str) -> None:
    assert plain_path(path, "the folder") == path


@pytest.mark.parametrize("path", ["a\nb", "a\tb", "a\0b", "\x1b[31m", "a\u202eb", "ok/" + "x" * 256, "ü" * 128])
def test_a_path_that_breaks_a_line_or_the_file_system_is_refused(path: str) -> None:
    with pytest.raises(UsageError) as caught:
        plain_path(path, "the folder")
    assert clean(caught.value.message) == caught.value.message
