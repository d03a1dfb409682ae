"""Moved, renamed and added tests are fine; a changed expectation is not."""

from __future__ import annotations

import pytest

from ralph.core.proof import Tests
from ralph.proof.moved import missing_tests, only_moved
from ralph.proof.values import FileChange

CART = """import pytest
from cart import total

PRICES = [1, 2]


@pytest.fixture
def prices():
    return PRICES


def test_total(prices):
    '''Adds up.'''
    assert total(prices) == 3


class TestEmpty:
    def test_nothing(self):
        assert total([]) == 0
"""


def change(path: str, old: str | None, new: str | None) -> FileChange:
    return FileChange(path, None if old is None else old.encode(), None if new is None else new.encode())


def edited(old: str, new: str) -> bool:
    assert old in CART
    return only_moved([change("tests/test_cart.py", CART, CART.replace(old, new))])


def test_formatting_docstrings_and_added_tests_are_no_other_expectation() -> None:
    assert edited("    '''Adds up.'''\n", "    # adds\n")
    assert edited("[1, 2]", "[\n    1,\n    2,\n]")
    assert edited("class TestEmpty", "def test_more():\n    assert total([5]) == 5\n\n\nclass TestEmpty")
    assert edited("def test_total(", "def test_total_adds_up(")
    assert edited("import pytest\n", "import json\nimport pytest\n")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("== 3", "== 4"),
        ("== 3", ">= 3"),
        ("assert total(prices) == 3", "assert total(prices)"),
        ("[1, 2]", "[2, 2]"),
        ("return PRICES", "return [1, 2]"),
        ("def test_total", "@pytest.mark.skip\ndef test_total"),
        ("def test_total", "@pytest.mark.skipif(True, reason='')\ndef test_total"),
        ("def test_total", "def no_test_total"),
        ("PRICES =", "pytestmark = pytest.mark.skip\nPRICES ="),
        ("from cart import total", "from fake import total"),
        ("from cart import total", "from cart import total\nfrom fake import total"),
        ("from cart import total", "from cart import total\nfrom fake import *"),
        ("class TestEmpty:", "class TestEmpty:\n    __test__ = False\n"),
        ("import pytest", "import pytest\nimport patches"),
        ("PRICES =", "def total(prices): return 3\nPRICES ="),
        ("class TestEmpty", "def test_total():\n    pass\n\n\nclass TestEmpty"),
        ("@pytest.fixture\n", "@pytest.fixture(autouse=True)\ndef quiet(monkeypatch): pass\n\n@pytest.fixture\n"),
        ("def test_nothing(self):", "def test_nothing(self):\n        return"),
        ("class TestEmpty", "if True:\n    total = lambda x: 3\n\nclass TestEmpty"),
    ],
)
def test_a_changed_expectation_is_not_a_move(old: str, new: str) -> None:
    assert not edited(old, new)


def test_a_removed_test_is_not_a_move() -> None:
    assert not only_moved([change("tests/test_cart.py", CART, None)])
    assert not only_moved([change("tests/test_cart.py", CART, CART.split("class TestEmpty")[0])])


def test_tests_move_with_their_module() -> None:
    source = "def total(prices):\n    return sum(prices)\n"
    basket = CART.replace("from cart", "from basket")
    module = [change("src/cart.py", source, None), change("src/basket.py", None, source)]
    tests = [change("tests/test_cart.py", CART, None), change("tests/test_basket.py", None, basket)]
    assert only_moved([*module, *tests])
    assert not only_moved([*module, tests[0], change("tests/test_basket.py", None, basket.replace("3", "4"))])
    assert not only_moved(tests), "the module still exists"


def test_a_renamed_function_is_renamed_everywhere() -> None:
    old, new = "def total(prices):\n    return sum(prices)\n", "def amount(prices):\n    return sum(prices)\n"
    source = change("src/cart.py", old, new)
    everywhere = CART.replace("total(", "amount(").replace("import total", "import amount")
    assert only_moved([source, change("tests/test_cart.py", CART, everywhere)])
    half = CART.replace("total(prices)", "amount(prices)").replace("import total", "import total, amount")
    assert not only_moved([source, change("tests/test_cart.py", CART, half)])
    assert not only_moved([change("tests/test_cart.py", CART, CART.replace("total", "amount"))])


def test_a_test_moves_to_another_file_with_what_it_uses() -> None:
    empty = CART.split("class TestEmpty")[1]
    rest = CART.split("class TestEmpty")[0]
    other = "from cart import total\n\n\ndef test_one():\n    assert total([1]) == 1\n"
    files = [
        change("tests/test_cart.py", CART, rest),
        change("tests/test_one.py", other, other + "\n\nclass TestEmpty" + empty),
    ]
    assert only_moved(files)
    fake = ("from fake import total\n\n\nclass TestEmpty" + empty).replace("fake", "fake")
    assert not only_moved([files[0], change("tests/test_two.py", None, fake)])


def test_data_and_configuration() -> None:
    assert only_moved([change("tests/data/a.json", "1", None), change("tests/data/b/a.json", None, "1")])
    assert only_moved([change("tests/data/a.json", None, "1")])
    assert only_moved([change("package.json", '{"scripts": {}}', '{"scripts": {}, "version": "2"}')])
    assert not only_moved([change("tests/data/a.json", "1", "2")])
    assert not only_moved([change("tests/data/a.json", "1", None)])
    assert not only_moved([change("pytest.ini", None, "[pytest]\n")])
    assert not only_moved([change("Makefile", "a", "b")])


