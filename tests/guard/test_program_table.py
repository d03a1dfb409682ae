"""The table of programs says the same as the modules that judge them."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from ralph.guard import programs
from ralph.guard.categories import BY_ID, SEVERITIES, TABLE
from ralph.guard.programs import rule_table
from ralph.guard.programs.index import MODULES

NAMES = [each.name for each in iter_modules(programs.__path__)]


def judges(name: str) -> set[str]:
    module = import_module(f"ralph.guard.programs.{name}")
    return set(getattr(module, "JUDGES", {}))


def test_every_program_in_the_table_has_a_judge() -> None:
    assert {program: module for program, module in MODULES.items() if program not in judges(module)} == {}


def test_every_judge_is_in_the_table() -> None:
    known = {program for name in NAMES for program in judges(name)} - {"*"}
    assert known - set(MODULES) == set()


def test_categories_have_a_severity_a_meaning_and_an_advice() -> None:
    assert len(BY_ID) == len(TABLE)
    for category in TABLE:
        assert category.severity in SEVERITIES
        assert category.meaning[0].islower()
        assert category.advice.endswith(".")


def test_the_table_of_subcommands_uses_known_categories() -> None:
    assert set(rule_table.TABLE) <= set(BY_ID)
