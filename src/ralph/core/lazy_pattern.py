"""Regular expressions that are compiled when they are first used.

Compiling some hundred patterns takes longer than importing everything else, and a command uses a few of them.
"""

from __future__ import annotations

import re
from typing import Any, AnyStr, cast


class _LazyPattern:
    """Stands for a compiled pattern: its methods and attributes are those of `re.Pattern`."""

    def __init__(self, text: Any, flags: int) -> None:
        self._arguments = text, flags

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)  # copying and pickling look for these
        if "_compiled" not in self.__dict__:
            self._compiled = re.compile(*self._arguments)
        value = self.__dict__[name] = getattr(self._compiled, name)  # next time it is found without this method
        return value

    def __reduce__(self) -> tuple[Any, ...]:
        return lazy_pattern, self._arguments

    def __repr__(self) -> str:
        return f"lazy_pattern{self._arguments!r}"


def lazy_pattern(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """`re.compile`, put off. Call the methods of the result; the functions of `re` do not take it."""
    return cast("re.Pattern[AnyStr]", _LazyPattern(text, flags))
