"""What the documents tell people to type exists and is understood, and the README does what it says.

`test_doc_commands.py` runs the other pages.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from argparse import ArgumentParser, _SubParsersAction
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from ralph.cli.main import parser_of
from ralph.cli.table import resolve
from support.doc_projects import DocProject, blocks

ROOT = Path(__file__).resolve().parent.parent
GENERATED = ("docs/cli.md",)  # by scripts/write_docs.py, and checked with it
PAGES = [
    str(path.relative_to(ROOT))
    for path in (*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("docs/*.md")))
    if str(path.relative_to(ROOT)) not in GENERATED
]
ASSIGNMENT = re.compile(r"[A-Z_]+=.*")


def command_lines(page: str) -> list[list[str]]:
    """The words of every command in the `sh` blocks of a page, and behind the `$` of recorded ones."""
    text = (ROOT / page).read_text().replace("\\\n", " ")
    typed = [line for block in blocks(page) for line in block.text.replace("\\\n", " ").splitlines()]
    for recorded in re.findall(r"^```console\n(.*?)^```", text, re.M | re.S):
        typed += re.findall(r"^\$ (.*)$", recorded, re.M)
    return [words for line in typed for words in commands(line)]


def commands(line: str) -> Iterator[list[str]]:
    """Without redirections, variables, and what is told about it behind a `#`."""
    reader = shlex.shlex(line, posix=True, punctuation_chars="|<>&;")
    reader.whitespace_split = True
    words: list[str] = []
    into_file = False
    for word in (*reader, ";"):
        if word[0] in "|&;":
            yield from [words] if words else []
            words = []
        elif word[0] not in "<>" and not into_file and not ASSIGNMENT.fullmatch(word):
            words.append(word)
        into_file = word[0] in "<>"


def test_a_line_is_read_as_a_shell_would() -> None:
    assert list(commands("A=1 ralph x 'a | b' <in >out # more | less")) == [["ralph", "x", "a | b"]]
    assert list(commands("echo {} | ralph y && cd z")) == [["echo", "{}"], ["ralph", "y"], ["cd", "z"]]
    assert list(commands("# nothing")) == []


def mentioned(page: str) -> list[list[str]]:
    """The words of every `ralph …` in running text."""
    text = re.sub(r"^```.*?^```", "", (ROOT / page).read_text(), flags=re.M | re.S)
    return [shlex.split(found) for found in re.findall(r"`ralph ([^`]+)`", text)]


def test_there_is_something_to_look_at() -> None:
    assert ["ralph", "init", "user-login"] in command_lines("README.md")
    assert ["scripts/demo"] in command_lines("README.md")
    assert ["rescue", "list"] in mentioned("README.md")


@pytest.mark.parametrize("page", PAGES)
def test_every_command_line_of_a_page_is_understood(page: str) -> None:
    for program, *arguments in command_lines(page):
        if program == "ralph":
            command, rest = resolve(arguments)
            assert command, arguments
            assert parser_of(command).parse_args(rest), arguments
        elif program == "python" and arguments[0].endswith(".py"):
            assert (ROOT / arguments[0]).is_file(), f"there is no {arguments[0]}"
        elif program == "python":
            module = arguments[arguments.index("-m") + 1]
            assert find_spec(module), f"there is no module {module}"
        elif program.startswith("scripts/"):
            script = ROOT / program
            assert os.access(script, os.X_OK), f"{program} is no program"
            source = "".join(path.read_text() for path in script.parent.iterdir() if path.is_file())
            assert [flag for flag in arguments if flag.startswith("--") and flag not in source] == []


@pytest.mark.parametrize("page", PAGES)
def test_every_command_that_a_page_mentions_exists(page: str) -> None:
    for name, *rest in mentioned(page):
        if name.startswith("-") or name in ("COMMAND", "FAMILY"):
            continue
        command, words = resolve([name, *rest])
        assert command, f"{page} mentions `ralph {name}`"
        parser = parser_of(command)
        known = set(parser.flags())
        options = [option for word in words if word.startswith("--") for option in word.split("|")]
        assert [option for option in options if option.partition("=")[0] not in known] == []
        if (actions := set(subcommands(parser))) and words and words[0].islower():
            assert words[0] in actions, f"{page} mentions `ralph {name} {words[0]}`"


def subcommands(parser: ArgumentParser) -> Iterator[str]:
    for action in parser._actions:
        if isinstance(action, _SubParsersAction):
            yield from action.choices


def test_the_readme_as_it_stands_ends_in_a_finished_run(tmp_path: Path) -> None:
    steps = [block for block in blocks("README.md") if not block.why_not]
    assert [block.where for block in steps] == ["a new project"]
    project = DocProject(tmp_path, steps[0].where)
    said = project.play(steps[0])
    assert "every story is done, and the checks pass on the final tree" in said
    [plan] = project.root.glob(".ralph/*/tasks.json")
    assert [story["passes"] for story in json.loads(plan.read_text())["userStories"]] == [True]
    assert "feat(US-001): Log in with a passkey" in project.do("git log --format=%s")
