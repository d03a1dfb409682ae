"""A run in which every text is an attack, and a page of another site, in a real browser."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

import pytest

from support.served import PLAY, SHOWN, TITLES, Place
from support.watched import SIZES, Visit
from support.web_server import Served

pytestmark = pytest.mark.needs("playwright", "chromium", "axe-core")


class Attacked(NamedTuple):
    place: Place
    server: Served
    run: str


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attacked]:
    place = Place.make(tmp_path_factory.mktemp("hostile"))
    run = place.run(place.project("shop", PLAY, TITLES).root)
    with place.serve() as server:
        yield Attacked(place, server, run)


@pytest.mark.parametrize("size", list(SIZES))
def test_text_of_an_agent_or_a_repository_is_shown_and_nothing_else(
    attacked: Attacked, visit: Visit, size: str
) -> None:
    watched = visit(attacked.server, size)
    run = f"#/run/{attacked.run}"
    plain = SHOWN.replace("<U+202E>", "")  # the loop keeps no control characters of questions and outputs
    for route, texts in {
        "#/": (plain,),
        run: (SHOWN,),
        f"{run}/events": ("AgentSaid",),
        f"{run}/charts": ("Stories done",),
        f"{run}/story/US-001": ("</script><script>document.title='owned'</script>", "<U+001B>"),
        f"{run}/story/US-002": (plain,),
        f"{run}/story/US-003": (f"BROKEN {SHOWN}", "</pre><script>alert(1)</script>"),
    }.items():
        watched.open(route)
        watched.unfold()
        watched.shows(*texts)
        watched.examine()
    watched.page.goto(f"{attacked.server.url}/report/{attacked.run}")
    watched.page.get_by_text(plain).first.wait_for()
    assert "\u202e" not in watched.page.content()
    assert (
        watched.page.evaluate("document.querySelectorAll('script, img, iframe, a[href^=\"javascript\"]').length") == 0
    )
    for chart in ("gantt", "stories"):
        watched.page.goto(f"{attacked.server.url}/api/runs/{attacked.run}/charts/{chart}.svg")
        assert watched.page.evaluate("document.documentElement.localName") == "svg"


def test_ten_megabytes_for_a_terminal_are_read_in_pages(attacked: Attacked, visit: Visit) -> None:
    raw = sum(path.stat().st_size for path in attacked.place.state.glob("*/runs/*/raw/*") if path.stat().st_size > 1e6)
    assert raw > 10_000_000
    watched = visit(attacked.server)
    page = watched.open(f"#/run/{attacked.run}/story/US-004", SHOWN)
    work = page.locator(".attempt", has_text="implement")
    work.locator("summary").first.click()
    begun = time.monotonic()
    work.get_by_text("Transcript", exact=True).click()
    work.get_by_text("message 7 ").first.wait_for()
    assert time.monotonic() - begun < 15
    assert page.evaluate("document.querySelectorAll('*').length") < 5_000
    work.get_by_label("Search in the transcript").fill("message 499")
    work.get_by_text("1 found").wait_for()
    work.get_by_text("message 499 red<U+0008>").first.wait_for()


EVIL = """<!doctype html><title>working</title><body><script>
const tries = {
  read: () => fetch(TARGET + '/api/home', {credentials: 'include'}).then((answer) => answer.text()),
  act: () => fetch(TARGET + '/api/runs/RUN/acts', {method: 'POST', credentials: 'include', headers:
    {'Content-Type': 'application/json'}, body: '{"verb": "note", "text": "owned"}'}).then((answer) => answer.text()),
  script: () => new Promise((resolve, reject) => {
    const made = document.createElement('script');
    Object.assign(made, {src: TARGET + '/static/app.js', type: 'module', onload: resolve, onerror: reject});
    document.body.append(made);
  }),
  picture: () => new Promise((resolve, reject) => {
    Object.assign(new Image(), {onload: resolve, onerror: reject, src: TARGET + '/api/runs/RUN/charts/gantt.svg'});
  }),
  stream: () => new Promise((resolve, reject) => {
    const made = new EventSource(TARGET + '/api/home/stream', {withCredentials: true});
    Object.assign(made, {onopen: resolve, onerror: reject});
  }),
};
(async () => {
  fetch(TARGET + '/api/runs/RUN/acts', {method: 'POST', mode: 'no-cors', credentials: 'include',
    body: '{"verb": "note", "text": "owned"}'}).catch(() => {});
  const frame = document.createElement('iframe');
  frame.src = TARGET + '/';
  document.body.append(frame);
  const found = {};
  for (const [name, run] of Object.entries(tries)) found[name] = await run().then(() => 'done', () => 'refused');
  document.title = JSON.stringify(found);
})();
</script><form id="form" method="post" enctype="text/plain" action="TARGET/api/runs/RUN/acts">
<input name='{"verb": "note", "text": "owned", "x": "' value='"}'></form>"""


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_another_page_in_the_same_browser_can_neither_read_nor_act(attacked: Attacked, visit: Visit, host: str) -> None:
    """On the same machine, which is the same site to a browser, and under another name."""
    watched = visit(attacked.server)
    watched.expected = ("",)  # it is full of refusals
    watched.open("#/", "All runs")
    page = watched.context.new_page()
    with other_site(attacked) as port:
        page.goto(f"http://{host}:{port}/")
        page.wait_for_function("document.title !== 'working'")
        found = json.loads(page.title())
        assert set(found.values()) == {"refused"}, found
        assert page.frames[1].url != f"{attacked.server.url}/" or not page.frames[1].locator("main").count()
        with page.expect_navigation(url=f"{attacked.server.url}/**") as sent:
            page.evaluate("document.getElementById('form').submit()")
        assert sent.value.status in (401, 403, 415), "the cookie may be missing, or the act is refused"
    assert not list(attacked.place.state.glob("*/plans/*/notes*")), "a note was left"
    watched.open("#/", "All runs")


@contextmanager
def other_site(attacked: Attacked) -> Iterator[int]:
    text = EVIL.replace("TARGET + ", f"'{attacked.server.url}' + ").replace("TARGET", attacked.server.url)

    class Evil(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(text.replace("RUN", attacked.run).encode())

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Evil) as site:
        thread = threading.Thread(target=site.serve_forever)
        thread.start()
        yield site.server_address[1]
        site.shutdown()
        thread.join()
