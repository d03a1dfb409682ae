"""`${NAME}` and `${NAME:-default}` in the values of config files. `$${` stands for a literal `${`."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ralph.core.lazy_pattern import lazy_pattern

_REFERENCE = lazy_pattern(r"\$\$\{|\$\{([^}]*)(\}?)")
_NAME = lazy_pattern(r"([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?", re.DOTALL)


class Unresolved(Exception):
    """What is wrong with a reference, and what to do."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


def has_references(text: str) -> bool:
    return "${" in text


def substitute(text: str, env: Mapping[str, str]) -> str:
    def value(match: re.Match[str]) -> str:
        if match[0] == "$${":
            return "${"
        return _value(match[0], match[1], closed=bool(match[2]), env=env)

    return _REFERENCE.sub(value, text)


def _value(whole: str, inner: str, *, closed: bool, env: Mapping[str, str]) -> str:
    named = _NAME.fullmatch(inner)
    if not closed or not named:
        raise Unresolved(
            f"{whole[:40]!r} is not a valid variable reference",
            "use ${NAME} or ${NAME:-default}; $${ passes ${ on to the shell",
        )
    name, default = named.groups()
    if default is not None:
        return env.get(name) or default
    if name not in env:
        raise Unresolved(
            f"the environment variable {name} is not set",
            f"set it, or write ${{{name}:-default}}, or $${{{name}}} to leave it to the shell",
        )
    return env[name]
