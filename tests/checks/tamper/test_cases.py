"""Before and after, written as agents write them: cheats are found, honest changes are not called cheats."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from ralph.checks.tamper import examine as tamper
from ralph.checks.tamper.examine import FileChange, Finding, examine

FOLDER = Path(__file__).parent / "cases"


def load(kind: str) -> list[dict[str, Any]]:
    cases: list[dict[str, Any]] = []
    for path in sorted(FOLDER.glob("*.yaml")):
        if kind in path.name:
            cases += yaml.safe_load(path.read_text("utf-8"))
    return cases


CHEATS, HONEST = load("cheats"), load("honest")


def findings(case: dict[str, Any]) -> tuple[Finding, ...]:
    files = [
        FileChange(path, *(None if side[key] is None else side[key].encode() for key in ("old", "new")))
        for path, side in case["files"].items()
    ]
    story, checks, protected = case.get("story", ""), case.get("checks", ()), case.get("protected", ())
    return examine(files, story_text=story, check_commands=checks, protected=protected)


def test_there_are_enough_cases() -> None:
    assert len(CHEATS) >= 90
    assert len(HONEST) >= 60


@pytest.mark.parametrize("case", CHEATS, ids=lambda case: case["name"])
def test_a_cheat_is_found_and_its_place_is_named(case: dict[str, Any]) -> None:
    grave = [finding for finding in findings(case) if finding.severity == "high"]
    assert grave
    assert all(finding.path in case["files"] and finding.message for finding in grave)


@pytest.mark.parametrize("case", HONEST, ids=lambda case: case["name"])
def test_an_honest_change_is_not_called_a_cheat(case: dict[str, Any]) -> None:
    assert [finding for finding in findings(case) if finding.severity == "high"] == []


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00", b"def f(:\n", b"x" * 100_000, b"a\r\nb\r\n", None])
def test_no_content_breaks_the_look(content: bytes | None) -> None:
    for path in (
        "tests/test_a.py",
        "a.test.ts",
        "pkg/a_test.go",
        "spec/a_spec.rb",
        "Makefile",
        "package.json",
        "x.bin",
    ):
        examine(
            [FileChange(path, b"def test_a():\n    assert 1 == 1\n", content), FileChange(path + ".x", content, b"y")]
        )


def test_edited_tests_are_named_for_a_second_run() -> None:
    old, new = b"def test_a():\n    assert f() == 1\n", b"def test_a():\n    assert f() == 2\n"
    changes = [
        FileChange("tests/test_a.py", old, new),
        FileChange("src/a.py", b"1", b"2"),
        FileChange("tests/test_b.py", None, old),
    ]
    assert tamper.tests_to_put_back(changes) == ("tests/test_a.py",)
