from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralph.core.text import clean, estimate_tokens, one_line


@pytest.mark.parametrize(
    ("dirty", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;owned\x07title", "title"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x9b31mred", "red"),
        ("a\x00b\x08c", "abc"),
        ("over\rwrite", "overwrite"),
        ("one\r\ntwo\n", "one\ntwo\n"),
        ("tab\tstays", "tab\tstays"),
        ("\u202egnp.exe", "gnp.exe"),
        ("naïve – 漢字 🎉", "naïve – 漢字 🎉"),
        ("\x1bPq#0;2\x1b\\after", "after"),
        ("\x1b]0;never ends", ""),
    ],
)
def test_what_could_move_the_cursor_never_reaches_a_terminal(dirty: str, shown: str) -> None:
    assert clean(dirty) == shown


@given(st.text(alphabet=st.characters(), max_size=200))
def test_clean_text_has_no_control_characters_and_stays_clean(text: str) -> None:
    cleaned = clean(text)
    assert not [c for c in cleaned if (ord(c) < 32 and c not in "\t\n") or 0x7F <= ord(c) < 0xA0]
    assert clean(cleaned) == cleaned


@given(st.text(max_size=200), st.integers(1, 40))
def test_one_line_is_one_line_and_fits(text: str, width: int) -> None:
    line = one_line(text, width)
    assert len(line) <= width
    assert len(line.splitlines()) <= 1


def test_four_characters_are_a_token() -> None:
    assert [estimate_tokens(t) for t in ("", "a", "abcd", "abcde")] == [0, 1, 1, 2]
