"""The index of programs says the same as the modules that judge them, and the rules can be read."""

from __future__ import annotations

from importlib import import_module

import pytest

from ralph.guard.categories import BY_ID, SEVERITIES, TABLE
from ralph.guard.programs.rules import RULES, rules_of
from ralph.guard.tables import JUDGES, PROGRAMS, load
from support.guard_corpus import judge


def test_every_program_in_the_index_has_a_judge() -> None:
    for name in set(JUDGES.values()):
        module, _, function = name.partition(".")
        assert callable(getattr(import_module(f"ralph.guard.programs.{module}"), function)), name


def test_categories_have_a_severity_a_meaning_and_an_advice() -> None:
    assert len(BY_ID) == len(TABLE)
    for category in TABLE:
        assert category.severity in SEVERITIES
        assert category.meaning[0].islower()
        assert category.advice.endswith(".")


def test_the_rules_use_known_categories() -> None:
    assert set(RULES) <= set(BY_ID)


PATHS = ["shred", "gshred", "truncate", "fallocate", "touch", "mkdir", "mkfifo", "gio", "patch"]
LINES = [line for text in RULES.values() for line in text.splitlines() if line.strip()]
NAMED = {name for line in LINES for name in line.split()[0].split("|")}


def test_a_rule_has_a_message_that_starts_like_a_sentence() -> None:
    for line in LINES:
        _, colon, message = line.partition(": ")
        assert not colon or message.strip().startswith("This "), line


def test_every_rule_is_found_by_the_name_of_its_program() -> None:
    for line in LINES:
        for name in line.split()[0].split("|"):
            conditions = line.partition(": ")[0].split()[1:]
            assert conditions in [rule[2] for rule in rules_of(name)], line


def test_options_are_described_only_for_programs_that_have_rules_or_a_judge() -> None:
    for text in [PROGRAMS["options"], *(load("rules")[name] for name in ("runs", "writes", "effects"))]:
        for line in text.splitlines():
            for name in line.split()[0].split("|") if line.strip() else ():
                assert (
                    name in NAMED | set(JUDGES) or name.startswith("git-") or name in ("man", "nix-shell", "*", *PATHS)
                ), name


@pytest.mark.parametrize(
    ("command", "denied"),
    [
        ("git branch -fd x", True),
        ("git push --dry-ru origin", False),
        ("git push origin :old", True),
        ("git commit -m --no-verify", False),
        ("terraform plan -destroy", False),
        ("mkfs.ext4 disk.img", False),
        ("mkfs.ext4 /dev/sdb1", True),
        ("fdisk -l /dev/sda", False),
        ("fdisk /dev/sda", True),
        ("hostname -f", False),
        ("hostname other", True),
        ("systemctl --user status x", False),
        ("systemctl --user stop x", True),
        ("prisma --schema x migrate reset", True),
    ],
)
def test_conditions_mean_what_the_table_says(command: str, denied: bool) -> None:
    assert judge(command).denied is denied
