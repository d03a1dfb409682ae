"""The table on files of published packages, and on files that only their users give away."""

from __future__ import annotations

from pathlib import Path

import pytest

from ralph.proof.files import Role, deciding, role_of
from ralph.proof.values import FileChange

LISTING = [
    (line[0] == "+", line[2:])
    for line in (Path(__file__).parent / "file_listings.txt").read_text().splitlines()
    if line[:2] in ("+ ", "- ")
]


@pytest.mark.parametrize(("decides", "path"), LISTING)
def test_a_file_of_a_package(decides: bool, path: str) -> None:
    assert (role_of(path) not in (Role.SOURCE, Role.DOCS, Role.DEPENDENCIES)) is decides


@pytest.mark.parametrize(
    ("path", "importer", "text"),
    [
        ("django/test/client.py", "django/core/management/commands/test.py", "from django.test.client import Client"),
        ("src/jinja2/tests.py", "src/jinja2/defaults.py", "from .tests import TESTS as DEFAULT_TESTS"),
    ],
)
def test_a_product_module_named_like_a_test_is_product(path: str, importer: str, text: str) -> None:
    change = FileChange(path, b"def test_odd(value): ...", b"")
    assert deciding([change], ["pytest"], {}, {importer: text.encode()}) == ()
    added = FileChange(importer, b"", text.encode())
    assert change in deciding([change, added], ["pytest"], {}, {importer: text.encode()})


def test_a_product_module_with_asserts_that_only_tests_import_is_product() -> None:
    change = FileChange("shop/views.py", b"def view(x):\n    assert x\n", b"")
    tests = {"tests/test_views.py": b"from shop.views import view"}
    assert deciding([change], ["pytest"], tests, {"shop/__init__.py": b"", "shop/cart.py": b"TOTAL = 0"}) == ()
    assert deciding([change], ["pytest"], tests, {"shop/__init__.py": b""}) == (change,), "nothing else is there"


def test_a_folder_of_data_that_tests_walk_through_decides_and_a_package_does_not() -> None:
    tests = {"tests/test_suite.py": b'for path in (ROOT / "suite").rglob("*.json"): (ROOT / "shop").rglob("*.py")'}
    data = FileChange("suite/remotes/a.json", b"1", b"2")
    marker = FileChange("shop/py.typed", b"", b"#")
    assert deciding([data, marker], ["pytest"], tests, {"shop/cart.py": b""}) == (data,)


def test_documents_decide_where_they_are_doctests() -> None:
    page = FileChange("docs/usage.rst", b">>> 1\n1", b">>> 1\n2")
    assert deciding([page], ["pytest --doctest-glob='*.rst'"], {}, {}) == (page,)
    assert deciding([page], ["pytest"], {"tests/test_docs.py": b"open('docs/usage.rst')"}, {}) == ()
