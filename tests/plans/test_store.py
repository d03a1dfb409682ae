"""The store: what the format can say is in the file, the rest beside it, and nothing is written after a failed read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ralph.core.changes import AddStory, RemoveStory, SetFields
from ralph.core.errors import IllegalChange, PlanError
from ralph.core.plan import State, Story
from ralph.core.ports import PlanRef
from ralph.core.review import Review, ReviewStatus
from ralph.plans.registry import LAYOUTS as REGISTRY
from ralph.plans.registry import layout
from ralph.plans.store import PlanStore
from support.plans import plan_name, sample

LAYOUTS = REGISTRY.built_in()


def open_store(root: Path, name: str, stories: int = 4) -> PlanStore:
    found = layout(name)
    ref = found.refer(root, plan_name(name))
    ref.path.parent.mkdir(parents=True, exist_ok=True)
    ref.path.write_bytes(sample(name, stories))
    return PlanStore(ref, found, root / "state" / "beside.json")


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("state", [State.FAILED, State.BLOCKED])
def test_every_layout_keeps_every_state(tmp_path: Path, name: str, state: State) -> None:
    store = open_store(tmp_path, name)
    loaded = store.load()
    target = next(s for s in loaded.plan.stories if s.is_open)
    store.save(loaded, [SetFields(target.id, {"state": state})])
    again = store.load()
    assert again.plan.story(target.id).state is state  # type: ignore[union-attr]
    store.save(again, [SetFields(target.id, {"state": State.TODO})])
    assert store.load().plan.story(target.id).state is State.TODO  # type: ignore[union-attr]


@pytest.mark.parametrize("name", LAYOUTS)
def test_attempts_and_reviews_are_kept_in_every_layout(tmp_path: Path, name: str) -> None:
    store = open_store(tmp_path, name)
    loaded = store.load()
    target = next(s for s in loaded.plan.stories if s.state is State.TODO)
    review = Review(ReviewStatus.CHANGES_REQUESTED, 2, "the limit is off by one")
    store.save(loaded, [SetFields(target.id, {"attempts": 3, "review": review})])
    found = store.load().plan.story(target.id)
    assert found
    assert (found.attempts, found.review) == (3, review)


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_story_the_file_calls_done_is_done_whatever_stands_beside_it(tmp_path: Path, name: str) -> None:
    store = open_store(tmp_path, name)
    loaded = store.load()
    target = next(s for s in loaded.plan.stories if s.is_open)
    loaded = store.save(loaded, [SetFields(target.id, {"state": State.BLOCKED})])
    by_hand = store.layout.edit(loaded.source, [SetFields(target.id, {"state": State.DONE, "notes": "by hand"})])
    store.ref.path.write_bytes(by_hand)
    assert store.load().plan.story(target.id).is_done  # type: ignore[union-attr]


@pytest.mark.parametrize("name", LAYOUTS)
def test_stories_come_and_go_with_what_stands_beside_them(tmp_path: Path, name: str) -> None:
    store = open_store(tmp_path, name)
    loaded = store.load()
    new_id = {"plan.md": "US-900", "spec.md": "9.1"}.get(name, "N-900")
    new = Story(id=new_id, title="New", criteria=("it is there",), attempts=2, priority=1)
    loaded = store.save(loaded, [AddStory(new)])
    found = store.load().plan.story(new_id)
    assert found
    assert (found.title, found.criteria, found.attempts) == ("New", ("it is there",), 2)
    store.save(store.load(), [RemoveStory(new_id)])
    assert store.load().plan.story(new_id) is None
    assert store.load().sidecar.stories.get(new_id) is None


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_broken_plan_is_never_written(tmp_path: Path, name: str) -> None:
    store = open_store(tmp_path, name)
    loaded = store.load()
    broken = b"\x00\xff{"
    store.ref.path.write_bytes(broken)
    with pytest.raises(PlanError):
        store.load()
    with pytest.raises(IllegalChange, match="has changed since it was read"):
        store.save(loaded, [SetFields(loaded.plan.stories[-1].id, {"notes": "x"})])
    assert store.ref.path.read_bytes() == broken


def test_a_change_by_somebody_else_is_not_overwritten(tmp_path: Path) -> None:
    store = open_store(tmp_path, "tasks.json")
    loaded = store.load()
    store.ref.path.write_bytes(loaded.source + b"\n")
    with pytest.raises(IllegalChange, match="has changed since it was read"):
        store.save(loaded, [SetFields(loaded.plan.stories[-1].id, {"title": "x"})])


def test_a_damaged_sidecar_is_kept_aside_and_reported(tmp_path: Path) -> None:
    store = open_store(tmp_path, "plan.md")
    beside = tmp_path / "state" / "beside.json"
    beside.parent.mkdir()
    beside.write_bytes(b'{"version": 1, "stor')
    notices = store.load().notices
    assert "was damaged" in notices[0]
    [aside] = beside.parent.glob("beside.json.corrupt-*")
    assert aside.read_bytes() == b'{"version": 1, "stor'


@pytest.mark.parametrize("make", ["fifo", "link-out", "folder", "missing", "huge"])
def test_what_is_no_plain_file_in_the_workspace_is_refused_without_hanging(tmp_path: Path, make: str) -> None:
    root = tmp_path / "ws"
    store = open_store(root, "tasks.json")
    path = store.ref.path
    path.unlink()
    outside = tmp_path / "outside.json"
    outside.write_bytes(sample("tasks.json", 2))
    match make:
        case "fifo":
            os.mkfifo(path)
        case "link-out":
            path.symlink_to(outside)
        case "folder":
            path.mkdir()
        case "huge":
            with path.open("wb") as stream:
                stream.truncate(1 << 30)
    with pytest.raises(PlanError) as caught:
        store.load()
    assert caught.value.message


def test_a_link_inside_the_workspace_is_followed_and_stays_a_link(tmp_path: Path) -> None:
    store = open_store(tmp_path, "tasks.json")
    real = tmp_path / "real.json"
    store.ref.path.rename(real)
    store.ref.path.symlink_to(real)
    loaded = store.load()
    target = next(s for s in loaded.plan.stories if s.state is State.TODO)
    store.save(loaded, [SetFields(target.id, {"notes": "x"})])
    assert store.ref.path.is_symlink()
    assert b'"x"' in real.read_bytes()


@pytest.mark.parametrize("what", ["fifo", "link-out", "folder", "gone", "garbage"])
def test_writing_back_puts_the_plan_in_its_place_whatever_is_there(tmp_path: Path, what: str) -> None:
    root = tmp_path / "ws"
    store = open_store(root, "feature")
    loaded = store.load()
    path = store.ref.path
    precious = tmp_path / "precious"
    precious.write_text("mine")
    path.unlink()
    match what:
        case "fifo":
            os.mkfifo(path)
        case "link-out":
            path.symlink_to(precious)
        case "folder":
            path.mkdir()
            (path / "file").write_text("x")
        case "gone":
            path.parent.rename(tmp_path / "moved")
        case "garbage":
            path.write_bytes(b"{")
    store.write(loaded)
    assert path.read_bytes() == loaded.source
    assert not path.is_symlink()
    assert precious.read_text() == "mine"


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_reading_survives_a_dump(tmp_path: Path, name: str) -> None:
    store = open_store(tmp_path, name)
    loaded = store.load()
    target = next(s for s in loaded.plan.stories if s.is_open)
    loaded = store.planned(loaded, [SetFields(target.id, {"state": State.FAILED})], {target.id: "it never worked"})
    again = store.undump(store.dump(loaded))
    assert again.plan == loaded.plan
    assert again.sidecar.get(target.id).why == "it never worked"


def test_the_ref_is_only_a_name(tmp_path: Path) -> None:
    ref = layout("tasks.json").refer(tmp_path, "login")
    assert isinstance(ref, PlanRef)
    assert not ref.path.exists()
