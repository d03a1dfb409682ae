"""Which failures are the same one, and which are not."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralph.engine.judge import fingerprint


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1 failed in 0.31s", "1 failed in 12.9s"),
        ("1 failed in 310 ms", "1 failed in 2 minutes"),
        ("/home/a/x/test_a.py:12: boom", "/tmp/b/y/test_a.py:99: boom"),
        ("src/shop/cart.py:12:5: error", "packages/shop/cart.py:40:17: error"),
        (r"C:\Users\ada\cart.py(3): error", r"D:\build\x\cart.py(9): error"),
        ("object at 0x7f1234abcd", "object at 0x55550000ff"),
        ("commit deadbeef12 broke it", "commit 0123456789ab broke it"),
        ("job 3f2504e0-4f89-11d3-9a0c-0305e82c3301 failed", "job 00000000-0000-0000-0000-000000000000 failed"),
        ("at 2026-01-02T03:04:05Z down", "at 2027-11-12 13:14:15.123 down"),
        ("error on Mon, 3 Nov 2025 18:01:02 GMT", "error on Tue, 25 Dec 2026 00:00:00 GMT"),
        ("Nov 15 18:57:04 host: error", "Jan 2 01:02:03 host: error"),
        ("[18:57:04] error", "[01:02:03.456] error"),
        ("\x1b[31mred\x1b[0m text", "red  text"),
        ("\x1b]8;;file:///a/b\x07error\x1b]8;;\x07", "error"),
        ("cannot open /tmp/tmpab12xy_z/x.txt", "cannot open /tmp/tmpq9zz81/x.txt"),
        ("cannot open /tmp/tmpab12xy", "cannot open /tmp/tmpq9zz81"),
        ("error in /tmp/pytest-of-me/pytest-41/a.txt", "error in /tmp/pytest-of-you/pytest-7/a.txt"),
        ("pid 4711 failed on port 8080", "pid 12 failed on port 50123"),
        ("======= 1 failed =======", "=== 1 failed ==========="),
        ("FAILED a\nFAILED b", "FAILED b\nFAILED a"),
        ("FAILED a\ncollected 12 items\n....", "\n..\nFAILED a\nFAILED a"),
    ],
)
def test_what_varies_from_run_to_run_does_not_change_the_identity(one: str, other: str) -> None:
    assert fingerprint(one) == fingerprint(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("TypeError: x", "NameError: x"),
        ("FAILED test_cart", "FAILED test_login"),
        ("FAILED test_cart_1", "FAILED test_cart_2"),
        ("src/cart.py:3: error", "src/login.py:3: error"),
        ("FAILED a", "FAILED a\nFAILED b"),
        ("the agent ended with exit code 3", "no files changed"),
    ],
)
def test_other_errors_are_other_errors(one: str, other: str) -> None:
    assert fingerprint(one) != fingerprint(other)


@pytest.mark.parametrize("nothing", ["", "  \n\t\n", "\x1b[0m\n"])
def test_nothing_has_no_identity(nothing: str) -> None:
    assert fingerprint(nothing) == ""


def test_a_tail_that_begins_anywhere_is_the_same_error() -> None:
    output = "\n".join([*(f"test {n} ok" for n in range(500)), "AssertionError: no cart", "1 failed"])
    assert len({fingerprint(output[-size:]) for size in (60, 600, 2000, 6000)}) == 1


@given(st.text(max_size=300))
def test_any_text_has_one_identity(text: str) -> None:
    assert fingerprint(text) == fingerprint(text)
    assert len(fingerprint(text)) in (0, 16)


@pytest.mark.parametrize(
    "unit",
    ["a", "a/", "/", "-", "1", "1.", "f", "0x", "tmp", " ", "12:", "error ", "a.b/", "\\", "…", "jan ", "1-", "é"],
)
def test_output_of_any_shape_is_read_in_time(unit: str) -> None:
    text = unit * (64_000 // len(unit))
    begun = time.process_time()
    fingerprint(text)
    assert time.process_time() - begun < 2
