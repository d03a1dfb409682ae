"""A journal that grows while people look at it in a browser: at once, when the connection was lost, and a long one."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

import pytest

from ralph.core.agent import Text
from ralph.core.events import AgentSaid, Noted
from ralph.core.verdict import Kind
from ralph.journal.records import chained, digest
from support.hostile_runs import journal_of, tell
from support.told_runs import PASSED, RUN, ToldRun
from support.watched import Visit, Watched
from support.web_server import served

pytestmark = pytest.mark.needs("playwright", "chromium")
LONG = 100_000

SEES = """([selector, text]) => { window.seen = new Promise((resolve) => {
  const look = () => [...document.querySelectorAll(selector)].some((each) => each.textContent.includes(text))
    && resolve(Date.now() / 1000);
  new MutationObserver(look).observe(document.body, {subtree: true, childList: true, characterData: true});
}); }"""


def tell_figures(*figures: str) -> None:
    """`pytest -rP` shows them."""
    sys.stdout.write(", ".join(figures) + "\n")


def delay(watched: Watched, selector: str, text: str, write: Callable[[], object]) -> float:
    """Seconds from a record in the journal to the moment when a page has it."""
    watched.page.evaluate(SEES, [selector, text])
    write()
    begun = time.time()
    seen: float = watched.page.evaluate("window.seen")
    return max(seen - begun, 0.0)


def test_an_event_is_on_the_screen_of_every_viewer_at_once(tmp_path: Path, visit: Visit) -> None:
    told = tell(tmp_path, is_alive=True)
    told.begin(1, "US-001")
    with served(tmp_path) as server:
        watched, other, home = visit(server), visit(server, "phone"), visit(server)
        watched.open(f"#/run/{RUN}", "implement")
        other.open(f"#/run/{RUN}/events", "IterationStarted")
        home.open("#/", "implement US-001")
        news = [Noted(f"news {number}!") for number in range(9)]
        delays = [delay(watched, ".tail li", each.text, partial(told.say, each)) for each in news]
        other.shows("news 8!")
        told.judge(1, Kind.ACCEPTED, PASSED)
        delays.append(delay(watched, "table", "done", lambda: told.end(1, Kind.ACCEPTED)))
        watched.page.locator("#status").get_by_text("US-001 accepted").wait_for(state="attached")
        home.shows("1/3")
        told.stop()
        watched.shows("finished")
    tell_figures("event to screen", *(f"{each * 1000:.0f} ms" for each in delays))
    assert median(delays) < 2, delays


def test_a_lost_connection_is_said_and_what_was_missed_comes_after_it(tmp_path: Path, visit: Visit) -> None:
    told = tell(tmp_path, is_alive=True)
    with served(tmp_path) as server:
        watched = visit(server)
        watched.expected = ("ERR_", "Failed to load resource")
        watched.open(f"#/run/{RUN}", "Now")
        port = str(server.port)
    watched.page.get_by_text("Connection lost").first.wait_for()
    told.begin(1, "US-001")
    with served(tmp_path, port=port) as server:
        watched.shows("Sign in")
        watched.page.get_by_label("Token, or the address with it").fill(server.login)
        watched.press("Sign in")
        watched.shows("implement", "US-001")


def test_a_hundred_thousand_events_open_and_scroll(tmp_path: Path, visit: Visit) -> None:
    journal = long_journal(tmp_path)
    with served(tmp_path) as server:
        watched = visit(server)
        page = watched.open("#/", "All runs")
        begun = time.monotonic()
        watched.open(f"#/run/{RUN}", "Latest events")
        opened = time.monotonic() - begun
        watched.open(f"#/run/{RUN}/events", f"{LONG:,}")
        watched.shows("the last word")
        frames = page.evaluate(SCROLL)
        assert page.locator("#rows [role=row]").count() < 100
        page.get_by_role("button", name="First").click()
        watched.shows("RunStarted")
        page.locator("#rows").focus()
        page.keyboard.press("End")
        watched.shows("the last word")
        page.locator("#rows").evaluate("rows => { rows.scrollTop = rows.scrollHeight / 2; }")
        middle = re.compile(r"^(49|50)\d{3}$")
        page.locator("#rows .seq").get_by_text(middle).first.wait_for()
        ToldRun(journal).say(Noted("after the last word"))
        page.get_by_role("button", name="Latest").click()
        watched.shows("after the last word")
    tell_figures(f"{LONG:,} events", f"opened in {opened:.2f} s", f"frames of {frames[0]} ms, the worst {frames[1]} ms")
    assert opened < 8
    assert frames[0] < 100, frames


SCROLL = """async () => {
  const rows = document.getElementById('rows');
  const times = [];
  const step = rows.scrollHeight / 120;
  rows.scrollTop = 0;
  for (let at = 0; at < 120; at += 1) {
    const begun = performance.now();
    rows.scrollTop += step;
    await new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve)));
    times.push((performance.now() - begun) / 2);
  }
  times.sort((a, b) => a - b);
  return [times[60], times[119]].map(Math.round);
}"""


def long_journal(state: Path) -> Path:
    """A run that is alive, of a thousand iterations on three stories, with a hundred events each."""
    told = tell(state, is_alive=True)
    before = len(told.records)
    told.begin(1, "US-001")
    told.say(AgentSaid(1, Text("Let me look at that first.")))
    told.judge(1, Kind.REJECTED)
    told.end(1, Kind.REJECTED, headline="check 'tests' failed")
    journal = journal_of(state)
    lines = journal.read_bytes().splitlines()
    head, block = lines[:before], [json.loads(line) for line in lines[before:]]
    said = next(at for at, each in enumerate(block) if each["event"]["type"] == "AgentSaid")
    events = [json.dumps(each["event"]) for each in block]
    events[said:said] = [events[said]] * (100 - len(events))
    link, t = digest(head[-1] + b"\n"), block[-1]["t"]
    with journal.open("wb") as stream:
        stream.write(b"".join(line + b"\n" for line in head))
        for seq in range(before + 1, LONG + 1):
            number, at = divmod(seq - before - 1, len(events))
            event = events[at].replace('"iteration": 1', f'"iteration": {number + 1}')
            if seq == LONG:
                event = '{"type": "Noted", "text": "the last word"}'
            line = chained(f'{{"seq":{seq},"t":{t + seq / 10},"event":{event},"v":1}}'.encode(), link)
            link = digest(line)
            stream.write(line)
    return journal
