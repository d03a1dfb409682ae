"""Command-line options from the declarations in the schema, and the values given for them."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import inspect as shapes

from ralph.config.display import is_duration, kind, shape_of
from ralph.config.durations import BARE_NUMBERS, EXPECTED, parse_duration, unit_hint
from ralph.config.keys import Option, option, options
from ralph.config.reading import read_text
from ralph.core.errors import ConfigError

_PREFIX = "setting:"
_WORKSPACE = ("layout", "feature", "prd", "ralph_dir")
"""Options of every command for finding its plan; named like the keys."""


def add_options(parser: argparse.ArgumentParser | argparse._ArgumentGroup, keys: Sequence[str]) -> None:
    """Add the flags of these keys. Only those given on the command line appear in `flags_of`."""
    for key in keys:
        declared = option(key)
        help_text = _help(declared)
        common: dict[str, Any] = {"dest": _PREFIX + key, "default": argparse.SUPPRESS}
        if is_switch(declared):
            if declared.flags:
                parser.add_argument(*declared.flags, action="store_const", const=True, help=help_text, **common)
            if declared.off:
                negated = f"disable {key}"
                parser.add_argument(*declared.off, action="store_const", const=False, help=negated, **common)
        elif declared.flags:
            metavar = declared.metavar or None
            bare: dict[str, Any] = {"nargs": "?", "const": declared.bare} if declared.bare else {}
            parser.add_argument(
                *declared.flags, type=_type(declared), metavar=metavar, help=help_text, **bare, **common
            )
            for value in dict.fromkeys(value for _, value in declared.constants):
                flags = [flag for flag, constant in declared.constants if constant == value]
                same = f"same as {declared.flags[-1]} {value}"
                parser.add_argument(*flags, action="store_const", const=value, help=same, **common)


def flags_of(args: argparse.Namespace) -> dict[str, Any]:
    """Key → value for every option that was given on the command line."""
    given = vars(args)
    flags = {key: given[key] for key in _WORKSPACE if given.get(key) is not None}
    return flags | {key: given[_PREFIX + key] for key in options() if _PREFIX + key in given}


def is_switch(declared: Option) -> bool:
    return isinstance(shape_of(declared), shapes.BoolType)


def _type(declared: Option) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        if is_duration(declared):
            seconds = parse_duration(text, BARE_NUMBERS.get(declared.flags[-1]))
            if seconds is None:
                hint = f"; {unit_hint(text)}" if unit_hint(text) else ""
                raise argparse.ArgumentTypeError(f"expected {EXPECTED}, found {text!r}{hint}")
            return seconds
        try:
            return read_text(text, declared.key, declared.flags[-1])
        except ConfigError as error:
            raise argparse.ArgumentTypeError(error.problems[0].message) from None

    return read


def _help(declared: Option) -> str:
    doc = (declared.doc[0].lower() + declared.doc[1:]).removesuffix(".")
    choices = f": {kind(declared)}" if isinstance(shape_of(declared), shapes.LiteralType) else ""
    return f"{doc}{choices} [{declared.key}]".replace("%", "%%")
