"""Beads through the tool's documented command line, with a stand-in for the tool."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from ralph.core.errors import BadData, RalphError, SetupError, UsageError
from ralph.plans.beads import Beads, NoSuchBead, find

STAND_IN = Path(__file__).parent.parent / "support" / "beads" / "br"
ISSUES = [
    {"id": "TASK-abc", "title": "Schema", "status": "closed", "acceptance_criteria": "- it migrates", "priority": 1},
    {"id": "br-12ab", "title": "Rules", "status": "open", "description": None, "notes": None, "labels": ["x"]},
    {"id": "my-proj-a1.2", "title": "Docs", "status": "in_progress"},
]


class Tracker:
    """A workspace with beads in it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.bin = root.parent / "bin"
        self.bin.mkdir()
        self.env = {"PATH": os.pathsep.join([str(self.bin), os.environ["PATH"]])}
        (root / ".beads").mkdir()
        (root / ".beads" / "stand-in.json").write_text(json.dumps(ISSUES))
        self.install("br")

    def install(self, name: str) -> None:
        shutil.copy(STAND_IN, self.bin / name)

    def beads(self, timeout: float = 30, **env: str) -> Beads:
        return Beads(str(self.bin / "br"), self.root, self.env | env, timeout)

    def calls(self) -> list[list[str]]:
        return [json.loads(line) for line in (self.root / ".beads-calls").read_text().splitlines()]

    def status(self, bead_id: str) -> str:
        issues = json.loads((self.root / ".beads" / "stand-in.json").read_text())
        return str(next(issue["status"] for issue in issues if issue["id"] == bead_id))


@pytest.fixture
def tracker(tmp_path: Path) -> Tracker:
    (root := tmp_path / "work").mkdir()
    return Tracker(root)


@pytest.mark.parametrize("form", ["array", "object"])
def test_a_bead_is_shown_whatever_the_form_of_the_answer(tracker: Tracker, form: str) -> None:
    bead = tracker.beads(BEADS_SHOW=form).show("TASK-abc")
    assert (bead.title, bead.status, bead.acceptance_criteria) == ("Schema", "closed", "- it migrates")
    bare = tracker.beads(BEADS_SHOW=form).show("br-12ab")
    assert (bare.description, bare.notes) == ("", "")


def test_many_statuses_take_one_call(tracker: Tracker) -> None:
    ids = ["TASK-abc", "br-12ab", "my-proj-a1.2", "TASK-abc"]
    assert tracker.beads().statuses(ids) == {"TASK-abc": "closed", "br-12ab": "open", "my-proj-a1.2": "in_progress"}
    assert tracker.calls() == [["show", "TASK-abc", "br-12ab", "my-proj-a1.2", "--json"]]
    assert tracker.beads().statuses([]) == {}


def test_a_bead_that_is_missing_does_not_hide_the_others(tracker: Tracker) -> None:
    found = tracker.beads().statuses(["TASK-abc", "TASK-gone", "br-12ab"])
    assert found == {"TASK-abc": "closed", "br-12ab": "open"}


def test_a_bead_is_closed_and_its_status_set(tracker: Tracker) -> None:
    beads = tracker.beads()
    beads.close("br-12ab", "--force\nall checks pass")
    assert tracker.status("br-12ab") == "closed"
    assert tracker.calls()[-1] == ["close", "br-12ab", "--reason=--force all checks pass", "--json"]
    beads.set_status("TASK-abc", "in_progress")
    assert tracker.status("TASK-abc") == "in_progress"


@pytest.mark.parametrize("bad", ["", "-rf", "--all", "TASK", "TASK-", "a b-c", "a-b;c", "a-b\n", "../a-b", "1-2"])
def test_an_id_can_never_be_an_option(tracker: Tracker, bad: str) -> None:
    beads = tracker.beads()
    for call in (beads.show, lambda i: beads.close(i, "x"), lambda i: beads.set_status(i, "open")):
        with pytest.raises(UsageError):
            call(bad)
    with pytest.raises(UsageError):
        beads.statuses(["TASK-abc", bad])
    assert not (tracker.root / ".beads-calls").exists()


def test_a_status_that_does_not_exist_is_refused(tracker: Tracker) -> None:
    with pytest.raises(UsageError):
        tracker.beads().set_status("TASK-abc", "--done")


def test_the_tools_own_words_are_passed_on(tracker: Tracker) -> None:
    with pytest.raises(NoSuchBead) as caught:
        tracker.beads().show("TASK-gone")
    assert str(caught.value) == "br: Issue not found: TASK-gone"
    assert caught.value.hint == "Run: br list"
    shutil.rmtree(tracker.root / ".beads")
    with pytest.raises(SetupError) as other:
        tracker.beads(BEADS_FAULT="noise").show("TASK-abc")
    assert str(other.value) == "br: Beads not initialized"
    assert other.value.hint == "Run: br init"


@pytest.mark.parametrize(
    ("fault", "kind", "words"),
    [
        ("garbage", BadData, "did not return beads as JSON"),
        ("null", BadData, "did not return beads as JSON"),
        ("crash", SetupError, "exit code 101: thread 'main' panicked"),
        ("silent", SetupError, "failed with exit code 3"),
    ],
)
def test_a_tool_that_misbehaves_is_named(tracker: Tracker, fault: str, kind: type[RalphError], words: str) -> None:
    with pytest.raises(kind) as caught:
        tracker.beads(BEADS_FAULT=fault).show("TASK-abc")
    assert words in str(caught.value)
    assert str(caught.value).startswith("br ")
    assert "\x1b" not in str(caught.value)


def test_a_tool_that_hangs_is_ended(tracker: Tracker) -> None:
    with pytest.raises(SetupError) as caught:
        tracker.beads(timeout=0.3, BEADS_FAULT="hang").show("TASK-abc")
    assert "did not respond within 0.3 seconds" in str(caught.value)
    assert caught.value.hint


def test_a_tool_that_is_gone_is_an_error_with_its_name(tracker: Tracker) -> None:
    beads = tracker.beads()
    (tracker.bin / "br").unlink()
    with pytest.raises(SetupError):
        beads.show("TASK-abc")


def test_br_is_preferred_and_the_other_one_can_be_asked_for(tracker: Tracker) -> None:
    def found(tool: str = "") -> str | None:
        beads = find({"PATH": str(tracker.bin)}, tracker.root, tool)
        return beads.name if beads else None

    assert (found(), found("bd")) == ("br", None)
    tracker.install("bd")
    assert (found(), found("bd")) == ("br", "bd")
    (tracker.bin / "br").unlink()
    assert (found(), found("br")) == ("bd", None)
    (tracker.bin / "bd").chmod(0o644)
    assert found() is None
    assert find({}, tracker.root) is None
