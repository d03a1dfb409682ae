"""Tables of variants: name → "module" or "module:attribute", imported on demand."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from ralph.core.errors import UsageError


class Registry:
    """Built-in variants in a table; third-party ones are added through an entry point group."""

    def __init__(self, kind: str, table: Mapping[str, str], group: str = "") -> None:
        self.kind = kind
        self._table = dict(table)
        self.group = group

    def names(self) -> list[str]:
        return [*self._table, *(n for n in self._plugins() if n not in self._table)]

    def built_in(self) -> list[str]:
        return list(self._table)

    def get(self, name: str) -> Any:
        if target := self._table.get(name):
            return resolve(target)
        if target := self._plugins().get(name):
            return resolve(target)
        raise self._unknown(name)

    def trouble_with(self, name: str) -> UsageError | None:
        """Why `get` would fail, determined without importing anything."""
        return None if name in self._table or name in self._plugins() else self._unknown(name)

    def _unknown(self, name: str) -> UsageError:
        from difflib import get_close_matches

        close = get_close_matches(name, self.names(), 1)
        hint = f"did you mean {close[0]}?" if close else f"known: {', '.join(self.names())}"
        return UsageError(f"unknown {self.kind} {name!r}", hint=hint)

    def _plugins(self) -> dict[str, str]:
        if not self.group:
            return {}
        from importlib.metadata import entry_points  # 40 ms, so only when a name is not built in

        return {e.name: e.value for e in entry_points(group=self.group)}


def resolve(target: str) -> Any:
    module, _, attribute = target.partition(":")
    found = import_module(module)
    return getattr(found, attribute) if attribute else found
