"""The command line as values, read from the parsers, for completion scripts and the reference page.

argparse has no public API for what a parser accepts: this is the only module that reads its private attributes.
"""

from __future__ import annotations

import argparse
import re
from enum import StrEnum

from msgspec import Struct

from ralph.cli.arguments import Parser
from ralph.cli.main import parser_of
from ralph.cli.table import entries, shown
from ralph.plans.registry import LAYOUTS


class Kind(StrEnum):
    """The kind of a value, for completion in a shell."""

    TEXT = "text"
    CHOICE = "choice"
    FILE = "file"
    FOLDER = "folder"
    STORY = "story"


_KINDS = {"DIR": Kind.FOLDER, "FILE": Kind.FILE, "PATH": Kind.FILE, "ID": Kind.STORY, "STORY": Kind.STORY}


class Value(Struct, frozen=True):
    name: str
    kind: Kind = Kind.TEXT
    choices: tuple[str, ...] = ()


class Option(Struct, frozen=True):
    flags: tuple[str, ...]
    help: str
    value: Value | None = None
    group: str = ""
    """Its heading in `--help`; empty for the first options."""


class Argument(Struct, frozen=True):
    value: Value
    help: str
    repeats: bool = False
    optional: bool = False


class Command(Struct, frozen=True):
    path: tuple[str, ...]
    """Without the program name: `("task", "done")`; empty for `ralph` itself."""
    summary: str
    description: str = ""
    options: tuple[Option, ...] = ()
    arguments: tuple[Argument, ...] = ()
    examples: tuple[str, ...] = ()
    subcommands: tuple[Command, ...] = ()
    is_family: bool = False
    """Without an action, it does the family's usual work."""
    older: tuple[str, ...] = ()
    """Other names of one word."""

    @property
    def name(self) -> str:
        return " ".join(("ralph", *self.path))

    def family(self) -> list[Command]:
        """The command and everything below it, parents first."""
        return [self, *(one for child in self.subcommands for one in child.family())]


def read_all() -> Command:
    """The whole of `ralph`."""
    commands = tuple(map(read, shown()))
    options = (
        Option(("-V", "--version"), "print the version"),
        Option(("-h", "--help"), "print the commands"),
    )
    return Command((), "let a coding agent work through a plan", options=options, subcommands=commands)


def read(name: str) -> Command:
    """One command of one word, with its actions."""
    return _read(parser_of(name), (name,), entries()[name].summary)


def _read(parser: Parser, path: tuple[str, ...], summary: str) -> Command:
    options: list[Option] = []
    arguments: list[Argument] = []
    subcommands = [
        _read(parser_of(" ".join((*path, name))), (*path, name), each) for name, each in parser.family.items()
    ]
    _, *titled = parser._action_groups[1:]  # [0] are the positional arguments
    headings = {id(action): group.title or "" for group in titled for action in group._group_actions}
    entry = entries().get(" ".join(path))
    names = entry.names if entry else []
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            summaries = {choice.dest: choice.help or "" for choice in action._choices_actions}
            subcommands += [_read(sub, (*path, name), summaries.get(name, "")) for name, sub in action.choices.items()]
        elif action.help == argparse.SUPPRESS:
            continue
        elif action.option_strings:
            value = _value(action) if action.nargs != 0 else None
            group = headings.get(id(action), "")
            options.append(Option(tuple(action.option_strings), _help(parser, action), value, group))
        else:
            repeats = action.nargs in ("*", "+", argparse.REMAINDER)
            optional = action.nargs in ("?", "*", argparse.REMAINDER)
            arguments.append(Argument(_value(action), _help(parser, action), repeats, optional))
    return Command(
        path,
        summary,
        description=(parser.description or "").strip(),
        options=tuple(options),
        arguments=tuple(arguments),
        examples=tuple(map(_example, parser.examples)),
        subcommands=tuple(subcommands),
        is_family=bool(parser.family),
        older=tuple(name for name in names if " " not in name),
    )


def _value(action: argparse.Action) -> Value:
    choices = tuple(str(choice) for choice in action.choices or ())
    metavar = action.metavar[0] if isinstance(action.metavar, tuple) else action.metavar
    name = metavar or ("|".join(choices) if choices else action.dest.upper())
    if name == "LAYOUT":  # not choices of the parser: the registry has the better error
        choices = tuple(LAYOUTS.names())
    return Value(name, Kind.CHOICE if choices else _KINDS.get(name, Kind.TEXT), choices)


def _help(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    if not action.help:
        return ""
    return parser._get_formatter()._expand_help(action)


def _example(line: str) -> str:
    """Text after two spaces is a comment and becomes a shell comment."""
    return re.sub(r" {2,}(?:# *)?(?=\S)", "  # ", line, count=1)
