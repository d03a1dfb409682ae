"""List prices of models, for agents that report tokens but no cost. The table is a dated data file."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import msgspec
from msgspec import Struct

from ralph.core.agent import Tokens
from ralph.core.lazy_pattern import lazy_pattern

_VENDOR = lazy_pattern(
    r"^(?:[a-z]{2,6}\.)?(?:anthropic|openai|azure|bedrock|vertex_ai|openrouter|google|gemini)[./]", re.IGNORECASE
)
_VERSION = lazy_pattern(
    r"(?:-\d{8}|-\d{4}-\d{2}-\d{2}|@\d{8}|@latest|-latest|-v\d+(?::\d+)?|:\d+|\[\d+[km]\])$", re.IGNORECASE
)
"""The suffix of a name that marks an edition of the same model."""


class Price(Struct, frozen=True, forbid_unknown_fields=True):
    """Dollars per million tokens of each class."""

    input: float
    output: float
    cache_read: float | None = None
    """None: the same as input."""
    cache_write: float | None = None

    def of(self, tokens: Tokens) -> float:
        read = self.input if self.cache_read is None else self.cache_read
        write = self.input if self.cache_write is None else self.cache_write
        parts = (
            max(tokens.input, 0) * self.input,
            max(tokens.output, 0) * self.output,
            max(tokens.cache_read, 0) * read,
            max(tokens.cache_write, 0) * write,
        )
        return sum(parts) / 1_000_000


class PriceTable(Struct, frozen=True, forbid_unknown_fields=True):
    date: str = ""
    """When the prices were looked up."""
    note: str = ""
    sources: tuple[str, ...] = ()
    models: dict[str, Price] = {}
    """By name; a name that ends with `*` matches every name with that prefix."""
    aliases: dict[str, str] = {}

    @property
    def origin(self) -> str:
        """Where the prices come from, and when they were looked up."""
        hosts = dict.fromkeys(source.partition("://")[2].partition("/")[0] or source for source in self.sources)
        when = f"list prices of {self.date}" if self.date else "list prices without a date"
        return f"{when} ({', '.join(hosts)})" if hosts else when

    def over(self, other: PriceTable) -> PriceTable:
        """This table, with the other one for models not in it."""
        models, aliases = other.models | self.models, other.aliases | self.aliases
        sources = (*self.sources, *other.sources)
        return msgspec.structs.replace(
            self, date=self.date or other.date, models=models, aliases=aliases, sources=sources
        )

    def price(self, model: str) -> Price | None:
        """None: the price is unknown. A similar name is not enough."""
        name = model.strip().lower()
        known = {key.lower(): price for key, price in self.models.items()}
        aliases = {key.lower(): value.lower() for key, value in self.aliases.items()}
        for candidate in _spellings(name):
            if found := known.get(aliases.get(candidate, candidate)):
                return found
        begins = [key for key in known if key.endswith("*") and any(s.startswith(key[:-1]) for s in _spellings(name))]
        return known[max(begins, key=len)] if begins and name else None

    def cost(self, model: str, tokens: Tokens) -> float | None:
        price = self.price(model)
        return None if price is None else price.of(tokens)


def _spellings(name: str) -> list[str]:
    """The name, and shorter names of the same model: without the vendor, without the edition."""
    spellings = [name]
    if (bare := _VENDOR.sub("", name)) != name:
        spellings.append(bare)
    for _ in range(3):
        shorter = _VERSION.sub("", spellings[-1])
        if shorter == spellings[-1]:
            break
        spellings.append(shorter)
    return spellings


_TABLE = Path(__file__).with_name("prices.json")


@cache
def list_prices() -> PriceTable:
    return msgspec.json.decode(_TABLE.read_bytes(), type=PriceTable)
