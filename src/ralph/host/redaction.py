"""The one place that removes secrets from what Ralph writes and shows. `core.redaction` has the rules.

It is set up once per command, with the caller's environment and the settings; before that, from the environment alone.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import AnyStr, TypeVar

from ralph.core.environment import secret_values
from ralph.core.redaction import Lines, Redactor, Stream

T = TypeVar("T")
_current: list[tuple[Redactor, Lines]] = []


def configure(env: Mapping[str, str], patterns: Iterable[str] = (), addresses: Iterable[str] = ()) -> None:
    """`patterns` are the user's regular expressions, `addresses` settings that are secrets themselves."""
    values = {name: value for name, value in secret_values(env).items() if not _is_place(value, env)}
    named = {f"address {number}": value for number, value in enumerate(addresses, 1) if "$" not in value}
    redactor = Redactor(values | named, patterns)
    _current[:] = [(redactor, Lines(redactor))]


def redact(text: AnyStr) -> AnyStr:
    """Text or bytes without secrets; the same object if there are none."""
    redactor = _redactor()
    return redactor.data(text) if isinstance(text, bytes) else redactor.text(text)


def redact_line(text: str) -> str:
    """The next line that is shown, without secrets: one may go on from line to line."""
    return _configured()[1].text(text)


def redact_struct(value: T) -> T:
    """A struct without secrets in its text; the same object if there are none."""
    return _redactor().value(value)


def redacted_stream() -> Stream:
    return Stream(_redactor())


def redacted_lines() -> Lines:
    return Lines(_redactor())


def _redactor() -> Redactor:
    return _configured()[0]


def _configured() -> tuple[Redactor, Lines]:
    if not _current:
        configure(os.environ)
    return _current[0]


def _is_place(value: str, env: Mapping[str, str]) -> bool:
    """A record without the paths in it is useless."""
    return any(value in path for path in (os.getcwd(), env.get("HOME", ""))) or os.path.lexists(value)  # noqa: PTH109
