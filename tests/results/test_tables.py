"""The tables of frameworks, programs and limits: every line means something."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import textwrap
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
    crashed = detection.detect(program, "Traceback (most recent call last):\nKeyError: 'HOME'\n", 1)
    assert (crashed.ran, crashed.failed) == (True, True)


@pytest.mark.parametrize("program", vocabulary.SUBCOMMANDS)
def test_a_subcommand_passes_the_quick_check(program: str) -> None:
    for verb in [rule.partition("=")[0] for rule in vocabulary.SUBCOMMANDS[program] if not rule.endswith("=*")]:
        assert detection.may_run_tests(f"{program} {verb}")


def test_other_commands_do_not_pass_the_quick_check() -> None:
    for command in ("ls -la src", "git status", "docker run -d redis", "make build", "go build ./...", "uv run x.py"):
        assert not detection.may_run_tests(command), command


def test_a_runner_is_added_as_the_page_says(tmp_path: Path) -> None:
    """Two tables and no code: what is on the page is added to a copy, which then reads the sample on the page."""
    room = Path(detection.__file__).parent
    page = (room.parents[2] / "docs" / "detect.md").read_text()
    sample = json.loads(page.partition("```json\n")[2].partition("```")[0])
    signs = textwrap.dedent("   " + page.partition("```text\n   ")[2].partition("   ```")[0])
    for name in ("results", "guard"):
        shutil.copytree(room.parent / name, tmp_path / "ralph" / name)
    code = "from ralph.results.detection import detect; print(detect('zunit', {!r}, 1))"

    def read(output: str) -> str:
        argv = [
            sys.executable,
            "-I",
            "-S",
            "-c",
            f"import sys; sys.path[:0] = [{str(tmp_path)!r}]\n{code.format(output)}",
        ]
        return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.strip()

    assert read(sample["output"]) == "Found(ran=False, failed=False, framework='')"
    words, table = tmp_path / "ralph/results/words.txt", tmp_path / "ralph/results/signs.txt"
    words.write_text(words.read_text().replace("[runners]\n", "[runners]\nzunit: zunit\n"))
    table.write_text(f"{table.read_text()}\n{signs}")
    assert read(sample["output"]) == "Found(ran=True, failed=True, framework='zunit')"
