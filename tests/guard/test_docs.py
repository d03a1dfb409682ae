"""The page about the guard says what the guard does."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

from ralph.guard.categories import TABLE
from support.cli import ralph_here

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "guard.md"


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


def test_the_rule_on_the_page_can_be_added_as_it_says(tmp_path: Path) -> None:
    """One line in a copy of the table denies the first sample with the message on the page, and allows the second."""
    section = PAGE.read_text().partition("## Adding a rule")[2]
    rule, message = re.findall(r"```text\n(.*?)```", section, re.DOTALL)
    samples = [json.loads(text)["command"] for text in re.findall(r"```json\n(.*?)```", section, re.DOTALL)]
    shutil.copytree(ROOT / "src/ralph/guard", tmp_path / "ralph/guard")
    table = tmp_path / "ralph/guard/rules.txt"
    heading = rule.partition("\n")[0] + "\n"
    assert heading in table.read_text()
    code = f"""
import sys; sys.path[:0] = [{str(tmp_path)!r}]
from ralph.guard.decision import judge_command
print(*[judge_command(each, "/home/me/app", {{}}).reason for each in {samples!r}], sep="\\n")
"""

    def reasons() -> list[str]:
        done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True)
        return done.stdout.splitlines()

    assert reasons() == ["", ""]
    table.write_text(table.read_text().replace(heading, rule))
    assert reasons() == [message.strip(), ""]


def test_advice_names_what_it_is_about() -> None:
    """It follows the message of any rule, so a pronoun in place of its object would refer to nothing."""
    advice = {each.id: each.advice for each in TABLE if each.id != "unreadable"}  # whose message is always the same
    assert [id for id, text in advice.items() if re.match(r"\w+ (?:\w+ )?(?:it|them)\b", text)] == []
