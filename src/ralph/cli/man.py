"""Man pages, from the same parsers as `--help`: one for `ralph`, and one for each command with its actions."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import groupby

from ralph import __version__
from ralph.cli.grammar import Command, Option
from ralph.cli.table import shown
from ralph.core.exit_codes import ExitCode

_FILES = {
    "~/.ralph/config.yaml": "settings of the user",
    ".ralph/config.yaml": "settings of the workspace",
    "$XDG_STATE_HOME/ralph/": "journals, proofs and locks; `ralph config paths` prints every path",
}
_NOT_PLAIN = re.compile(r"[^\x20-\x7e]")


def pages(ralph: Command) -> dict[str, str]:
    """File name → roff."""
    found = {"ralph.1": _roff(_overview(ralph), "RALPH")}
    for command in ralph.subcommands:
        name = "-".join(("ralph", *command.path))
        found[f"{name}.1"] = _roff(_page(command, name), name.upper())
    return found


def _roff(lines: Iterable[str], title: str) -> str:
    return "\n".join((f'.TH "{_text(title)}" 1 "" "ralph {__version__}" "Ralph"', *lines, ""))


def _overview(ralph: Command) -> Iterator[str]:
    yield from (".SH NAME", _text("ralph - let a coding agent work through a list of stories, and prove what it did"))
    yield from (".SH SYNOPSIS", r"\fBralph\fR \fICOMMAND\fR [\fIOPTIONS\fR]")
    yield from (".SH DESCRIPTION", "An agent's word is a claim; checks that Ralph runs itself prove it.")
    yield from ("Each command has a page of its own:", r"\fBman ralph\-run\fR is the one of \fBralph run\fR.")
    yield ".SH COMMANDS"
    for title, group in groupby(shown().items(), key=lambda item: item[1].group):
        yield f'.SS "{_text(title)}"'
        for name, entry in group:
            yield from (".TP", rf"\fB{_text(name)}\fR", _text(entry.summary))
    yield from (".SH OPTIONS", *_options(ralph.options))
    yield ".SH FILES"
    for path, meaning in _FILES.items():
        yield from (".TP", rf"\fI{_text(path)}\fR", _text(meaning))
    yield ".SH EXIT STATUS"
    for code in ExitCode:
        yield from (".TP", str(int(code)), _text(code.meaning))


def _page(command: Command, name: str) -> Iterator[str]:
    yield from (".SH NAME", _text(f"{name} - {command.summary}"))
    yield ".SH SYNOPSIS"
    for index, one in enumerate(command.family()):
        yield from (".br",) if index else ()
        yield _synopsis(one)
    yield ".SH DESCRIPTION"
    yield from _prose(command.description or command.summary)
    if command.arguments or command.options:
        yield from (".SH OPTIONS", *_parameters(command))
    if len(command.family()) > 1:
        yield ".SH ACTIONS"
    for one in command.family()[1:]:
        yield f'.SS "{_text(one.name)}"'
        yield from (*_prose(one.description or one.summary), *_parameters(one))
        yield from (".PP", *_examples(one)) if one.examples else ()
    if command.examples:
        yield from (".SH EXAMPLES", *_examples(command))
    yield from (".SH SEE ALSO", r"\fBralph\fR(1)")


def _synopsis(command: Command) -> str:
    words = [rf"\fB{_text(command.name)}\fR", r"[\fIOPTIONS\fR]"]
    for argument in command.arguments:
        word = rf"\fI{_text(argument.value.name)}\fR" + (r" \&..." if argument.repeats else "")
        words.append(f"[{word}]" if argument.optional else word)
    return " ".join(words)


def _parameters(command: Command) -> Iterator[str]:
    for argument in command.arguments:
        if argument.help:
            yield from (".TP", rf"\fI{_text(argument.value.name)}\fR", _text(argument.help))
    for title, options in groupby(command.options, key=lambda option: option.group):
        if title:
            yield from (".PP", rf"\fI{_text(title)}\fR")
        yield from _options(options)


def _options(options: Iterable[Option]) -> Iterator[str]:
    for option in options:
        value = rf" \fI{_text(option.value.name)}\fR" if option.value else ""
        yield from (".TP", ", ".join(rf"\fB{_text(flag)}\fR{value}" for flag in option.flags), _text(option.help))


def _examples(command: Command) -> Iterator[str]:
    if command.examples:
        yield from (".nf", *(_text(line) for line in command.examples), ".fi")


def _prose(text: str) -> Iterator[str]:
    """Paragraphs. One with indented lines is formatted by hand, and stays as it is."""
    for index, paragraph in enumerate(text.split("\n\n")):
        yield from (".PP",) if index else ()
        lines = [_text(line) for line in paragraph.splitlines()]
        yield from (".nf", *lines, ".fi") if "\n  " in paragraph else lines


def _text(text: str) -> str:
    """As roff prints it: no character is a command, and none depends on the encoding."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-").replace('"', "\\(dq").replace("`", "\\(ga")
    escaped = _NOT_PLAIN.sub(lambda found: f"\\[u{ord(found[0]):04X}]", escaped)
    return rf"\&{escaped}" if escaped.startswith((".", "'")) else escaped
