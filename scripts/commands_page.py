"""`docs/cli.md` and `docs/exit-codes.md`, written from the parsers and the table of exit codes.

Not from `--help`: its layout differs between Python versions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ralph.cli.arguments import WHICH_PLAN
from ralph.cli.grammar import Command, Option, read
from ralph.core.exit_codes import ExitCode
from ralph.report.advice import ADVICE

_COMMANDS = """\
# Commands

<!-- Written by scripts/write_docs.py from the parsers. -->

`ralph COMMAND --help` prints the same as this page. Results go to stdout, everything else to stderr. Output is coloured
only on a terminal, and never with `NO_COLOR`. [exit-codes.md](exit-codes.md) lists the exit codes.
"""

_PLAN_OPTIONS = """\
## Which plan

Every command that reads a plan takes these options. Without them it uses the plan of the project around the current
folder; with several plans, the one whose branch is checked out.
"""

_OTHER_NAMES = """\

## Other names

Older names work as before, with the same options, output and exit codes.
"""

_EXIT_CODES = """\
# Exit codes

<!-- Written by scripts/write_docs.py from the table in ralph.core.exit_codes. -->

The same for every command. A run that reaches its iteration cap or a circuit breaker ends with 1, as the `feature`
layout defines it. Failed stories (5) and the time limit (6) have codes of their own; older versions ended with 1 there,
too. Scripts that treat every code but 0 as unfinished need no change.
"""

_REASONS = """\
## Why a run ends

The reason is in the last record of the journal and in the summary, with details; `ralph explain` shows it again.
"""


def cli_page(ralph: Command) -> str:
    overview = _table(("command", "does"), ((_link(one), one.summary) for one in ralph.subcommands))
    sections = [_section(one, _plan_options(ralph)) for one in ralph.family()[1:]]
    plan = [_PLAN_OPTIONS, _table(("option", "meaning"), _rows(_plan_options(ralph)))] if _plan_options(ralph) else []
    return "\n".join([_COMMANDS, overview, *plan, *sections])


def other_names(ralph: Command) -> str:
    """The names that `ralph help` does not list: those of commands before there were families, and `ralph build`."""
    run = next(one.options for one in ralph.subcommands if one.path == ("run",))
    rows = [(f"`ralph {name}`", _link(one)) for one in ralph.family() for name in one.older]
    rows.append(("[`ralph build`](#ralph-build)", _link(read("run"))))
    return "\n".join(
        [_OTHER_NAMES, _table(("name", "command"), rows), _section(read("build"), _plan_options(ralph), run)]
    )


def _plan_options(ralph: Command) -> list[Option]:
    """The options of the group that most commands share, taken from `ralph status`."""
    status = next((one for one in ralph.subcommands if one.path == ("status",)), None)
    return [option for option in status.options if option.group == WHICH_PLAN] if status else []


def exit_codes_page() -> str:
    rows = ((str(int(code)), code.name.lower().replace("_", " "), code.meaning) for code in ExitCode)
    reasons = ((reason.value, str(int(reason.exit_code)), told.why, told.next) for reason, told in ADVICE.items())
    return "\n".join(
        [
            _EXIT_CODES,
            _table(("code", "name", "meaning"), rows),
            _REASONS,
            _table(("reason", "code", "meaning", "what to do"), reasons),
        ]
    )


def _section(command: Command, plan: list[Option], inherited: Sequence[Option] = ()) -> str:
    parts = [f"{'#' * (len(command.path) + 1)} {command.name}\n", _prose(command.description or command.summary)]
    parts.append(f"```\n{_usage(command)}\n```\n")
    own = [option for option in command.options if "--help" not in option.flags and option not in inherited]
    has_plan = bool(plan) and all(option in own for option in plan)
    own = [option for option in own if not (has_plan and option in plan)]
    rows = [(f"`{argument.value.name}`", argument.help) for argument in command.arguments if argument.help]
    rows += _rows(option for option in own if not option.group)
    if command.subcommands:
        parts.append(_table(("action", "does"), ((_link(one), one.summary) for one in command.subcommands)))
    if rows:
        parts.append(_table(("argument", "meaning"), rows))
    for title in dict.fromkeys(option.group for option in own if option.group):
        parts.append(_table((title, "meaning"), _rows(option for option in own if option.group == title)))
    if inherited:
        parts.append("Also takes every option of [`ralph run`](#ralph-run).\n")
    if has_plan:
        parts.append("Also takes the options under [Which plan](#which-plan).\n")
    if command.examples:
        parts.append("```sh\n" + "\n".join(command.examples) + "\n```\n")
    return "\n".join(parts)


def _rows(options: Iterable[Option]) -> list[tuple[str, str]]:
    return [(_flags(option), option.help) for option in options]


def _prose(text: str) -> str:
    """The text as Markdown. Paragraphs with indented lines are formatted by hand and become code blocks."""
    paragraphs = text.split("\n\n")
    return "\n\n".join(f"```\n{one}\n```" if "\n  " in one else one for one in paragraphs) + "\n"


def _usage(command: Command) -> str:
    words = [command.name]
    if any("--help" not in option.flags for option in command.options):
        words.append("[OPTIONS]")
    if command.subcommands and not command.is_family:
        words.append("ACTION …")
    for argument in command.arguments:
        word = argument.value.name + (" …" if argument.repeats else "")
        words.append(f"[{word}]" if argument.optional else word)
    return " ".join(words)


def _flags(option: Option) -> str:
    value = f" {option.value.name}" if option.value else ""
    return ", ".join(f"`{flag}{value}`" for flag in option.flags)


def _link(command: Command) -> str:
    return f"[`{command.name}`](#{command.name.replace(' ', '-')})"


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "".join(f"| {' | '.join(map(_cell, line))} |\n" for line in lines)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
