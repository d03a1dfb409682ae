"""Convert one node of a config file to a typed value, by the type of its option in the schema."""

from __future__ import annotations

import shlex
from collections.abc import Mapping as Env
from typing import Any, Final, NoReturn

from msgspec import inspect as shapes

from ralph.config import durations
from ralph.config.document import Mapping, Node, Scalar, Sequence, describe
from ralph.config.keys import ALIASES, default_of, nearest_hint, options
from ralph.config.schema import Check
from ralph.config.substitution import Unresolved, has_references, substitute
from ralph.core.lazy_pattern import lazy_pattern
from ralph.core.problems import Place, Problem

LARGEST = 1_000_000_000
_TRUTH = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
_INTEGER = lazy_pattern(r"[-+]?(?:0|[1-9][0-9]{0,17})")
_NUMBER = lazy_pattern(r"(?:0|[1-9][0-9]{0,8})(?:\.[0-9]{1,9})?")
_BETWEEN_COMMAS = lazy_pattern(r"(?:[^,(]|\([^)]*\)?)+")
_FORMS = {"words": "a list of strings, or one string with commas", "argv": "a command line, or a list of strings"}


class Nothing:
    """No value: nothing was written there, or it was wrong and has been reported."""


NOTHING: Final = Nothing()


class Wrong(Exception):
    """A problem with one value; collected where reading can continue with the next."""

    def __init__(self, code: str, message: str, node: Node, key: str, hint: str = "") -> None:
        super().__init__(message)
        self.problem = Problem(code, message, Place("", node.line or None, node.column or None, key), hint)


