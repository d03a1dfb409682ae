from __future__ import annotations

import pytest

from ralph.core.fingerprint import fingerprint


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1 failed in 0.31s", "1 failed in 12.9s"),
        ("/home/a/x/test_a.py:12: boom", "/tmp/b/y/test_a.py:99: boom"),
        ("object at 0x7f1234abcd", "object at 0x55550000ff"),
        ("commit deadbeef12 broke it", "commit 0123456789ab broke it"),
        ("at 2026-01-02T03:04:05Z down", "at 2027-11-12 13:14:15.123 down"),
        ("\x1b[31mred\x1b[0m text", "red  text"),
    ],
)
def test_what_varies_from_run_to_run_does_not_change_the_identity(one: str, other: str) -> None:
    assert fingerprint(one) == fingerprint(other)


def test_other_errors_are_other_errors() -> None:
    assert fingerprint("TypeError: x") != fingerprint("NameError: x")
    assert fingerprint("") == ""
