"""zsh: one function per command, each a call of `_arguments`."""

from __future__ import annotations

from ralph.cli.grammar import Argument, Command, Kind, Option, Value

_HEAD = """\
#compdef ralph
# Completion of ralph for zsh, written by `ralph config completion zsh`.

_ralph_stories() {
    local -a ids
    ids=(${(f)"$(ralph task list --ids 2>/dev/null)"})
    compadd -a ids
}
"""

_TAIL = """
if [ "$funcstack[1]" = _ralph ]; then
    _ralph "$@"
else
    compdef _ralph ralph
fi
"""

_ACTIONS = {Kind.FILE: "_files", Kind.FOLDER: "_files -/", Kind.STORY: "_ralph_stories", Kind.TEXT: " "}


def script(ralph: Command) -> str:
    return _HEAD + "".join(_function(command) for command in reversed(ralph.family())) + _TAIL


def _function(command: Command) -> str:
    specs = [_option(option) for option in command.options]
    if not command.subcommands:
        specs += [_argument(argument, place) for place, argument in enumerate(command.arguments, start=1)]
        return f"\n{_name(command)}() {{\n    _arguments -s {_lines(specs)}\n}}\n"
    specs += ["'1: :->command'", "'*:: :->rest'"]
    names = "".join(f"            {_quote(f'{sub.path[-1]}:{_plain(sub.summary)}')}\n" for sub in command.subcommands)
    cases = "".join(f"        {sub.path[-1]}) {_name(sub)} ;;\n" for sub in command.subcommands)
    if not command.path:
        cases += "".join(f"        {name}) {_name(one)} ;;\n" for one in command.family() for name in one.older)
    takes_story = any(argument.value.kind is Kind.STORY for argument in command.arguments)
    first = "        _ralph_stories\n" if takes_story else ""
    return f"""
{_name(command)}() {{
    local state line
    local -a commands
    _arguments -C -s {_lines(specs)}
    case $state in
    command)
        commands=(
{names}        )
        _describe command commands
{first}        ;;
    rest)
        case $line[1] in
{cases}        esac
        ;;
    esac
}}
"""


def _name(command: Command) -> str:
    return "_".join(("_ralph", *command.path)).replace("-", "_")


def _option(option: Option) -> str:
    excluded = f"({' '.join(option.flags)})" if len(option.flags) > 1 else ""
    flags = f"{{{','.join(option.flags)}}}" if len(option.flags) > 1 else option.flags[0]
    value = f":{_plain(option.value.name)}:{_action(option.value)}" if option.value else ""
    return f"{_quote('*' if not excluded and option.value else excluded)}{flags}{_quote(_bracket(option.help) + value)}"


def _argument(argument: Argument, place: int) -> str:
    which = "*" if argument.repeats else f"{place}:" if argument.optional else f"{place}"
    return _quote(f"{which}:{_plain(argument.value.name)}:{_action(argument.value)}")


def _action(value: Value) -> str:
    return f"({' '.join(value.choices)})" if value.choices else _ACTIONS[value.kind]


def _bracket(text: str) -> str:
    escaped = _plain(text).replace("[", "\\[").replace("]", "\\]")
    return f"[{escaped}]"


def _plain(text: str) -> str:
    return " ".join(text.split()).replace("\\", "\\\\").replace(":", "\\:")


def _lines(specs: list[str]) -> str:
    return "".join(f"\\\n        {spec} " for spec in specs).rstrip(" ")


def _quote(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'" if text else ""
