"""Values of settings as users read and type them."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import inspect as shapes

from ralph.config.durations import format_duration
from ralph.config.keys import Option
from ralph.core.secrets import masked

_KINDS: dict[type, str] = {
    shapes.BoolType: "true or false",
    shapes.IntType: "number",
    shapes.FloatType: "number",
    shapes.StrType: "text",
    shapes.VarTupleType: "list",
    shapes.DictType: "mapping",
}


def show(value: Any, option: Option | None = None) -> str:
    """One line. Lists and mappings as JSON; a float is a duration, unless the option says otherwise."""
    value = safe(value, option)
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return format_duration(value) if option is None or is_duration(option) else f"{value:g}"
    if isinstance(value, str | int):
        return str(value)
    return msgspec.json.encode(value).decode()


def safe(value: Any, option: Option | None) -> Any:
    """A value that can be shown: secret addresses are masked."""
    if option is None or not option.secret or not value:
        return value
    return masked(value) if isinstance(value, str) else tuple(map(masked, value))


def kind(option: Option) -> str:
    """The type of the option's values, in a word or two."""
    shape = shape_of(option)
    if isinstance(shape, shapes.LiteralType):
        return ", ".join(str(value) for value in shape.values)
    if is_duration(option):
        return "duration"
    return _KINDS[type(shape)]


def is_duration(option: Option) -> bool:
    return isinstance(option.type, shapes.Metadata) and (option.type.extra or {}).get("form") == "duration"


def shape_of(option: Option) -> shapes.Type:
    """The type of an option's values, without annotations and without `| None`."""
    shape = option.type.type if isinstance(option.type, shapes.Metadata) else option.type
    if isinstance(shape, shapes.UnionType):
        return next(t for t in shape.types if not isinstance(t, shapes.NoneType))
    return shape
