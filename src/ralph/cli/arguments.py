"""Arguments that all commands share."""

from __future__ import annotations

import argparse
import os
import re
import sys
from argparse import ArgumentParser
from collections.abc import Iterator, Mapping
from typing import Any, NoReturn, cast

from ralph.core.errors import UsageError

WHICH_PLAN = "which plan"


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """A formatter without shutil: argparse creates one per argument, and would import shutil only for the width."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=_columns() - 2)

    def _format_usage(self, usage: Any, actions: Any, groups: Any, prefix: Any) -> str:
        """The usage line names only required options; all of them are listed below it."""
        needed = [group for group in groups if group.required]
        inside = [action for group in needed for action in group._group_actions]
        shown = [one for one in actions if one.required or not one.option_strings or one in inside]
        if any(one not in shown and "--help" not in one.option_strings for one in actions):
            self._prog += " [OPTIONS]"
        return super()._format_usage(usage, shown, needed, prefix)


def _columns() -> int:
    given = os.environ.get("COLUMNS", "")
    if given.isascii() and given.isdigit() and int(given):
        return int(given)
    try:
        return os.get_terminal_size(1).columns or 80
    except OSError:  # stdout is no terminal, or closed
        return 80


class Parser(ArgumentParser):
    """argparse with Ralph's exit code for usage errors, and suggestions for misspelled options and choices."""

    def __init__(
        self,
        *args: object,
        examples: str = "",
        text: str = "",
        actions: Mapping[str, str] | None = None,
        **kwargs: object,
    ) -> None:
        """`text`: the docstring of a function in `cli.syntax`. `actions`: those of a family, with their summaries."""
        kwargs.setdefault("formatter_class", _Formatter)
        kwargs.setdefault("allow_abbrev", False)
        if text:
            lines = (line.removeprefix("    ") for line in text.rstrip().splitlines())
            kwargs["description"], _, examples = "\n".join(lines).partition("\n\nexamples:\n")
        elif (summary := str(kwargs.get("description") or "")) and summary[0].islower():
            kwargs["description"] = f"{summary[0].upper()}{summary[1:]}."
        self.family = dict(actions or {})
        listed = "".join(f"  {name:<12} {summary}\n" for name, summary in self.family.items())
        parts = [f"actions, each with a `--help` of its own:\n{listed}"] if listed else []
        self.examples = [line.strip() for line in examples.strip().splitlines()]
        if self.examples:
            parts.append("\n  ".join(("examples:", *self.examples)))
        kwargs["epilog"] = "\n".join(parts)
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        self._words: list[str] = list(sys.argv[1:] if args is None else args)
        return super().parse_known_args(self._words, namespace)

    def error(self, message: str) -> NoReturn:
        if match := re.search(r"argument (-\S+): expected (?:at least )?one argument", message):
            action = next(one for one in self._actions if "/".join(one.option_strings) == match[1])
            self._complain_about_value(action)
        raise UsageError(message, hint=self._hint(message))

    def _hint(self, message: str) -> str:
        from ralph.cli.guesses import closest, option_hint  # for mistakes only

        if match := re.search(r"invalid choice: '?([^' ]+)", message):
            known = [str(choice) for action in self._actions for choice in action.choices or ()]
            if near := closest(match[1], known):
                return f"did you mean {near}?"
        elif (match := re.search(r"unrecognized arguments: (\S+)", message)) and (
            hint := option_hint(match[1].partition("=")[0], [*self.flags(), *self._actions_by_name()])
        ):
            return hint
        return f"see `{self.prog} --help`"

    def _complain_about_value(self, action: argparse.Action) -> NoReturn:
        """Nothing follows the option, or another option does, or something that argparse takes for one."""
        flag, known = action.option_strings[-1], set(self.flags())
        values = str(action.metavar or ", ".join(map(str, action.choices or ())) or action.dest.upper())
        pairs = zip(self._words, self._words[1:], strict=False)
        is_dashed = any(
            word in action.option_strings and after[:1] == "-" and after.partition("=")[0] not in {*known, "--"}
            for word, after in pairs
        )
        hint = f"write a value that starts with a dash as {flag}=-VALUE" if is_dashed else f"see `{self.prog} --help`"
        raise UsageError(f"{flag} needs a value: {values}", hint=hint)

    def _actions_by_name(self) -> Iterator[str]:
        """The actions of a family, also by their older names."""
        from ralph.cli.table import older_names

        yield from self.family
        words = (name.split() for name in older_names())
        yield from (word[1] for word in words if word[:-1] == self.prog.split()[1:])

    def flags(self) -> Iterator[str]:
        """The options of this parser and its subcommands: argparse reports unknown ones from the outermost parser."""
        for action in self._actions:
            yield from action.option_strings
            if isinstance(action, argparse._SubParsersAction):
                for parser in action.choices.values():
                    yield from parser.flags()


