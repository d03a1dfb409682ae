"""Every page of `ralph serve` in a real browser, on a phone and on a desktop, in both themes, with a run under way."""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from support.served import Place, Running
from support.watched import SIZES, Visit, Watched
from support.web_server import Served

DOCS = Path(__file__).resolve().parents[3] / "docs"
pytestmark = [pytest.mark.needs("playwright", "chromium", "axe-core"), pytest.mark.defaults]


class Shown(NamedTuple):
    server: Served
    running: Running
    ended: str


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shown]:
    place = Place.make(tmp_path_factory.mktemp("pages"))
    shop = place.project("shop", {"US-001": [[{"ask": "Which currency: EUR or USD?"}]]}, {"US-001": "Show prices"})
    ended = place.run(shop.root)
    with place.running(place.demo(), {}) as running, place.serve() as server:
        yield Shown(server, running, ended)


def pages(shown: Shown) -> dict[str, tuple[str, ...]]:
    """Address → what is on it."""
    run = f"#/run/{shown.running.run}"
    return {
        "#/": ("Running", "textkit", "implement US-003", "Waiting for you", "Which currency: EUR or USD?", "shop"),
        run: ("2/5", "sh measure.sh", "witnessed", "Shout louder", "Timeline", "Latest events"),
        f"{run}/charts": ("Stories done", "Cost", "Tokens", "Accepted iterations", "Forecast"),
        f"{run}/events": ("CheckEnded", "iteration 9"),
        f"{run}/live": ("The default has to stay one exclamation mark.",),
        f"{run}/checks": ("Before the first story",),
        f"{run}/story/US-001": (
            *(
                "Review findings",
                "nobody is greeted with 'Hello, .'",
                "closed",
                "fails without the change, passes with it",
            ),
            *("test_textkit.TextKit.test_greet", "verdict: changes requested", "the old tests pass too"),
        ),
        f"{run}/story/US-002": ("no files changed", "All tests pass, the story is complete!", "proven"),
        f"{run}/story/US-003": ("in progress", "test_shout", "AssertionError", "Kept work", "sh measure.sh"),
        f"#/compare/{shown.ended}/{shown.running.run}": ("Figures", "stories done", "not in this run"),
    }


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("size", list(SIZES))
def test_every_page_tells_its_part_and_is_accessible(shown: Shown, visit: Visit, size: str, theme: str) -> None:
    watched = visit(shown.server, size, theme)
    for route, texts in pages(shown).items():
        watched.open(route)
        watched.unfold()
        watched.shows(*texts)
        watched.examine()
    watched.press("Keyboard shortcuts")
    watched.examine()


def test_pictures_are_like_those_in_the_docs(shown: Shown, visit: Visit, browser: Any) -> None:
    """`UPDATE_PICTURES=1` makes them anew; then look at them."""
    run = f"#/run/{shown.running.run}"
    desktop, phone = visit(shown.server), visit(shown.server, "phone", "dark")
    desktop.open("#/", "Which currency: EUR or USD?")
    desktop.page.evaluate("document.querySelector('main .head .soft').textContent = 'on laptop'")
    compare("serve-home", desktop, browser)
    desktop.open(run, "Latest events")
    compare("serve-run", desktop, browser)
    desktop.open(f"{run}/story/US-002/6", "fails without the change, passes with it")
    desktop.page.get_by_text("Changes", exact=True).locator("visible=true").click()
    desktop.shows("def words(text: str) -> int:")
    desktop.page.evaluate("document.querySelector('.attempt-fold[open]').scrollIntoView()")
    compare("serve-story", desktop, browser)
    phone.open(run, "Latest events")
    compare("serve-phone", phone, browser)


def compare(name: str, watched: Watched, browser: Any) -> None:
    """What stands where, and in which colour, in squares of 40 pixels; times and numbers differ from run to run."""
    path = DOCS / f"{name}.png"
    if os.environ.get("UPDATE_PICTURES"):
        watched.picture(path)
    now, kept = watched.picture(), path.read_bytes()
    assert len(kept) < 120_000, f"{path} is too large for a repository"
    pictures = [f"data:image/png;base64,{base64.b64encode(data).decode()}" for data in (now, kept)]
    page = browser.new_page()
    (size, squares), (size_kept, squares_kept) = (page.evaluate(_SQUARES, picture) for picture in pictures)
    page.close()
    assert size == size_kept
    assert len(set(squares)) > 8, "an empty page"
    far = [at for at, (a, b) in enumerate(zip(squares, squares_kept, strict=True)) if abs(a - b) > 24]
    assert len(far) < len(squares) / 8, f"{len(far)} of {len(squares)} squares of {name} look different"


_SQUARES = """async (url) => {
  const image = new Image();
  image.src = url;
  await image.decode();
  const [width, height] = [Math.ceil(image.width / 40), Math.ceil(image.height / 40)];
  const canvas = new OffscreenCanvas(width, height);
  const pen = canvas.getContext('2d');
  pen.imageSmoothingQuality = 'high';
  pen.drawImage(image, 0, 0, width, height);
  const {data} = pen.getImageData(0, 0, width, height);
  return [[image.width, image.height], [...data.keys()].filter((at) => at % 4 === 1).map((at) => data[at])];
}"""


def test_everything_that_can_be_pressed_is_reached_with_the_tab_key(shown: Shown, visit: Visit) -> None:
    watched = visit(shown.server)
    run = f"#/run/{shown.running.run}"
    for route, text in {
        "#/": "All runs",
        run: "Latest events",
        f"{run}/events": "AgentSaid",
        f"{run}/story/US-001": "Review findings",
    }.items():
        page = watched.open(route, text)
        page.wait_for_timeout(400)
        wanted = set(page.evaluate(_PRESSED))
        reached: set[str] = set()
        presses = 0
        while not reached >= wanted and presses < 2 * len(wanted) + 60:
            presses += 1
            page.keyboard.press("Tab")
            name, is_seen = page.evaluate(_FOCUSED)
            reached |= {name}
            assert is_seen, f"the focus on {name} cannot be seen"
        assert reached >= wanted, f"not reached on {route}: {wanted - reached}"


