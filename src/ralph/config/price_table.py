"""The list prices that Ralph contains."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import msgspec

from ralph.core.prices import PriceTable

_TABLE = Path(__file__).with_name("prices.json")


@cache
def list_prices() -> PriceTable:
    return msgspec.json.decode(_TABLE.read_bytes(), type=PriceTable)
