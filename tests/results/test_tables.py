"""The tables of frameworks, programs and limits: every line means something."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ralph.guard.tables import load
from ralph.results import detection, vocabulary
from ralph.results.programs import roles

SIGNS = load("signs", detection.__file__)
MEANINGS = {"sum", "wsum", "fail", "wfail", "mark", "own", "ok", "none", "start", "begun", "zero"}
FAMILIES = {"", "*", "python", "ruby", "behat"}
"""Frameworks of commands that have no section: `related` in words.txt says where to look."""


@pytest.mark.parametrize("framework", SIGNS)
def test_a_sign_has_a_meaning_a_text_and_a_pattern(framework: str) -> None:
    lines = SIGNS[framework].strip("\n").split("\n")
    assert len(set(lines)) == len(lines)
    for line in lines:
        meaning, _, *patterns = line.split("\t")
        assert meaning in MEANINGS, line
        assert len(patterns) in ((1, 2) if meaning in ("sum", "wsum") else (1,)), line
        assert all(re.compile(pattern, re.MULTILINE) for pattern in patterns), line


@pytest.mark.parametrize("name", ["runners", "limits"])
def test_a_pattern_compiles(name: str) -> None:
    for section in load(name, detection.__file__).values():
        for line in section.strip("\n").split("\n"):
            assert re.compile(line.rpartition("\t")[2]).pattern, line


def test_no_line_ends_in_a_blank() -> None:
    """Editors remove it, and the pattern would mean something else: `[ ]` stays."""
    for path in Path(detection.__file__).parent.glob("*.txt"):
        assert [line for line in path.read_text().split("\n") if line != line.rstrip()] == [], path.name


def test_every_framework_of_a_command_has_signs() -> None:
    named = {*vocabulary.RUNNERS.values(), *vocabulary.PYTHON_MODULES.values()}
    named |= {rule.partition("=")[2] for rules in vocabulary.SUBCOMMANDS.values() for rule in rules}
    assert named - FAMILIES - set(SIGNS) == set()
    assert {name for names in vocabulary.RELATED.values() for name in names} <= set(SIGNS)
    assert set(vocabulary.RELATED) - FAMILIES <= set(SIGNS)


@pytest.mark.parametrize("program", [*vocabulary.RUNNERS, *(f"python -m {one}" for one in vocabulary.PYTHON_MODULES)])
def test_a_runner_is_a_test_run(program: str) -> None:
    assert roles(program)[0].role == "test"
