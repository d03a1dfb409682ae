"""Questions with a default: Enter accepts it, and without a terminal it is used without asking."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

from msgspec import Struct

from ralph.cli.output import ask_line, is_interactive, note


class Questions(Struct, frozen=True):
    asks: bool

    @classmethod
    def at_terminal(cls, *, wanted: bool = True) -> Questions:
        """With `wanted` false nothing is asked, as without a terminal."""
        return cls(wanted and is_interactive() and sys.stdout.isatty())

    def yes(self, text: str, flag: bool | None, *, default: bool = True, unasked: bool | None = None) -> bool:
        """`flag`: the answer from the command line. `unasked`: the answer without a terminal."""
        if flag is not None:
            return flag
        if not self.asks:
            return default if unasked is None else unasked
        while True:
            answer = ask_line(f"{text} [{'Y/n' if default else 'y/N'}] ").lower()
            if not answer:
                return default
            if answer in ("y", "yes", "n", "no"):
                return answer.startswith("y")
            note("answer y or n")

    def choice(self, text: str, options: Mapping[str, str], flag: str | None, default: str) -> str:
        """One of the names in `options`, or a unique prefix of one. Each has an explanation."""
        if flag is not None or not self.asks:
            return flag if flag is not None else default
        note(text)
        width = max(map(len, options))
        for name, meaning in options.items():
            note(f"  {name:<{width}}  {meaning}")
        while True:
            answer = ask_line(f"{'/'.join(options)} [{default}] ").lower()
            names = [name for name in options if name.startswith(answer)]
            if not answer or answer == default:
                return default
            if answer in options or len(names) == 1:
                return answer if answer in options else names[0]
            note(f"answer one of: {', '.join(options)}")

    def line(self, text: str, flag: str | None, default: str = "") -> str:
        if flag is not None or not self.asks:
            return flag if flag is not None else default
        return ask_line(f"{text} ") or default

    def lines(self, text: str, more: str, flag: Sequence[str] | None) -> tuple[str, ...]:
        """One answer per line, until an empty one. `more` asks for each after the first."""
        if flag is not None or not self.asks:
            return tuple(flag or ())
        answers: list[str] = []
        while answer := ask_line(f"{text if not answers else more} "):
            answers.append(answer)
        return tuple(answers)
