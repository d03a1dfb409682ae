"""A story excuses a changed expectation only where it names the file or the test."""

from __future__ import annotations

import pytest

from ralph.proof.story_words import names_file, names_test


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("Update tests/test_cart.py for the new total", "tests/test_cart.py"),
        ("The golden file report.json gets a column", "tests/golden/report.json"),
        ("Adapt `invoice_layout` to the new margins", "tests/snapshots/invoice_layout.txt"),
        ("the csv export tests expect a header now", "tests/test_csv_export.py"),
        ("Change the tests for the cart", "tests/test_cart.py"),
        ("Add a target to the Makefile", "Makefile"),
        ("Set strict in pyproject.toml", "pyproject.toml"),
    ],
)
def test_a_story_names_a_file(text: str, path: str) -> None:
    assert names_file(text, path)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("Write tests for the total", "tests/test_cart.py"),
        ("The total is 12 with 3 items", "tests/data/12.json"),
        ("All utils are tested; update the config and the index", "tests/utils.py"),
        ("All utils are tested; update the config and the index", "config.json"),
        ("Put the item into the cart", "tests/test_cart.py"),
        ("Edit mytests/test_cart.py.orig", "test_cart.py"),
        ("A data file", "tests/data.py"),
        ("Fix rounding in src/money.rs", "src/money.rs"),
    ],
)
def test_a_story_does_not_name_a_file(text: str, path: str) -> None:
    assert not names_file(text, path)


@pytest.mark.parametrize(
    ("text", "test"),
    [
        ("`test_total_is_rounded` expects two digits", "tests/test_cart.py::TestCart::test_total_is_rounded[1-2]"),
        ("TestRoundsTotals fails", "shop/TestRoundsTotals"),
        ("the cart rejects negative amounts", "cart > rejects negative amounts"),
    ],
)
def test_a_story_names_a_test(text: str, test: str) -> None:
    assert names_test(text, test)


@pytest.mark.parametrize(
    ("text", "test"),
    [
        ("The sum of 2 and 3 is 5", "tests/test_sum.py::test_2_3"),
        ("Add an item to the cart", "tests/test_cart.py::test_add"),
        ("the rounded value of the total", "tests/test_cart.py::test_total_is_rounded"),
        ("Totals are tested", "test_totals_of_orders"),
    ],
)
def test_a_story_does_not_name_a_test(text: str, test: str) -> None:
    assert not names_test(text, test)
