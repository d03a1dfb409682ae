"""What the page about other tools shows is what `ralph import` does, and every kind of source is on it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ralph.importing.kinds import KINDS, WRITTEN_BACK, names
from support.cli import ralph_here

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "coming-from.md").read_text()
KEPT = re.compile(r"In `(?P<place>[^`]+)`:\n\n```\w+\n(?P<text>.*?)```\n\n```text\n(?P<said>.*?)```", re.DOTALL)
EXAMPLES = {found["place"]: found for found in KEPT.finditer(PAGE)}


@pytest.mark.parametrize("place", EXAMPLES)
def test_an_example_becomes_what_the_page_says(place: str, tmp_path: Path) -> None:
    root = tmp_path / "notes"
    path = root / place
    path.parent.mkdir(parents=True)
    path.write_text(EXAMPLES[place]["text"])
    (root / ".git").mkdir()
    done = ralph_here("import", place, "--layout", "tasks.json", "--dry-run", cwd=root, env={"COLUMNS": "120"})
    assert done.code == 0, done.err
    lines = [line for line in done.out.splitlines() if line.startswith(("·", "✓"))]
    left = [line.partition("[left-out]: ")[2] for line in done.out.splitlines() if "[left-out]: " in line]
    lines += [f"left out: {words}" for words in left]
    assert lines == EXAMPLES[place]["said"].splitlines()
    kind = done.err.partition(":")[0]
    row = next(row for row in re.findall(r"^\| .*$", PAGE, re.MULTILINE) if f"`{kind}`" in row)
    assert kind in KINDS, row


def test_every_kind_is_on_the_page_and_every_name_there_exists() -> None:
    rows = re.findall(r"^\| \[.*\| (.*) \|$", PAGE, re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`([^`]+)`", row)}
    assert named == set(KINDS)
    assert {name for name in names() if f"`{name}`" not in PAGE} == set()
    assert set(re.findall(r"--status (\w+)", PAGE)) == set(WRITTEN_BACK)


def test_where_files_are_is_where_they_are_looked_for() -> None:
    rows = re.findall(r"^\| \[.*\| (.*) \| `([\w-]+)` \|$", PAGE, re.MULTILINE)
    for told, kind in rows:
        for place in re.findall(r"`([^`]*[*/][^`]*\.\w+)`", told):
            assert place in KINDS[kind].places, kind
