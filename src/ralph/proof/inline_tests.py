"""Tests inside a source file: Rust's `#[cfg(test)] mod tests { … }`. Taken out, and put into another version."""

from __future__ import annotations

import re

_MODULE = re.compile(
    r"^[ \t]*#\[cfg\(test\)\]\s*(?:#\[[^\]]*\]\s*)*(?:pub(?:\([^)]*\))?\s+)?mod\s+\w+\s*\{", re.MULTILINE
)
_TEST = re.compile(r"^[ \t]*#\[(?:\w+::)*test\b", re.MULTILINE)
_ONLY_TESTS = re.compile(r"(?:^|/)(?:tests|benches)/")
_PIECE = re.compile(
    r'//[^\n]*|/\*.*?\*/|r(?P<hashes>#*)".*?"(?P=hashes)|"(?:\\.|[^"\\])*"|\'(?:\\.[^\']{0,8}|[^\'\\])\'|[{}]',
    re.DOTALL,
)


def has_inline_tests(path: str) -> bool:
    """Whether the file may keep tests beside the code. What is below `tests` is nothing but tests."""
    return path.endswith(".rs") and _ONLY_TESTS.search(path) is None


def _spans(text: str) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    for module in _MODULE.finditer(text):
        if spans and module.start() < spans[-1][1]:
            continue
        depth = 1
        end = len(text)
        for piece in _PIECE.finditer(text, module.end()):
            depth += {"{": 1, "}": -1}.get(piece[0], 0)
            if depth == 0:
                end = piece.end()
                break
        spans.append((module.start(), end))
    return spans


def inline_tests(text: str) -> tuple[str, ...]:
    return tuple(text[start:end] for start, end in _spans(text))


def count_inline_tests(path: str, content: bytes) -> int:
    if not has_inline_tests(path):
        return 0
    return sum(len(_TEST.findall(module)) for module in inline_tests(content.decode("utf-8", "replace")))


def with_tests_of_file(path: str, code: bytes, tests: bytes) -> bytes:
    """`code` with the tests that `tests`, another version of the same file, has inside it."""
    if not has_inline_tests(path):
        return code
    return with_tests_of(code.decode("utf-8", "replace"), tests.decode("utf-8", "replace")).encode()


def with_tests_of(code: str, tests: str) -> str:
    """`code` with the test modules of `tests` instead of its own."""
    modules = list(inline_tests(tests))
    parts: list[str] = []
    done = 0
    for start, end in _spans(code):
        parts += (code[done:start], modules.pop(0) if modules else "")
        done = end
    parts.append(code[done:])
    text = "".join(parts)
    return text.rstrip("\n") + "\n\n" + "\n\n".join(modules) + "\n" if modules else text
