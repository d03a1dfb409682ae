"""A browser for each file of tests, and pages whose misbehaviour fails the test that opened them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from support.watched import Visit, Watched
from support.web_server import Served


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=arguments)
        yield chromium
        chromium.close()


@pytest.fixture
def visit(browser: Any) -> Iterator[Visit]:
    opened: list[Watched] = []

    def visit(server: Served, size: str = "desktop", theme: str = "light") -> Watched:
        opened.append(Watched(browser, server, size, theme))
        return opened[-1]

    yield visit
    for page in opened:
        page.check()
        page.close()
