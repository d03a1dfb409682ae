"""Read the sources of settings into values by key: a file, the environment, the command line, a profile."""

from __future__ import annotations

from collections.abc import Mapping as Map
from typing import Any

from msgspec import Struct
from msgspec import inspect as shapes

from ralph.config.document import Mapping, Node, Scalar, Sequence, parse_value
from ralph.config.durations import BARE_NUMBERS
from ralph.config.keys import ALIASES, RESERVED_VARIABLES, canonical, nearest_hint, options, variable_of
from ralph.config.values import NOTHING, Reader, Wrong
from ralph.core.errors import ConfigError
from ralph.core.problems import Place, Problem, Severity


class Found(Struct, frozen=True):
    """A value that a source sets."""

    value: Any
    written: Any
    """The value with `${…}` left in its strings, so that it can be stored and compared without the substituted text."""
    spelled: str
    """The key as written there, or the name of the variable or flag."""
    line: int = 0


Values = dict[str, Found]


def read_file(root: Mapping, file: str, env: Map[str, str]) -> tuple[Values, list[Problem]]:
    reader = Reader(file, env)
    values: Values = {}
    _read_section(reader, root, "", values)
    return values, reader.problems


def _read_section(reader: Reader, section: Mapping, prefix: str, values: Values) -> None:
    inside = [key for key in (*options(), *ALIASES) if key.startswith(prefix)]
    names = {key.removeprefix(prefix).partition(".")[0] for key in inside}
    for name, node in section.items:
        spelled = prefix + name.text
        if name.text not in names:
            reader.unknown(name, spelled)
        elif spelled in inside and not (isinstance(node, Mapping) and spelled in ALIASES and ALIASES[spelled].short):
            _read_option(reader, name, node, spelled, values)
        elif isinstance(node, Mapping):
            _read_section(reader, node, f"{spelled}.", values)
        elif not (isinstance(node, Scalar) and node.is_null):  # null: its keys are all commented out
            known = ", ".join(
                sorted(key.removeprefix(f"{spelled}.") for key in inside if key.startswith(f"{spelled}."))
            )
            reader.report(Wrong("wrong-type", f"expected a mapping with {known}", node, spelled))


def _read_option(reader: Reader, name: Scalar, node: Node, spelled: str, values: Values) -> None:
    key = ALIASES[spelled].key if spelled in ALIASES else spelled
    value = reader.option(node, spelled)
    if value is NOTHING:
        return
    if earlier := values.get(key):
        message = f"{key} is set twice, first in line {earlier.line} as {earlier.spelled}"
        reader.report(Wrong("set-twice", message, name, spelled, "keep one of them"))
        return
    written = Reader(reader.file, reader.env, reveal=False).option(node, spelled)
    values[key] = Found(value, written, spelled, name.line)


def read_variables(env: Map[str, str], extra: Map[str, str]) -> tuple[Values, list[Problem]]:
    """`RALPH_*`, and `extra` variables (name → key) with lower precedence. An empty variable counts as not set."""
    switches = {variable_of(spelled): spelled for spelled, alias in ALIASES.items() if alias.switch or alias.short}
    named = {**extra, **switches, **{option.variable: key for key, option in options().items()}}
    values: Values = {}
    problems: list[Problem] = []
    for variable, spelled in named.items():
        if text := env.get(variable):
            value, found = _read_text(text, spelled, variable)
            problems += found
            if value is not NOTHING:
                values[canonical(spelled)] = Found(value, value, variable)
    for name in sorted(set(env) - set(named) - RESERVED_VARIABLES):
        if name.startswith("RALPH_"):
            hint = nearest_hint(name, named)
            message = f"the environment variable {name} is not a Ralph setting"
            problems.append(Problem("unknown-variable", message, Place(name), hint, Severity.WARNING))
    return values, problems


def read_given(given: Map[str, Any], source: str) -> tuple[Values, list[Problem]]:
    """Values by canonical key from the command line or a profile: typed, or text as a user would type it."""
    values: Values = {}
    problems: list[Problem] = []
    for key, value in given.items():
        spelled = source or _flag(key)
        read, found = _read_text(value, key, spelled) if isinstance(value, str) else _read_typed(value, key, spelled)
        problems += found
        if read is not NOTHING:
            values[key] = Found(read, read, spelled)
    return values, problems


def read_text(text: str, key: str, source: str) -> Any:
    """The value of a text for an option, e.g. from the command line."""
    value, problems = _read_text(text, key, source)
    if problems:
        raise ConfigError.of(problems)
    return value


def _flag(key: str) -> str:
    flags = options()[key].flags
    return next((flag for flag in flags if flag.startswith("--")), key)


def _read_text(text: str, key: str, source: str) -> tuple[Any, list[Problem]]:
    try:
        node = node_of_text(text, key, source)
    except ConfigError as error:
        return NOTHING, list(error.problems)
    return _read_node(node, key, source, BARE_NUMBERS.get(source))


def _read_typed(value: Any, key: str, source: str) -> tuple[Any, list[Problem]]:
    """Numbers are already seconds: the flag's unit has been parsed."""
    return _read_node(_node_of(value), key, source, 1.0)


def _read_node(node: Node, key: str, source: str, bare: float | None) -> tuple[Any, list[Problem]]:
    reader = Reader(source, bare=bare)
    value = reader.option(node, key)
    return value, reader.problems


def node_of_text(text: str, key: str, source: str) -> Node:
    """A text given for an option. Only lists and mappings are YAML; a string is never cut at a `#` or a `:`."""
    shape = options()[ALIASES[key].key if key in ALIASES else key].type
    assert isinstance(shape, shapes.Metadata)
    form = (shape.extra or {}).get("form", "")
    if isinstance(shape.type, shapes.StrType):
        return Scalar(text=text, plain=False)
    if isinstance(shape.type, shapes.DictType | shapes.VarTupleType) and (not form or text.lstrip().startswith("[")):
        return parse_value(text, source)
    return Scalar(text=text.strip(), plain=not form or form == "duration")


def _node_of(value: Any) -> Node:
    if isinstance(value, dict):
        return Mapping(items=tuple((Scalar(text=str(k), plain=False), _node_of(v)) for k, v in value.items()))
    if isinstance(value, list | tuple):
        return Sequence(items=tuple(_node_of(item) for item in value))
    if isinstance(value, bool) or value is None:
        return Scalar(text={True: "true", False: "false", None: "null"}[value])
    return Scalar(text=str(value), plain=not isinstance(value, str))