class Reader:
    """Reads the values of one source and collects every problem in it.

    Without an `env` nothing is substituted. With `reveal` false, strings keep their `${…}`. `bare` is the unit of a
    duration without one, if the source may omit it.
    """

    def __init__(
        self, file: str, env: Env[str, str] | None = None, *, reveal: bool = True, bare: float | None = None
    ) -> None:
        self.file = file
        self.env = env
        self.reveal = reveal
        self.bare = bare
        self.problems: list[Problem] = []

    def option(self, node: Node, spelled: str) -> Any:
        """The value of an option, in any spelling; NOTHING if it is null or wrong."""
        alias = ALIASES.get(spelled)
        if alias is not None and alias.switch:
            value = self.attempt(node, shapes.BoolType(), spelled)
            return value if value is NOTHING else alias.switch[0 if value else 1]
        return self.attempt(node, options()[alias.key if alias else spelled].type, spelled)

    def attempt(self, node: Node, shape: shapes.Type, key: str) -> Any:
        try:
            return self._read(node, shape, key)
        except Wrong as wrong:
            self.report(wrong)
            return NOTHING

    def report(self, wrong: Wrong) -> None:
        place = wrong.problem.where
        place = Place(self.file, place.line, place.column, place.path)
        problem = wrong.problem
        self.problems.append(Problem(problem.code, problem.message, place, problem.hint))

    def unknown(self, name: Scalar, key: str, known: list[str] | None = None) -> None:
        if known is None and "." in name.text and name.text in options():
            hint = "nest the parts: " + ": ".join(name.text.split(".")) + ": …"
        else:
            section = key.removesuffix(name.text)
            hint = nearest_hint(name.text if known else key, known)
            if known is None and hint == f"did you mean {section.rstrip('.')}?":  # the suggestion is the section itself
                hint, known = "", [each.removeprefix(section) for each in options() if each.startswith(section)]
            hint = hint or (f"available: {', '.join(known)}" if known else "`ralph config show` lists the keys")
        self.report(Wrong("unknown-key", f"unknown key {name.text!r}", name, key, hint))

    def _read(self, node: Node, shape: shapes.Type, key: str) -> Any:
        form = ""
        if isinstance(shape, shapes.Metadata):
            form = (shape.extra or {}).get("form", "")
            shape = shape.type
        if isinstance(node, Scalar) and node.is_null and not isinstance(shape, shapes.AnyType):
            return NOTHING
        match shape:
            case shapes.UnionType():  # the schema has no other unions than `… | None`
                (inner,) = (t for t in shape.types if not isinstance(t, shapes.NoneType))
                return self._read(node, inner, key)
            case shapes.FloatType():
                number = self._duration(node, key) if form == "duration" else self._number(node, key, shape.le)
                if number < (shape.ge or 0) or number > (shape.le or number):
                    most = f" and at most {shape.le:g}" if shape.le is not None else ""
                    _expected(f"a number of at least {shape.ge or 0:g}{most}", node, key)
                return number
            case shapes.IntType():
                return self._integer(node, shape, key)
            case shapes.BoolType():
                return self._truth(node, key)
            case shapes.LiteralType():
                return self._choice(node, shape, key)
            case shapes.StrType():
                return self._text(node, key, shape.min_length or 0)
            case shapes.VarTupleType():
                return (
                    self._split(node, form, key, shape.item_type)
                    if form and isinstance(node, Scalar)
                    else self._list(node, shape, form, key)
                )
            case shapes.DictType():
                return self._pairs(node, shape, key)
            case shapes.StructType():
                return self._struct(node, shape, key)
            case shapes.AnyType():
                return self._anything(node, key)
        raise AssertionError(f"{key}: there is no rule to read {shape}")

    def _duration(self, node: Node, key: str) -> float:
        expected = "a number of minutes" if key in durations.BARE_NUMBERS else durations.EXPECTED
        scalar = self._scalar(node, expected, key)
        seconds = durations.parse_duration(scalar.text, durations.BARE_NUMBERS.get(key, self.bare))
        if seconds is None:
            _expected(expected, scalar, key, durations.unit_hint(scalar.text))
        return seconds

    def _number(self, node: Node, key: str, most: float | None = None) -> float:
        expected = "a number of at least 0" + (f" and at most {most:g}" if most is not None else "")
        scalar = self._scalar(node, expected, key)
        if not scalar.plain or not _NUMBER.fullmatch(scalar.text):
            _expected(expected, scalar, key, "remove the quotes" if _NUMBER.fullmatch(scalar.text) else "")
        return float(scalar.text)

    def _integer(self, node: Node, shape: shapes.IntType, key: str) -> int:
        expected = "a whole number" + (f" of at least {shape.ge}" if shape.ge is not None else "")
        scalar = self._scalar(node, expected, key)
        is_integer = _INTEGER.fullmatch(scalar.text)
        if not scalar.plain or not is_integer:
            _expected(expected, scalar, key, "remove the quotes" if is_integer else "")
        number = int(scalar.text)
        if number > LARGEST:
            _expected(f"{expected} and at most {LARGEST:,}", scalar, key)
        if shape.ge is not None and number < shape.ge:
            _expected(expected, scalar, key)
        if shape.le is not None and number > shape.le:
            _expected(f"{expected} and at most {shape.le}", scalar, key)
        return number

    def _truth(self, node: Node, key: str) -> bool:
        scalar = self._scalar(node, "true or false", key)
        if not scalar.plain or scalar.text.lower() not in _TRUTH:
            _expected("true or false", scalar, key)
        return _TRUTH[scalar.text.lower()]

    def _choice(self, node: Node, shape: shapes.LiteralType, key: str) -> str:
        values = [str(value) for value in shape.values]
        expected = "one of " + ", ".join(values)
        scalar = self._scalar(node, expected, key)
        if scalar.text not in values:
            _expected(expected, scalar, key, nearest_hint(scalar.text, values))
        return scalar.text

    def _scalar(self, node: Node, expected: str, key: str) -> Scalar:
        """A scalar that is not a string. After substitution the quotes around it do not count: JSON needs them."""
        if not isinstance(node, Scalar):
            _expected(expected, node, key)
        if self.env is None or not has_references(node.text):
            return node
        return Scalar(text=self._substituted(node, key), line=node.line, column=node.column)

    def _substituted(self, node: Scalar, key: str) -> str:
        try:
            return substitute(node.text, self.env or {})
        except Unresolved as error:
            raise Wrong("unresolved", error.message, node, key, error.hint) from None

    def _text(self, node: Node, key: str, shortest: int = 0) -> str:
        """Any scalar is taken as written: a command `true` or a model `4.5` needs no quotes."""
        if not isinstance(node, Scalar):
            _expected("text", node, key)
        text = node.text
        if self.reveal and self.env is not None and has_references(text):
            text = self._substituted(node, key)
        if len(text) < shortest:
            raise Wrong("wrong-type", "expected text, found nothing", node, key)
        return text

    def _list(self, node: Node, shape: shapes.VarTupleType, form: str, key: str) -> Any:
        if not isinstance(node, Sequence):
            _expected(_FORMS.get(form, "a list"), node, key)
        values = [self._part(item, shape.item_type, f"{key}[{at}]") for at, item in enumerate(node.items)]
        return NOTHING if NOTHING in values else tuple(values)

    def _split(self, node: Scalar, form: str, key: str, item: shapes.Type) -> tuple[str, ...]:
        text = self._text(node, key)
        if form == "words":
            words = tuple(word.strip() for word in _BETWEEN_COMMAS.findall(text) if word.strip())
            if isinstance(item, shapes.LiteralType):
                for word in words:
                    self._choice(Scalar(text=word, line=node.line, column=node.column), item, key)
            return words
        try:
            return tuple(shlex.split(text))
        except ValueError as error:
            raise Wrong("not-a-command", f"not a valid command line: {error}", node, key) from None

    def _pairs(self, node: Node, shape: shapes.DictType, key: str) -> Any:
        if not isinstance(node, Mapping):
            _expected("a mapping", node, key)
        values = {name.text: self._part(value, shape.value_type, f"{key}.{name.text}") for name, value in node.items}
        return NOTHING if NOTHING in values.values() else values

    def _part(self, node: Node, shape: shapes.Type, key: str) -> Any:
        """A value inside a list or a mapping, where null does not mean "not set"."""
        if isinstance(node, Scalar) and node.is_null and not isinstance(shape, shapes.AnyType):
            self.report(Wrong("wrong-type", "expected a value, found nothing", node, key))
            return NOTHING
        return self.attempt(node, shape, key)

    def _struct(self, node: Node, shape: shapes.StructType, key: str) -> Any:
        names = [field.name for field in shape.fields]
        if isinstance(node, Scalar) and shape.cls is Check:  # `checks: ["pytest -q"]`: named by its command
            command = self._text(node, key, shortest=1)
            return Check(name=" ".join(node.text.split()), command=command)
        if not isinstance(node, Mapping):
            words = "a command, or a mapping" if shape.cls is Check else "a mapping"
            _expected(f"{words} with {', '.join(names)}", node, key)
        before = len(self.problems)
        values: dict[str, Any] = {}
        for field in shape.fields:
            item = node.get(field.name)
            so_far = len(self.problems)
            value = self.attempt(item[1], field.type, f"{key}.{field.name}") if item else NOTHING
            if value is not NOTHING or not field.required:
                values[field.name] = default_of(field) if value is NOTHING else value
            elif len(self.problems) == so_far:
                self.report(Wrong("missing", f"{field.name} is missing", item[1] if item else node, key))
        for name, _ in node.items:
            if name.text not in names:
                self.unknown(name, f"{key}.{name.text}", names)
        return shape.cls(**values) if len(self.problems) == before else NOTHING

    def _anything(self, node: Node, key: str) -> Any:
        """The value as YAML defines it, for what the schema leaves open."""
        if isinstance(node, Mapping):
            return {name.text: self._anything(value, f"{key}.{name.text}") for name, value in node.items}
        if isinstance(node, Sequence):
            return [self._anything(item, f"{key}[{at}]") for at, item in enumerate(node.items)]
        assert isinstance(node, Scalar)
        return self._text(node, key) if has_references(node.text) else node.resolve()


def _expected(expected: str, node: Node, key: str, hint: str = "") -> NoReturn:
    raise Wrong("wrong-type", f"expected {expected}, found {describe(node)}", node, key, hint)