def add_project(parser: ArgumentParser | argparse._ArgumentGroup) -> None:
    """`-d`, for a command that needs the project but no plan."""
    parser.add_argument(
        "-d", "--project-dir", metavar="DIR", help="the project folder, or one inside it (default: the current folder)"
    )


def add_workspace(parser: ArgumentParser, *, layout: str = "--layout", json: bool = False) -> None:
    """Which workspace, and which plan in it. A command whose `--layout` is a target has `--from` for the source."""
    if json:
        add_json(parser)
    group = parser.add_argument_group(WHICH_PLAN)
    add_project(group)
    _add_plan(group)
    group.add_argument(
        layout, dest="layout", metavar="LAYOUT", help="the layout of the plan, if the project uses several"
    )


def add_new_plan(parser: ArgumentParser) -> None:
    """The same options, for a command that creates a plan or adds to it."""
    group = parser.add_argument_group(WHICH_PLAN)
    group.add_argument("-d", "--project-dir", metavar="DIR", help="the project folder (default: found from here)")
    _add_plan(group)
    group.add_argument("--layout", metavar="LAYOUT", help="the layout of the plan (default: tasks.json for a new one)")


def layout_and_name(args: argparse.Namespace) -> tuple[str, str]:
    """The values of the options of `add_new_plan`. A PRD is a plan in the layout `plan.md` named by its number."""
    if not args.prd:
        return args.layout or "", args.feature or ""
    if args.feature:
        raise UsageError("--feature and --prd name two different plans", hint="leave one of them out")
    return args.layout or "plan.md", args.prd


def _add_plan(group: argparse._ArgumentGroup) -> None:
    group.add_argument("-f", "--feature", metavar="NAME", help="the plan in .ralph/NAME/")
    group.add_argument("--prd", metavar="N", help="the plan in .ralph/PRD-N/")
    group.add_argument("--ralph-dir", metavar="DIR", help="the plan in DIR/tasks.json")


def add_json(parser: ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")


def add_output(shown: argparse._ArgumentGroup) -> None:
    shown.add_argument("-v", "--verbose", action="store_true", help="also show what the agent does")
    shown.add_argument("-q", "--quiet", action="store_true", help="print only the summary")
    shown.add_argument("--plain", action="store_true", help="print lines instead of the live view, and ask nothing")
    shown.add_argument("--json", action="store_true", help="print events, one JSON object per line")


def add_action(actions: Any, name: str, summary: str, examples: str) -> ArgumentParser:
    """An action of a command, added to what `add_subparsers` returned."""
    return cast(ArgumentParser, actions.add_parser(name, help=summary, description=summary, examples=examples))


def add_config(parser: ArgumentParser | argparse._ArgumentGroup) -> None:
    parser.add_argument("--config", metavar="NAME", help="also read .ralph/configs/NAME")


def add_trust(parser: ArgumentParser | argparse._ArgumentGroup) -> None:
    parser.add_argument("--trust", action="store_true", help="trust the commands this workspace defines")


def add_run(parser: ArgumentParser) -> None:
    parser.add_argument("run", nargs="?", default="", metavar="RUN", help="a run's ID or a unique prefix of it")


def width() -> int:
    import shutil

    return shutil.get_terminal_size((100, 24)).columns if sys.stdout.isatty() else 100
