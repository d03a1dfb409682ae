"""bash 3.2 or later: no associative arrays, and `compopt` only where it exists."""

from __future__ import annotations

from collections.abc import Iterable

from ralph.cli.grammar import Command, Value

# Never `compgen -W` for ids: it expands its words, and a plan may be anybody's. Ids that a shell would not take as
# one plain word are left out.
_SCRIPT = """\
# Completion of ralph for bash, written by `ralph config completion bash`.

_ralph_commands() {
    case $1 in
__COMMANDS__
    esac
}

# The command that an older name stands for.
_ralph_older() {
    case $1 in
__OLDER__
    esac
}

_ralph_options() {
    case $1 in
__OPTIONS__
    esac
}

# The kind of an option's value or an argument: `text`, `file`, `folder`, `story`, or the choices.
_ralph_value() {
    case $1 in
__VALUES__
    esac
}

_ralph_offer() {
    local id
    case $1 in
    text) ;;
    file | folder)
        local IFS=$'\\n'
        compopt -o filenames 2>/dev/null
        if [ "$1" = file ]; then COMPREPLY+=($(compgen -f -- "$2")); else COMPREPLY+=($(compgen -d -- "$2")); fi
        ;;
    story)
        while IFS= read -r id; do
            case $id in
            *[!A-Za-z0-9._-]*) ;;
            "$2"*) COMPREPLY+=("$id") ;;
            esac
        done < <("$3" task list --ids 2>/dev/null)
        ;;
    *) COMPREPLY+=($(compgen -W "$1" -- "$2")) ;;
    esac
}

_ralph() {
    local program=$1 current=${COMP_WORDS[COMP_CWORD]} path= flag= count=0 at word kind
    COMPREPLY=()
    for ((at = 1; at < COMP_CWORD; at++)); do
        word=${COMP_WORDS[at]}
        if [ "$word" = = ]; then
            continue
        elif [ -n "$flag" ]; then
            flag=
        elif [[ $word == -* ]]; then
            [ -n "$(_ralph_value "$path $word")" ] && flag=$word
        elif [[ " $(_ralph_commands "$path") " == *" $word "* ]]; then
            path="${path:+$path }$word"
            count=0
        elif [ -z "$path" ] && [ -n "$(_ralph_older "$word")" ]; then
            path=$(_ralph_older "$word")
        else
            count=$((count + 1))
        fi
    done
    [ "$current" = = ] && current=
    if [ -n "$flag" ]; then
        _ralph_offer "$(_ralph_value "$path $flag")" "$current" "$program"
    elif [[ $current == -* ]]; then
        _ralph_offer "$(_ralph_options "$path")" "$current" "$program"
    else
        kind=$(_ralph_commands "$path")
        [ -n "$kind" ] && [ $count = 0 ] && _ralph_offer "$kind" "$current" "$program"
        kind=$(_ralph_value "$path #$((count + 1))")
        [ -z "$kind" ] && kind=$(_ralph_value "$path #more")
        _ralph_offer "${kind:-text}" "$current" "$program"
    fi
}

complete -F _ralph ralph
"""


def script(ralph: Command) -> str:
    commands, options, values, older = [], [], [], []
    for command in ralph.family():
        path = " ".join(command.path)
        older += [_case(name, command.path) for name in command.older]
        if command.subcommands:
            commands.append(_case(path, (sub.path[-1] for sub in command.subcommands)))
        options.append(_case(path, (flag for option in command.options for flag in option.flags)))
        for option in command.options:
            if option.value:
                values += [_case(f"{path} {flag}", _offer(option.value)) for flag in option.flags]
        for place, argument in enumerate(command.arguments, start=1):
            values.append(_case(f"{path} #{'more' if argument.repeats else place}", _offer(argument.value)))
    return (
        _SCRIPT.replace("__COMMANDS__", "\n".join(commands))
        .replace("__OLDER__", "\n".join(older))
        .replace("__OPTIONS__", "\n".join(options))
        .replace("__VALUES__", "\n".join(values))
    )


def _case(key: str, words: Iterable[str]) -> str:
    return f"    '{key}') echo '{' '.join(words)}' ;;"


def _offer(value: Value) -> tuple[str, ...]:
    return value.choices or (value.kind.value,)
