"""Chromium with a page of `ralph serve` in it, watched: whatever a page must not do fails the test."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from support.tools import AXE
from support.web_server import Served

SIZES = {"phone": {"width": 360, "height": 740}, "desktop": {"width": 1280, "height": 900}}
_PATIENCE = 20_000
"""Milliseconds. Only a failing test waits so long."""
_OPEN = """route => location.hash === route || new Promise((done) => {
  addEventListener('hashchange', () => done(), {once: true});
  location.hash = route;
})"""
_UNFOLDED = """() => {
  const shut = [...document.querySelectorAll('main details:not([open])')];
  for (const fold of shut) fold.open = true;
  return !shut.length && !document.querySelector('main').textContent.includes('Loading …');
}"""
_AXE = """async () => (await axe.run(document, {resultTypes: ['violations'], elementRef: false})).violations
  .filter(({impact}) => ['serious', 'critical'].includes(impact))
  .map(({id, nodes}) => [id, ...nodes.slice(0, 3).map((node) => `${node.target} ${node.failureSummary}`)].join(' '))"""
_LINKS = "() => [...document.querySelectorAll('a, area, image, use')].map((each) => each.getAttribute('href') ?? '')"
_LINK = re.compile(r"|#main|#/[\w/%.-]*|/report/[\w-]+|#[\w-]+")
_FOREIGN = "() => document.querySelectorAll('main :is(img, iframe, object, embed, script, style, link, base)').length"


class Watched:
    """A browser of its own, with the cookie of the server. No errors, nothing refused, no request to other hosts."""

    def __init__(self, browser: Any, server: Served, size: str = "desktop", theme: str = "light") -> None:
        self.context = browser.new_context(
            viewport=SIZES[size],
            color_scheme=theme,
            reduced_motion="reduce",
            has_touch=size == "phone",
            locale="en-GB",
        )
        self.context.set_default_timeout(_PATIENCE)
        self.server, self.page = server, self.context.new_page()
        self.problems: list[str] = []
        self.expected: tuple[str, ...] = ()
        """Parts of messages that are no problem."""
        self.page.on("console", self._hear)
        self.page.on("pageerror", lambda error: self.problems.append(f"error: {error}"))
        self.page.on("dialog", self._refuse)
        self.page.on("request", self._see)
        self.page.goto(server.login)

    def _hear(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.problems.append(f"console: {message.text}")

    def _refuse(self, dialog: Any) -> None:
        self.problems.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _see(self, request: Any) -> None:
        if not request.url.startswith((f"{self.server.url}/", "data:")):
            self.problems.append(f"request: {request.url}")

    def open(self, route: str, *texts: str) -> Any:
        """A page of the application, once these texts are on it."""
        self.page.evaluate(_OPEN, route)
        self.page.locator("main h1").first.wait_for()
        self.shows(*texts)
        return self.page

    def shows(self, *texts: str) -> None:
        """At once, or a moment later; in a part of the page that is to be seen."""
        for text in texts:
            self.page.locator("main").get_by_text(text).locator("visible=true").first.wait_for()

    def unfold(self) -> None:
        """Everything that can be opened, also in what was opened."""
        self.page.wait_for_function(_UNFOLDED, polling=100)

    def press(self, name: str) -> None:
        """By the name that a screen reader says, with a finger where there is no mouse."""
        button = self.page.get_by_role("button", name=name).locator("visible=true").first
        button.tap() if self.page.evaluate("navigator.maxTouchPoints") else button.click()

    def examine(self) -> None:
        """Accessible, as wide as its window, and nothing on it came from a text."""
        if not self.page.evaluate("typeof axe === 'object'"):
            self.page.evaluate(AXE.read_text())
        assert not (found := self.page.evaluate(_AXE)), found
        assert self.page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, "it scrolls sideways"
        assert self.page.evaluate(_FOREIGN) == 0, "an element that no page has"
        assert not (found := [link for link in self.page.evaluate(_LINKS) if not _LINK.fullmatch(link)]), found

    def check(self) -> None:
        found = [each for each in self.problems if not any(part in each for part in self.expected)]
        assert not found, found
        assert self.page.evaluate("document.title") != "owned"

    def picture(self, path: Path | None = None) -> bytes:
        data: bytes = self.page.screenshot(path=path, animations="disabled", caret="hide")
        return data

    def close(self) -> None:
        self.context.close()


Visit = Callable[..., Watched]