_NAME = """(each) => [each.localName, each.id, each.getAttribute('href') ?? '',
  each.getAttribute('aria-label') ?? each.textContent.slice(0, 60)].join(' ').replace(/[0-9]+/g, '#')"""
"""The same after a picture of the run was drawn again, with other times."""
_PRESSED = f"""() => [...document.querySelectorAll('a, button, input, select, textarea, summary, [tabindex="0"]')]
  .filter((each) => each.checkVisibility() && !each.disabled).map({_NAME})"""
_FOCUSED = f"""() => [({_NAME})(document.activeElement),
  document.activeElement === document.body || getComputedStyle(document.activeElement).outlineStyle !== 'none']"""


def test_a_run_is_found_and_examined_with_the_keyboard_alone(shown: Shown, visit: Visit) -> None:
    watched = visit(shown.server)
    page = watched.open("#/", "All runs")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    watched.shows("Timeline")
    page.keyboard.press("3")
    watched.shows("CheckEnded")
    page.locator("#rows").focus()
    page.keyboard.press("Home")
    page.locator(".picked").get_by_text("event 1").wait_for()
    page.keyboard.press("ArrowDown")
    page.locator(".picked").get_by_text("event 2").wait_for()
    page.keyboard.press("t")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.keyboard.press("?")
    page.get_by_role("dialog").get_by_text("Keyboard shortcuts", exact=True).wait_for()
    page.keyboard.press("Escape")
    page.keyboard.press("h")
    watched.shows("Waiting for you")


def test_a_screen_that_is_turned_still_shows_the_events(shown: Shown, visit: Visit) -> None:
    watched = visit(shown.server, "phone")
    page = watched.open(f"#/run/{shown.running.run}/events", "AgentSaid")
    page.get_by_role("button", name="First").click()
    watched.shows("RunStarted")
    page.set_viewport_size({"width": 740, "height": 360})
    watched.shows("RunStarted")
    page.get_by_role("button", name="Latest").click()
    watched.shows("AgentSaid")


def test_the_transcript_is_searched_and_the_change_is_shown_side_by_side(shown: Shown, visit: Visit) -> None:
    watched = visit(shown.server)
    page = watched.open(f"#/run/{shown.running.run}/story/US-001/1", "Attempts")
    watched.unfold()
    watched.shows("A plain function and a test.")
    attempt = page.locator(".attempt", has_text="1. implement")
    attempt.get_by_label("Search in the transcript").fill("unittest")
    attempt.get_by_text("1 found").wait_for()
    file = attempt.locator("details.file", has_text="test_textkit.py")
    assert file.locator("tr").first.locator("td, th").count() == 4, "two columns of text"
    added = file.locator("td.added", has_text="def test_greet(self):")
    assert added.evaluate("cell => cell.cellIndex") == 3
    page.set_viewport_size(SIZES["phone"])
    file.locator("table:not(.wide)").wait_for()


def test_the_report_is_a_page_to_print(shown: Shown, visit: Visit) -> None:
    watched = visit(shown.server)
    page = watched.open(f"#/run/{shown.running.run}", "Report")
    page.get_by_role("link", name="Report").click()
    page.get_by_text("Count the words of a text").first.wait_for()
    assert page.url.endswith(f"/report/{shown.running.run}")
    assert page.evaluate("document.scripts.length") == 0
    assert page.pdf().startswith(b"%PDF-")


def test_what_is_unknown_is_said_and_leads_back(shown: Shown, visit: Visit) -> None:
    watched = visit(shown.server)
    watched.expected = ("404", "EventSource")
    run, no_run = f"#/run/{shown.running.run}", "There is no such run on this machine."
    for route, text, link in (
        ("#/run/nonsense", no_run, "#/"),
        ("#/run/nonsense/story/US-001", no_run, "#/"),
        ("#/compare/nonsense/nothing", no_run, "#/"),
        (f"{run}/story/NOT-001", "There is no such story in this run.", run),
    ):
        page = watched.open(route, text)
        assert page.locator("main .callout.bad a").get_attribute("href") == link
        assert page.get_by_text("Loading …").count() == 0
        assert not page.locator("#lost").is_visible()
        watched.examine()


def test_what_is_to_be_typed_is_set_as_code(shown: Shown, visit: Visit) -> None:
    page = visit(shown.server).open(f"#/run/{shown.ended}", "Next:")
    assert page.locator(".callout code", has_text="ralph").count()
    assert "`" not in page.locator(".callout").all_inner_texts()[0]


def test_without_the_cookie_the_page_says_how_to_get_in(shown: Shown, visit: Visit) -> None:
    watched = visit(shown.server)
    watched.expected = ("401",)
    page = watched.open("#/", "All runs")
    watched.context.clear_cookies()
    page.evaluate("route => { location.hash = route; }", f"#/run/{shown.ended}")
    watched.shows("Sign in")
    watched.examine()
    page.get_by_label("Token, or the address with it").fill(shown.server.login)
    watched.press("Sign in")
    watched.shows("Which currency: EUR or USD?")
    assert page.url.endswith(f"/#/run/{shown.ended}"), "back to where it was"
    assert shown.server.token not in page.url
    page.goto(f"{shown.server.url}/?token=wrong")
    assert "This needs the token" in page.content()
