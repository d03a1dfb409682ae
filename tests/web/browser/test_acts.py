"""What a person does to a run from a browser: by touch on a phone, by the keyboard alone on a desktop."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ralph.core.events import RunEnded
from ralph.core.moves import Reason
from ralph.journal.records import read
from support.processes import wait_for
from support.served import PLAY, TITLES, WAITING, Place
from support.watched import Visit, Watched

pytestmark = pytest.mark.needs("playwright", "chromium")


class Hand:
    """Presses and types as people do with this device."""

    def __init__(self, watched: Watched, size: str) -> None:
        self.watched, self.page, self.is_phone = watched, watched.page, size == "phone"

    def press(self, name: str, inside: str = "body") -> None:
        button = self.page.locator(inside).get_by_role("button", name=name, exact=True).locator("visible=true").first
        if self.is_phone:
            button.tap()
            return
        button.wait_for()
        self._tab_to(button)
        self.page.keyboard.press("Enter")

    def write(self, label: str, text: str) -> None:
        field = self.page.get_by_label(label, exact=True).locator("visible=true").first
        if self.is_phone:
            field.tap()
        else:
            self._tab_to(field)
        self.page.keyboard.type(text)

    def _tab_to(self, wanted: Any) -> None:
        for _ in range(80):
            if wanted.evaluate("each => each === document.activeElement"):
                return
            self.page.keyboard.press("Tab")
        pytest.fail(f"{wanted} is not reached with the Tab key")

    def hears(self, text: str) -> None:
        self.page.locator(".toast").get_by_text(text).first.wait_for()


@pytest.mark.parametrize("size", ["phone", "desktop"])
def test_a_run_under_way_is_paused_resumed_told_something_and_stopped(tmp_path: Path, visit: Visit, size: str) -> None:
    place = Place.make(tmp_path / "acts")
    titles = {"US-001": "One", "US-002": "Two", "US-003": "Three"}
    project = place.project("shop", {"*": [WAITING]}, titles, review={"enabled": False})
    with place.running(project.root) as running, place.serve() as server:
        watched = visit(server, size)
        hand = Hand(watched, size)
        watched.open(f"#/run/{running.run}", "sh measure.sh")
        hand.press("Pause")
        hand.hears("pauses after the current iteration")
        watched.shows("pauses after this iteration")
        hand.press("Resume")
        watched.page.get_by_role("button", name="Pause").wait_for()
        hand.press("Pause")
        watched.shows("pauses after this iteration")
        running.go_on("US-001")
        watched.shows("Paused for")
        hand.press("Note …")
        hand.press("Send the note", "dialog")  # nothing is typed yet
        hand.write("Note", "Mind the <b>gap</b>")
        hand.press("Send the note", "dialog")
        watched.open("#/", "is paused")
        hand.press("Resume", ".waiting")
        wait_for(lambda: running.has_started("US-002"))
        watched.open(f"#/run/{running.run}/story/US-002", "1 note from you in the prompt")
        watched.unfold()
        watched.shows("Mind the <b>gap</b>")
        watched.open(f"#/run/{running.run}", "sh measure.sh")
        hand.press("Stop …")
        if size == "phone":
            hand.press("Stop after this iteration", "dialog")
            watched.shows("stops after this iteration")
            running.go_on("US-002")
        else:
            hand.press("Stop now", "dialog")
        running.end()
        watched.shows("stopped")
        assert not watched.page.get_by_role("button", name="Pause").is_visible()
    (ended,) = [record.event for record in read(place.journal(running.run)) if isinstance(record.event, RunEnded)]
    assert ended.reason is (Reason.ON_REQUEST if size == "phone" else Reason.INTERRUPTED)
    assert (project.root / "src" / "US-001.txt").exists()
    assert (project.root / "src" / "US-002.txt").exists() is (size == "phone"), "it did not stop when it was to"


@pytest.mark.parametrize("size", ["phone", "desktop"])
def test_what_waits_for_the_user_is_decided(tmp_path: Path, visit: Visit, size: str) -> None:
    place = Place.make(tmp_path / "acts")
    play = {name: acts for name, acts in PLAY.items() if name != "US-004"}
    project = place.project("shop", play, {name: title for name, title in TITLES.items() if name != "US-004"})
    run = place.run(project.root)
    with place.serve() as server:
        watched = visit(server, size)
        hand = Hand(watched, size)
        watched.open("#/", "Which colour?")
        hand.write("Answer for US-002", "Blue")
        hand.press("Send the answer")
        hand.hears("US-002")
        hand.press("Retry US-003")
        hand.hears("US-003")
        watched.shows("Nothing is running, and nothing waits for you.")
        watched.open(f"#/run/{run}/story/US-003", "Break a check")
        hand.press("Skip …")
        hand.write("Reason (optional)", "Not this year")
        hand.press("Skip the story")
        hand.hears("US-003")
        watched.open(f"#/run/{run}/story/US-001", "Review findings")
        hand.press("Confirm F2 …")
        hand.press("Confirm the finding")
        hand.hears("F2")
        watched.shows("confirmed finding F2 of US-001")
        hand.press("Reject F3 …")
        hand.press("Reject the finding")  # without a reason nothing is sent
        hand.write("Reason", "It was not asked for")
        hand.press("Reject the finding")
        watched.shows("rejected finding F3 of US-001")
    beside = next(place.state.glob("*/plans/*/beside.json")).read_text()
    for written in ("skipped by you: Not this year", "It was not asked for"):
        assert written in beside, written
    assert "Blue" in next(place.state.glob("*/plans/*/answers.json")).read_text()


def test_who_may_only_look_sees_no_button(tmp_path: Path, visit: Visit) -> None:
    place = Place.make(tmp_path / "acts")
    project = place.project("shop", {"*": [WAITING]}, {"US-001": "One"})
    with place.running(project.root) as running, place.serve("--read-only") as server:
        watched = visit(server)
        for route in ("#/", f"#/run/{running.run}", f"#/run/{running.run}/story/US-001"):
            watched.open(route, "Read-only", "One" if "story" in route else "implement")
            assert watched.page.locator("main [data-verb]").count() == 0
        watched.expected = ("403",)
        script = """async (run) => (await fetch(`/api/runs/${run}/acts`, {method: 'POST',
            headers: {'Content-Type': 'application/json'}, body: '{"verb": "stop-now"}'})).status"""
        assert watched.page.evaluate(script, running.run) == 403
        assert running.process.poll() is None
