"""The README's picture: small, harmless, of the demo as it is now, and it shows a lie being caught."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree

from support.recordings import seen_svg

ROOT = Path(__file__).resolve().parents[2]
PICTURE = ROOT / "docs" / "demo.svg"
HARMLESS = {"svg", "title", "style", "rect", "circle", "text", "g", "use", "defs"}
AGAIN = "make it again with scripts/picture.py"


def test_it_is_an_image_that_needs_nothing_else() -> None:
    text = PICTURE.read_text()
    assert str(PICTURE.relative_to(ROOT)) in (ROOT / "README.md").read_text()
    assert len(text.encode()) < 150_000
    assert {element.tag.partition("}")[2] for element in ElementTree.fromstring(text).iter()} <= HARMLESS
    assert not re.search(r"url\(|@import|@font-face|https?://(?!www\.w3\.org/)", text)


def test_it_is_of_the_demo_as_it_is_now() -> None:
    text = PICTURE.read_text()
    plan = json.loads((ROOT / "examples/demo/.ralph/textkit/tasks.json").read_text())
    for story in plan["userStories"]:
        assert story["title"] in text, AGAIN


def test_it_shows_claims_that_are_caught_and_then_work_that_is_done() -> None:
    shown = seen_svg(PICTURE.read_text())
    assert shown.seconds <= 20
    assert max(map(len, shown.frames)) <= 25
    frames = ["\n".join(frame) for frame in shown.frames]
    claimed = next(n for n, text in enumerate(frames) if "All tests pass, the story is complete!" in text)
    caught = next(n for n, text in enumerate(frames) if "rejected US-002: no files changed" in text)
    done = next(n for n, text in enumerate(frames) if "accepted US-002: approved" in text)
    assert claimed < caught < done, AGAIN
    assert "All tests pass, the story is complete!" in frames[caught], "the lie stands beside the verdict"
    assert any("rejected US-003: check" in text for text in frames)
    assert "5/5 stories" in frames[-1]
