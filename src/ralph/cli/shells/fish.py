"""fish: a list of `complete` lines, each for one place in the command line."""

from __future__ import annotations

from ralph.cli.grammar import Command, Kind, Option, Value

_HEAD = """\
# Completion of ralph for fish, written by `ralph config completion fish`.

function __ralph_path
    set -l words (commandline -opc)
    set -e words[1]
    set -l path ''
    set -l is_value no
    for word in $words
        if test $is_value = yes
            set is_value no
        else if string match -q -- '-*' $word
            contains -- "$path $word" $__ralph_valued; and set is_value yes
        else
            set -l longer (string trim -- "$path $word")
            contains -- $longer $__ralph_commands; and set path $longer
            if test -z "$path"; and set -l at (contains -i -- $word $__ralph_older)
                set path $__ralph_newer[$at]
            end
        end
    end
    echo $path
end

function __ralph_at
    test (__ralph_path) = "$argv"
end

"""

_OFFERS = {Kind.FILE: " -F", Kind.FOLDER: " -a '(__fish_complete_directories)'", Kind.TEXT: ""}
_STORIES = " -a '(ralph task list --ids 2>/dev/null)'"


def script(ralph: Command) -> str:
    family = ralph.family()
    commands = [" ".join(command.path) for command in family if command.path]
    valued = [
        f"{' '.join(command.path)} {flag}"
        for command in family
        for option in command.options
        if option.value
        for flag in option.flags
    ]
    older = [(name, " ".join(command.path)) for command in family for name in command.older]
    lines = [
        f"set -g __ralph_commands {_list(commands)}",
        f"set -g __ralph_valued {_list(valued)}",
        f"set -g __ralph_older {_list([name for name, _ in older])}",
        f"set -g __ralph_newer {_list([path for _, path in older])}",
        "",
    ]
    lines.append("complete -c ralph -f")
    for command in family:
        lines += _of(command)
    return _HEAD + "\n".join(lines) + "\n"


def _of(command: Command) -> list[str]:
    here = f"complete -c ralph -n {_quote(' '.join(('__ralph_at', *command.path)))}"
    lines = [f"{here} -a {sub.path[-1]} -d {_quote(sub.summary)}" for sub in command.subcommands]
    lines += [f"{here}{_flags(option)}{_value(option.value)} -d {_quote(option.help)}" for option in command.options]
    offers = [_offer(argument.value) for argument in command.arguments]
    return lines + [f"{here}{offer}" for offer in dict.fromkeys(offers) if offer]


def _flags(option: Option) -> str:
    return "".join(f" -l {flag[2:]}" if flag.startswith("--") else f" -s {flag[1:]}" for flag in option.flags)


def _value(value: Value | None) -> str:
    """`-x`: a value follows, and it is not a file."""
    if value is None:
        return ""
    return f" {'-r' if value.kind is Kind.FILE else '-x'}{_offer(value)}"


def _offer(value: Value) -> str:
    if value.choices:
        return f" -a {_quote(' '.join(value.choices))}"
    return _STORIES if value.kind is Kind.STORY else _OFFERS[value.kind]


def _list(words: list[str]) -> str:
    return " ".join(map(_quote, words))


def _quote(text: str) -> str:
    return "'" + " ".join(text.split()).replace("\\", "\\\\").replace("'", "\\'") + "'"
