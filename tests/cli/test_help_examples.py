"""Every example of every command is a command line that its parser takes. Nothing is run."""

from __future__ import annotations

import shlex

import pytest

from ralph.cli.main import parser_of
from ralph.cli.table import entries, resolve

STOPS = ("|", ">", ">>", "<", "&&", "||", ";")


def command_lines(examples: str) -> list[list[str]]:
    """The words of each example that calls `ralph`, up to an explanation (two spaces or more) or a pipe."""
    found = []
    for example in examples.strip().splitlines():
        words = shlex.split(example.strip().partition("  ")[0], comments=True)
        end = next((at for at, word in enumerate(words) if word in STOPS), len(words))
        found.append(words[:end])
    return [words for words in found if words and words[0] == "ralph"]


def test_explanations_and_pipes_are_no_part_of_an_example() -> None:
    assert command_lines("ralph status    all of it\nralph x --y 'z w' | jq .\necho ralph\n") == [
        ["ralph", "status"],
        ["ralph", "x", "--y", "z w"],
    ]


@pytest.mark.parametrize("name", entries())
def test_the_examples_of_a_command_are_accepted_by_its_parser(name: str) -> None:
    lines = command_lines("\n".join(parser_of(name).examples))
    assert lines, f"ralph {name} has no example"
    for words in lines:
        command, rest = resolve(words[1:])
        assert command.split()[0] == name.split()[0]
        assert parser_of(command).parse_args(rest)
