"""The page about the guard says what the guard does."""

from __future__ import annotations

from pathlib import Path

from ralph.guard.categories import TABLE
from support.cli import ralph_here

PAGE = Path(__file__).resolve().parents[2] / "docs" / "guard.md"


def test_the_page_lists_every_category() -> None:
    table = PAGE.read_text().partition("<!-- categories")[2].partition("`ralph guard --categories`")[0]
    rows = [line for line in table.splitlines() if line.startswith("| `")]
    assert rows == [f"| `{each.id}` | {each.severity} | {each.meaning} |" for each in TABLE]


def test_the_example_on_the_page_is_what_is_printed(tmp_path: Path) -> None:
    block = PAGE.read_text().partition("```console\n")[2].partition("```")[0]
    shown = [part.partition("\n") for part in block.split("$ ralph guard ")[1:]]
    assert len(shown) == 2
    for command, _, expected in shown:
        done = ralph_here("guard", "--cwd", "/home/me/app", command.strip("'"), cwd=tmp_path)
        assert done.out == expected


def test_the_rules_on_the_page_do_what_it_says(tmp_path: Path) -> None:
    rules = PAGE.read_text().partition("```yaml\n")[2].partition("```")[0]
    (tmp_path / ".ralph").mkdir()
    (tmp_path / ".ralph" / "config.yaml").write_text(rules)
    codes = {
        command: ralph_here("guard", command, cwd=tmp_path).code
        for command in (
            "git push origin ralph/x",
            "git push origin main",
            "docker system prune",
            "bash -c 'make deploy'",
        )
    }
    assert list(codes.values()) == [0, 1, 0, 1]
