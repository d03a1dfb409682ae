"""Records for pictures: a run with a lie in it, and one in which every text is hostile; and how a picture is read."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

import pyte

from ralph.core.agent import AgentEvent, Text, ToolUse
from ralph.core.events import AgentSaid, CheckEnded, CheckStarted, Noted, Record
from ralph.core.evidence import CheckResult
from ralph.core.moves import Reason
from ralph.core.plan import State
from ralph.core.verdict import Kind
from support.told_runs import PASSED, ToldRun, seen

LIE = "All tests pass, the story is complete!"
CAUGHT = "no files changed"
HOSTILE = (
    "<img src=x onerror=alert(1)>",
    "</text></svg><script>alert(2)</script>",
    "]]> &amp; &#0; <!-- -->",
    "\x1b[2J\x1b[31mred\x1b]0;title\x07 \x00\x01\x08\x9b3J",
    "مرحبا بالعالم \u202e reversed \u2066",
    "👩‍👩‍👧‍👦 🏳️‍🌈 漢字 " * 30,
    "e\u0301\u0301\u0301" * 200,
    "\ufffe \uffff \U0001ffff",
    "a\tb\r\nc\u2028d",
    "url(https://example.org/x) javascript:alert(3) @import 'x'",
)
_SVG = "{http://www.w3.org/2000/svg}"
_STEP = re.compile(r"([\d.e-]+)%\{transform:translateY\((-?\d+)px\)\}")


def lying_run(folder: Path, *, iterations: int = 4, is_over: bool = True) -> list[Record]:
    """The agent of US-001 lies first; then story after story is done, with an hour of thinking in each."""
    told = ToldRun(folder / "events.jsonl")
    told.start(*(seen(f"US-{number:03}") for number in range(1, max(iterations, 2))))
    told.begin(1)
    told.say(AgentSaid(1, Text(LIE)))
    told.judge(1, Kind.REJECTED)
    told.end(1, Kind.REJECTED, headline=CAUGHT)
    for number in range(2, iterations + 1):
        story = f"US-{number - 1:03}"
        told.begin(number, story)
        told.say(AgentSaid(number, Text(f"Working on {story}.")), AgentSaid(number, ToolUse("Bash", "Bash pytest -q")))
        told.now += 3600
        told.judge(number, Kind.ACCEPTED, PASSED)
        told.end(number, story=story)
    if is_over:
        told.stop()
    return told.records


def hostile_run(folder: Path) -> list[Record]:
    told = ToldRun(folder / "events.jsonl")
    told.start(*(seen(text) for text in HOSTILE))
    for number, text in enumerate(HOSTILE, 1):
        told.begin(number, text, text)
        said: list[AgentEvent] = [Text(text), ToolUse(text, text), Text("\x1b[31m" * 2000 + text)]
        told.say(*(AgentSaid(number, each) for each in said))
        told.say(CheckStarted(iteration=number, name=text, when=text))
        told.say(CheckEnded(iteration=number, tree="t", check_set="s", result=CheckResult(text, text, passed=False)))
        more: dict[str, Any] = {"reasons": (text,), "notices": (text, text), "learned": (text,)}
        told.end(number, Kind.REJECTED, story=text, headline=text, story_state=State.FAILED, **more)
        told.say(Noted(text, warning=True))
    told.stop(Reason.WAITING, HOSTILE[0])
    return told.records


class Played(NamedTuple):
    """An asciicast as a terminal emulator shows it."""

    header: dict[str, Any]
    screens: list[list[str]]
    """After each event, without the spaces at the ends of lines."""
    seconds: float


def played(cast: str) -> Played:
    header, *events = (json.loads(line) for line in cast.splitlines())
    # One row and a few columns more than it says: what is written there shows.
    screen = pyte.Screen(header["width"] + 10, header["height"] + 1)
    stream = pyte.Stream(screen)
    screens = []
    before = 0.0
    for at, kind, data in events:
        assert at >= before
        assert kind == "o"
        before = at
        stream.feed(data)
        screens.append([line.rstrip() for line in screen.display])
    return Played(header, screens, before)


class Animated(NamedTuple):
    """An animated SVG as it is seen."""

    frames: list[list[str]]
    """The rows of text of each frame, from top to bottom."""
    starts: list[float]
    """When each frame begins, as a part of the whole."""
    seconds: float
    at_rest: int
    """The frame that is seen where nothing moves."""


def seen_svg(text: str) -> Animated:
    root = ElementTree.fromstring(text)
    parts = {each.get("id", ""): each for each in root.iter(f"{_SVG}g") if each.get("id")}
    strip = parts["strip"]
    [style] = [each.text or "" for each in root.iter(f"{_SVG}style")]
    steps = [(float(at), int(top)) for at, top in _STEP.findall(style)]
    tops = [_moved(each) for each in strip]
    assert [-top for _, top in steps] == tops, "every frame has its step"
    [duration] = re.findall(r"animation:\w+ ([\d.]+)s step-end infinite", style)
    frames = [[rows[y] for y in sorted(rows)] for rows in (_rows(each, parts) for each in strip)]
    return Animated(frames, [at / 100 for at, _ in steps], float(duration), tops.index(-_moved(strip)))


def _moved(element: ElementTree.Element) -> int:
    found = re.fullmatch(r"translate\(0,(-?\d+)\)", element.get("transform", "translate(0,0)"))
    assert found
    return int(found[1])


def _rows(element: ElementTree.Element, parts: dict[str, ElementTree.Element], y: int = 0) -> dict[int, str]:
    rows: dict[int, str] = {}
    for child in element:
        if child.tag == f"{_SVG}use":
            name = child.get("href", "")
            assert name.startswith("#"), "nothing from outside"
            more = _rows(parts[name[1:]], parts, y + int(child.get("y", "0")))
        else:
            more = {y: child.text or ""}
        for at, text in more.items():
            rows[at] = f"{rows[at]} {text}" if at in rows else text
    return rows
