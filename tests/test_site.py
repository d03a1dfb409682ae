"""The documentation site builds without a warning and loads nothing from elsewhere; search needs no network."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

ROOT = Path(__file__).resolve().parent.parent
pytestmark = pytest.mark.needs("mkdocs")


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, str(ROOT / "scripts" / "site"), "--to", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site))) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_it_has_every_page(site: Path) -> None:
    names = {path.relative_to(site).with_suffix(".md").as_posix() for path in site.rglob("*.html")}
    wanted = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert {name.replace("README.md", "index.md") for name in wanted} - names == set()
    assert {"ARCHITECTURE.md", "CHANGELOG.md", "examples/layout-plugin.md"} <= names


@pytest.mark.needs("playwright", "chromium")
def test_it_is_read_and_searched_without_another_host(address: str) -> None:
    from playwright.sync_api import sync_playwright

    asked: list[str] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        page = browser.new_page()
        page.on("request", lambda request: asked.append(request.url))
        page.goto(f"{address}/start.html")
        page.get_by_role("textbox", name="Search").fill("usage limit")
        page.locator(".md-search-result__item").first.wait_for(timeout=60_000)
        page.goto(f"{address}/cli.html")
        browser.close()
    assert len(asked) > 5
    assert [url for url in asked if not url.startswith(address)] == []
