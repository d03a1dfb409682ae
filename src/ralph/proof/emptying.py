"""Empty the functions that a change added or edited: tests that still pass do not exercise the change.

An emptied function returns nothing (Python, JavaScript) or the zero value (Go), so that a test which only calls it and
asserts nothing still passes. Rust has no zero value for every type: there, calling an emptied function can panic, and
so can a test that asserts nothing. Everything outside the emptied bodies stays byte for byte the same.
"""

from __future__ import annotations

from pathlib import PurePosixPath

from ralph.proof import emptying_braces, emptying_python, emptying_trees

SUFFIXES = (".py", *emptying_trees.SUFFIXES, *emptying_braces.LANGUAGES)
LARGEST = 2_000_000
"""Bytes. Larger files are bundles or generated, and reading them takes longer than the tests."""


def emptied(path: str, old: bytes | None, new: bytes) -> bytes | None:
    """`new`, with the bodies of the functions emptied that `old` does not have or has differently.

    A function that is empty already, or only returns an argument, stays as it is. None: there is no such
    function, the file cannot be parsed, or the language is not supported (see `why_not`).
    Comments, whitespace and Python's docstrings make no difference. Code outside of functions is not emptied."""
    if why_not(path) or len(new) > LARGEST:
        return None
    suffix = PurePosixPath(path).suffix
    if suffix == ".py":
        return emptying_python.emptied(old, new)
    if suffix in emptying_braces.LANGUAGES:
        return emptying_braces.emptied(suffix, old, new)
    return emptying_trees.emptied(suffix, old, new)


def why_not(path: str) -> str:
    """Why functions in this file cannot be emptied; "" if they can."""
    name = PurePosixPath(path)
    if name.suffix in SUFFIXES:
        return ""
    return f"emptying functions is not supported in {name.suffix} files" if name.suffix else "not a known source file"
