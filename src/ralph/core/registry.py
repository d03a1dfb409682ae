"""Tables of variants: name → "module" or "module:attribute", imported on demand."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ralph.core.errors import SetupError, UsageError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


class Registry:
    """Built-in variants in a table; third-party ones are added through an entry point group.

    `protocol` has the names that a third-party variant must define.
    """

    def __init__(self, kind: str, table: Mapping[str, str], group: str = "", protocol: type = object) -> None:
        self.kind = kind
        self._table = dict(table)
        self.group = group
        self._required = [name for name in vars(protocol) if not name.startswith("_")]

    def names(self) -> list[str]:
        return [*self._table, *(n for n in self._plugins() if n not in self._table)]

    def built_in(self) -> list[str]:
        return list(self._table)

    def third_party(self) -> dict[str, SetupError | None]:
        """The third-party variants, each with the reason if it cannot be loaded."""
        variants: dict[str, SetupError | None] = {}
        for name, point in self._plugins().items():
            if name in self._table:
                continue
            variants[name] = None
            try:
                self._load(point)
            except SetupError as error:
                variants[name] = error
        return variants

    def get(self, name: str) -> Any:
        """Raises UsageError if the name is unknown, SetupError if a third-party variant cannot be loaded."""
        if target := self._table.get(name):
            return resolve(target)
        if point := self._plugins().get(name):
            return self._load(point)
        raise self._unknown(name)

    def _load(self, point: EntryPoint) -> Any:
        try:
            variant = resolve(point.value)
            if missing := [name for name in self._required if not hasattr(variant, name)]:
                raise AttributeError(f"it does not define {', '.join(missing)}")
        except (Exception, SystemExit) as error:
            raise self.failure(point.name, "cannot be loaded", error) from error
        return variant

    def failure(self, name: str, what: str, error: BaseException) -> SetupError:
        """The error that names a third-party variant and its package."""
        package, fix = "", "fix it"
        if (point := self._plugins().get(name)) and point.dist:
            package = f" (package {point.dist.name} {point.dist.version})"
            fix = f"fix it, or `pip uninstall {point.dist.name}`"
        is_plain = isinstance(error, ImportError | SyntaxError | AttributeError)
        reason = str(error) if is_plain else f"{type(error).__name__}: {error}"
        return SetupError(f"the {self.kind} `{name}`{package} {what}: {reason}", hint=fix)

    def trouble_with(self, name: str) -> UsageError | None:
        """Why `get` would fail, determined without importing anything."""
        return None if name in self._table or name in self._plugins() else self._unknown(name)

    def _unknown(self, name: str) -> UsageError:
        from difflib import get_close_matches

        close = get_close_matches(name, self.names(), 1)
        hint = f"did you mean {close[0]}?" if close else f"known: {', '.join(self.names())}"
        return UsageError(f"unknown {self.kind} {name!r}", hint=hint)

    def _plugins(self) -> dict[str, EntryPoint]:
        if not self.group:
            return {}
        from importlib.metadata import entry_points  # 40 ms, so only when a name is not built in

        return {e.name: e for e in entry_points(group=self.group)}


def resolve(target: str) -> Any:
    module, _, attribute = target.partition(":")
    found = import_module(module)
    return getattr(found, attribute) if attribute else found
