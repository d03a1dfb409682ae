"""List prices: found by name, alias and edition, never by mere likeness; and their own are put over them."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralph.config.prices import Price, PriceTable, list_prices
from ralph.core.agent import Tokens

TABLE = PriceTable(
    models={
        "claude-opus-5": Price(5, 25, 0.5, 6.25),
        "claude-opus-5-5": Price(4, 20, 0.2, 5),
        "gpt-5": Price(1.25, 10, 0.125),
        "local-*": Price(0, 0),
    },
    aliases={"opus": "claude-opus-5-5"},
)


@pytest.mark.parametrize(
    ("model", "found"),
    [
        ("claude-opus-5", 5),
        ("claude-opus-5-20260724", 5),
        ("claude-opus-5@20260724", 5),
        ("us.anthropic.claude-opus-5-20260724-v1:0", 5),
        ("anthropic/claude-opus-5", 5),
        ("Claude-Opus-5-5[1m]", 4),
        ("claude-opus-5-5-latest", 4),
        ("opus", 4),
        ("openai/gpt-5-2026-04-01", 1.25),
        ("local-llama:70b", 0),
    ],
)
def test_a_model_is_found_by_each_of_its_names(model: str, found: float) -> None:
    price = TABLE.price(model)
    assert price is not None
    assert price.input == found


@pytest.mark.parametrize(
    "model", ["", "gpt-5-pro", "gpt-5.6", "claude-opus", "claude-opus-6", "opus-x", "scripted", "*"]
)
def test_a_name_that_is_merely_similar_is_not_found(model: str) -> None:
    assert TABLE.price(model) is None
    assert TABLE.cost(model, Tokens(1, 1)) is None


def test_each_class_of_tokens_has_its_price() -> None:
    million = 1_000_000
    assert TABLE.cost("claude-opus-5", Tokens(million, 0, 0, 0)) == 5
    assert TABLE.cost("claude-opus-5", Tokens(0, million, 0, 0)) == 25
    assert TABLE.cost("claude-opus-5", Tokens(0, 0, million, 0)) == 0.5
    assert TABLE.cost("claude-opus-5", Tokens(0, 0, 0, million)) == 6.25
    assert TABLE.cost("gpt-5", Tokens(0, 0, million, million)) == 0.125 + 1.25  # no price for writing: as input


@given(st.builds(Tokens, *[st.integers(-(10**9), 10**12)] * 4))
def test_no_tokens_cost_less_than_nothing(tokens: Tokens) -> None:
    for price in list_prices().models.values():
        assert price.of(tokens) >= 0


def test_ones_own_prices_go_over_the_list() -> None:
    own = PriceTable(models={"gpt-5": Price(1, 2)}, aliases={"mine": "claude-opus-5"})
    both = own.over(TABLE)
    assert both.cost("gpt-5", Tokens(1_000_000)) == 1
    assert both.cost("mine", Tokens(1_000_000)) == 5
    assert both.cost("opus", Tokens(1_000_000)) == 4


def test_the_list_that_ships_is_dated_whole_and_in_proportion() -> None:
    table = list_prices()
    assert re.fullmatch(r"20\d\d-\d\d-\d\d", table.date)
    assert table.sources
    for alias in table.aliases:
        assert table.price(alias) is not None, alias
    for name, price in table.models.items():
        assert 0 < price.input < price.output, name
        assert price.cache_read is None or price.cache_read < price.input, name
        assert price.cache_write is None or price.input < price.cache_write < price.output, name