def test_helpers_are_compared_too() -> None:
    helper = "def check(value):\n    assert value == 3\n"
    assert not only_moved([change("tests/conftest.py", helper, helper.replace("3", "4"))])
    assert not only_moved([change("tests/conftest.py", helper, helper + "def pytest_collection(): pass\n")])
    assert only_moved([change("tests/conftest.py", helper, helper + "def other(): pass\n")])
    outside = change("checking.py", helper, helper.replace("3", "4"))
    assert not only_moved([outside], decided=[outside])


JS = """import { test, describe } from 'node:test';
import assert from 'node:assert';
import { total } from '../src/cart.js';

const prices = [1, 2];

describe('cart', () => {
  test('adds up', () => {
    assert.equal(total(prices), 3);
  });
  test('is empty', () => {
    assert.equal(total([]), 0);
  });
});
"""


@pytest.mark.parametrize(
    ("old", "new", "verdict"),
    [
        ("'adds up'", '"sums up"', True),
        (
            "    assert.equal(total(prices), 3);",
            "    // sum\n    assert.equal(\n      total(prices),\n      3,\n    )",
            True,
        ),
        ("  test('is empty'", "  test('new', () => { assert.equal(total([1]), 1); });\n  test('is empty'", True),
        ("3);", "4);", False),
        ("test('adds up'", "test.skip('adds up'", False),
        ("describe('cart'", "describe.skip('cart'", False),
        ("[1, 2]", "[1, 1]", False),
        ("'../src/cart.js'", "'./fake.js'", False),
        ("const prices", "import './patches.js';\nconst prices", False),
        ("const prices", "mock('../src/cart.js');\nconst prices", False),
        ("  test('adds", "  beforeEach(() => process.exit(0));\n  test('adds", False),
        ("    assert.equal(total([]), 0);", "", False),
    ],
)
def test_javascript(old: str, new: str, verdict: bool) -> None:
    assert old in JS
    assert only_moved([change("test/cart.test.js", JS, JS.replace(old, new))]) is verdict


def test_javascript_moves_with_its_module() -> None:
    source = "export function total(prices) {\n  return 3;\n}\n"
    moved = [change("src/cart.js", source, None), change("src/basket.js", None, source)]
    renamed = JS.replace("src/cart.js", "src/basket.js")
    assert only_moved([*moved, change("test/cart.test.js", JS, None), change("test/basket.test.js", None, renamed)])
    assert not only_moved([change("test/cart.test.js", JS, renamed)])


GO = """package cart

import "testing"

func TestTotal(t *testing.T) {
\tif Total() != 3 {
\t\tt.Fatal("no")
\t}
}
"""
RUST = "use shop::total;\n\n#[test]\nfn adds() {\n    assert_eq!(total(), 3);\n}\n"


@pytest.mark.parametrize(
    ("path", "text", "old", "new", "verdict"),
    [
        ("cart_test.go", GO, "TestTotal", "TestSum", True),
        ("cart_test.go", GO, "\tif", "\t// why\n\tif", True),
        ("cart_test.go", GO, "3", "4", False),
        ("cart_test.go", GO, '"testing"', '(\n\t"testing"\n\t_ "shop/fake"\n)', False),
        ("cart_test.go", GO, "\tif", "\tt.Skip()\n\tif", False),
        ("tests/cart.rs", RUST, "fn adds", "fn sums", True),
        ("tests/cart.rs", RUST, "3", "4", False),
        ("tests/cart.rs", RUST, "#[test]", "#[test]\n#[ignore]", False),
        ("tests/cart.rs", RUST, "#[test]\n", "", False),
        ("src/lib.rs", f"#[cfg(test)]\nmod tests {{\n{RUST}}}\n", "3", "4", False),
        ("src/lib.rs", f"#[cfg(test)]\nmod tests {{\n{RUST}}}\n", "fn adds", "fn sums", True),
    ],
)
def test_go_and_rust(path: str, text: str, old: str, new: str, verdict: bool) -> None:
    assert old in text
    assert only_moved([change(path, text, text.replace(old, new, 1))]) is verdict


def ran(*names: str, skipped: tuple[str, ...] = ()) -> Tests:
    return Tests(runner="pytest", names={**dict.fromkeys(names, "passed"), **dict.fromkeys(skipped, "skipped")})


def test_missing_tests_are_those_that_no_longer_run() -> None:
    before = ran("tests/a.py::test_x", "tests/a.py::test_y", skipped=("tests/a.py::test_z",))
    assert missing_tests(before, before, ()) == ()
    assert missing_tests(before, ran("tests/a.py::test_x"), ()) == ("tests/a.py::test_y",)
    assert missing_tests(before, ran("tests/a.py::test_x", skipped=("tests/a.py::test_y",)), ()) == (
        "tests/a.py::test_y",
    )
    assert missing_tests(before, ran("tests/b.py::test_x", "tests/b.py::test_y"), ()) == (), "moved"


def test_parameters_may_be_renamed_but_not_lost() -> None:
    before = ran("a.py::test_x[1]", "a.py::test_x[2]")
    assert missing_tests(before, ran("a.py::test_x[one]", "a.py::test_x[two]"), ()) == ()
    assert missing_tests(before, ran("a.py::test_x[one]"), ()) == ("a.py::test_x[2]",)


def test_a_renamed_test_is_not_missing_and_another_of_the_same_number_is() -> None:
    before, after = ran("tests/test_cart.py::test_total"), ran("tests/test_cart.py::test_sum")
    renamed = change("tests/test_cart.py", CART, CART.replace("test_total", "test_sum"))
    assert missing_tests(before, after, [renamed]) == ()
    assert missing_tests(before, after, ()) == ("tests/test_cart.py::test_total",)
    emptied = change("tests/test_cart.py", CART, CART.replace("test_total", "test_sum").replace("== 3", "== 4"))
    assert missing_tests(before, after, [emptied]) == ("tests/test_cart.py::test_total",)
