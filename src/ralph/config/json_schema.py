"""The settings as a JSON Schema (draft 2020-12), for editors. Derived from the same declarations as everything else."""

from __future__ import annotations

from typing import Any

from msgspec import inspect as shapes

from ralph.config.durations import BARE_NUMBERS, PATTERN
from ralph.config.keys import ALIASES, default_of, meaning, options
from ralph.config.schema import Check, Config

_DURATION = {"type": "string", "pattern": PATTERN, "minLength": 1}
_REFERENCE = {"type": "string", "pattern": r"\$\{[A-Za-z_][A-Za-z0-9_]*(:-[^}]*)?\}"}


def json_schema() -> dict[str, Any]:
    root = _struct(Config)
    for spelled, alias in ALIASES.items():
        section, _, name = spelled.rpartition(".")
        target = root
        if section:
            target = root["properties"].setdefault(section, {"type": "object", "properties": {}} | _CLOSED)
        if alias.short:  # a section, or the value of one of its keys
            whole = root["properties"][spelled]
            whole |= {"type": ["object", "string"], "if": {"type": "string"}, "then": _bare_of(alias.key)}
            whole["description"] = f"A section; a text sets {alias.key}."
            continue
        said = _bare(shapes.BoolType(), "") if alias.switch else _shape(options()[alias.key].type)
        if spelled in BARE_NUMBERS:
            said["anyOf"].append({"type": "number", "minimum": 0})
        said["description"] = f"Another spelling of {alias.key}{meaning(alias)}."
        target["properties"][name] = said
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Ralph settings",
        "description": "For ~/.ralph/config.yaml, .ralph/config.yaml and .ralph/configs/*.",
        **root,
        "$defs": {"reference": {"description": "A value from the environment."} | _REFERENCE},
    }


_CLOSED = {"additionalProperties": False}


def _struct(cls: type) -> dict[str, Any]:
    info = shapes.type_info(cls)
    assert isinstance(info, shapes.StructType)
    properties: dict[str, Any] = {}
    for field in info.fields:
        said = _shape(field.type)
        if not field.required and not isinstance(field.type, shapes.StructType):
            said["default"] = default_of(field)
        properties[field.name] = said
    required = [field.name for field in info.fields if field.required]
    schema = {"type": "object", "properties": properties, **_CLOSED}
    return schema | {"required": required} if required else schema


def _shape(shape: shapes.Type) -> dict[str, Any]:
    """The forms a value may have in a file, which are more than its type after reading."""
    form = ""
    if isinstance(shape, shapes.Metadata):
        form = (shape.extra or {}).get("form", "")
        said = _bare(shape.type, form)
        doc = (shape.extra_json_schema or {}).get("description", "")
        return _described(said, doc) if doc else said
    return _bare(shape, form)


def _bare_of(key: str) -> dict[str, Any]:
    return {name: value for name, value in _shape(options()[key].type).items() if name != "description"}


def _bare(shape: shapes.Type, form: str) -> dict[str, Any]:
    match shape:
        case shapes.UnionType():
            (inner,) = (t for t in shape.types if not isinstance(t, shapes.NoneType))
            return {"anyOf": [_shape(inner), {"type": "null"}]}
        case shapes.BoolType():
            return _or_reference({"type": "boolean"})
        case shapes.IntType():
            bounds = {"minimum": shape.ge, "maximum": shape.le}
            return _or_reference({"type": "integer"} | {k: v for k, v in bounds.items() if v is not None})
        case shapes.FloatType():
            if form == "duration":
                return _or_reference({"const": 0}, _DURATION)
            most = {"maximum": shape.le} if shape.le is not None else {}
            return _or_reference({"type": "number", "minimum": shape.ge or 0, **most})
        case shapes.LiteralType():
            return _or_reference({"enum": list(shape.values)})
        case shapes.StrType():
            return {"type": "string"} | ({"minLength": shape.min_length} if shape.min_length else {})
        case shapes.VarTupleType():
            kind = ["array", "string"] if form else "array"
            return {"type": kind, "items": _shape(shape.item_type)}
        case shapes.DictType():
            return {"type": "object", "additionalProperties": _shape(shape.value_type)}
        case shapes.StructType() if shape.cls is Check:  # a plain command is a check, too
            return {"anyOf": [{"type": "string", "minLength": 1}, _struct(shape.cls)]}
        case shapes.StructType():
            return _struct(shape.cls)
        case shapes.AnyType():
            return {}
    raise AssertionError(f"there is no JSON Schema for {shape}")


def _or_reference(*schemas: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [*schemas, {"$ref": "#/$defs/reference"}]}


def _described(schema: dict[str, Any], doc: str) -> dict[str, Any]:
    return {"description": doc, **schema}
