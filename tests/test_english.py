"""Text that users and agents read is plain English: phrases that read as translated do not come back."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
BANNED = {
    r"\bmend(s|ed|ing)?\b": "fix",
    r"(?<=\s)anew\b": "again",
    r"\bwhoever\b": "the caller, the user, the agent",
    r"\bdear(er|est)\b": "more expensive",
    r"fit to be run": "ready to run",
    r"(this|stdin) is no terminal": "is not a terminal",
    r"nobody can be asked": "stdin is not a terminal",
    r"\bhas it since\b": "held since",
    r"nine of ten": "90%",
    r"came to no verdict": "gave no verdict",
    r"\b(one|any) that begins so\b": "an ID or a unique prefix of one",
    r"nothing can have been done": "no files changed",
    r"\bstill to come\b": "remaining",
    r"go(es)? on with the call before": "resume the interrupted draft",
    r"how many-eth": "which",
    r"\bit is failed\b|\bwas crashed\b": "it failed, it crashed",
    r"\breplace (this|the) \w+ by\b": "replace with",
    r"\b(out|in)side of (the|a|an|its|their|our)\b": "outside the, inside the",
    r"(?<!there )\bis no (story|command|file|folder|number|JSON|plan|run|text|list|repository|link)\b": "is not a",
    r"stop it with `?kill\b": "ralph stop",
}
PATTERNS = [(re.compile(pattern, re.IGNORECASE), instead) for pattern, instead in BANNED.items()]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted(ROOT.glob("docs/*.md")),
    *sorted(ROOT.glob("src/ralph/**/*.md")),
]


def literals(path: Path) -> Iterator[tuple[int, str]]:
    """Every string of a module, docstrings included, with its line."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


def findings(text: str) -> Iterator[str]:
    for pattern, instead in PATTERNS:
        for found in pattern.finditer(text):
            yield f"{found[0]!r}: write {instead}"


def test_a_phrase_is_found() -> None:
    assert list(findings("look at it until it is mended")) == ["'mended': write fix"]
    assert list(findings("a recommended amendment")) == []


@pytest.mark.parametrize("package", sorted(path.name for path in (ROOT / "src/ralph").iterdir() if path.is_dir()))
def test_messages_and_docstrings_are_plain_english(package: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {finding}"
        for path in sorted((ROOT / "src/ralph" / package).rglob("*.py"))
        for line, text in literals(path)
        for finding in findings(text)
    ]
    assert found == []


def test_pages_are_plain_english() -> None:
    found = [f"{page.relative_to(ROOT)}: {finding}" for page in PAGES for finding in findings(page.read_text())]
    assert found == []
