from __future__ import annotations

import json
import os
import subprocess
from argparse import Namespace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from ralph.archive.archive import Archived, Dates, archive, summary
from ralph.archive.restore import restore
from ralph.core.changes import SetFields
from ralph.core.errors import BadData, LockHeld, PlanError, RalphError, SetupError, UsageError
from ralph.core.plan import Plan, State, Story
from ralph.core.ports import PlanRef
from ralph.core.review import Review, ReviewStatus
from ralph.host.locks import Lock, Owner
from ralph.plans.registry import layout
from ralph.setup.scaffold import Request, start_plan
from ralph.state.places import plan_state
from ralph.workspace.archives import MANIFEST, Manifest, archives, find_archive, shelves
from ralph.workspace.find import OpenPlan, open_plan

NOW = 1_800_000_000.0
STAMP = "2027-01-15-080000"
DATES = Dates("2026-12-01T10:00:00+01:00", "2026-12-24T18:00:00+01:00", "2027-01-15T08:00:00Z")
OWN_FOLDER = ["plan.md", "tasks.json", "feature"]
SHARED = ["steps", "spec.md", "ralph"]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    folder.mkdir()
    return folder


def start(root: Path, kind: str) -> PlanRef:
    wanted = Request(
        root=root,
        layout="tasks.json" if kind == "ralph" else kind,
        name={"tasks.json": "login", "feature": "login", "plan.md": "1"}.get(kind, ""),
        ralph_dir="ralph" if kind == "ralph" else "",
        now=NOW - 5_000_000,
    )
    ref = start_plan(wanted, os.environ).ref
    where = layout(ref.layout).locations(ref)
    if where.progress:
        where.progress.write_text("what happened\n")
    if where.specs:
        where.specs.mkdir(exist_ok=True)
        (where.specs / "api.md").write_text("the api\n")
    return ref


def opened(ref: PlanRef) -> OpenPlan:
    is_ralph_dir = ref.layout == "tasks.json" and ref.folder.parent != ref.root / ".ralph"
    args = Namespace(project_dir=str(ref.root), layout=ref.layout, ralph_dir=str(ref.folder) if is_ralph_dir else None)
    return open_plan(args)


def put_away(ref: PlanRef, *, label: str = "", keep: bool = False) -> Archived:
    return archive(opened(ref), DATES, label=label, keep=keep, now=NOW, env=os.environ)


def content(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "archive" not in path.relative_to(folder).as_posix()
    }


@pytest.mark.parametrize("kind", [*OWN_FOLDER, *SHARED])
def test_an_archive_holds_the_plan_and_what_belongs_to_it(root: Path, kind: str) -> None:
    ref = start(root, kind)
    where = layout(ref.layout).locations(ref)
    before = content(root)

    done = put_away(ref)

    assert done.path.parent == where.archive
    assert done.path.name.startswith(f"{STAMP}-")
    kept = {path.name: path.read_bytes() for path in done.path.rglob("*") if path.is_file()}
    for path in (where.plan, where.requirements, where.progress, where.prompt, where.readme, where.learnings):
        if path is not None:
            assert kept[path.name] == before[path.relative_to(root).as_posix()]
    if where.specs:
        assert (done.path / "specs" / "api.md").read_text() == "the api\n"
    assert "Stories done: 0 of " in (done.path / "summary.md").read_text()


@pytest.mark.parametrize("kind", OWN_FOLDER)
def test_a_plans_own_folder_is_gone_afterwards(root: Path, kind: str) -> None:
    ref = start(root, kind)

    put_away(ref)

    assert not ref.folder.exists()
    assert layout(ref.layout).detect(root) == []
    assert (root / ".ralph" / "config.yaml").exists()


@pytest.mark.parametrize("kind", SHARED)
def test_a_shared_place_starts_afresh(root: Path, kind: str) -> None:
    ref = start(root, kind)
    where = layout(ref.layout).locations(ref)
    assert where.prompt is not None
    where.prompt.write_text("my own prompt\n")
    store = opened(ref)
    store.store.save(store.loaded, [SetFields(store.plan.stories[0].id, {"title": "Something of mine"})])

    put_away(ref)

    assert "Something of mine" not in ref.path.read_text()
    assert opened(ref).plan.stories
    assert where.prompt.read_text() == "my own prompt\n"
    if where.progress:
        assert where.progress.read_text() != "what happened\n"


def test_the_commands_of_a_fresh_plan_are_trusted(root: Path) -> None:
    from ralph.workspace.trust import ensure_trusted, gather

    ref = start(root, "ralph")
    (root / "go.mod").write_text("module x\n")

    put_away(ref)

    fresh = opened(ref)
    commands = gather(root, fresh.settings, [(ref.path, fresh.plan)])
    assert [command.command for command in commands] == ["go test ./...", "go vet ./..."]
    ensure_trusted(root, commands, os.environ)


@pytest.mark.parametrize("kind", OWN_FOLDER)
def test_keep_starts_the_folder_afresh_but_for_the_prompt(root: Path, kind: str) -> None:
    ref = start(root, kind)
    where = layout(ref.layout).locations(ref)
    (ref.folder / "my-notes.md").write_text("mine\n")
    if where.prompt and where.prompt.is_relative_to(ref.folder):
        where.prompt.write_text("my own prompt\n")

    done = put_away(ref, keep=True)

    assert opened(ref).plan.stories
    assert not (ref.folder / "my-notes.md").exists()
    assert (done.path / "my-notes.md").read_text() == "mine\n"
    if where.prompt and where.prompt.is_relative_to(ref.folder):
        assert where.prompt.read_text() == "my own prompt\n"


@pytest.mark.parametrize("kind", [*OWN_FOLDER, *SHARED])
def test_what_comes_back_is_what_was_put_away(root: Path, kind: str) -> None:
    ref = start(root, kind)
    before = content(root)
    done = put_away(ref)

    restored = restore(root, find_archive(root, done.path.name, [ref]), NOW, os.environ)

    assert restored.ref == ref
    assert content(root) == before
    assert done.path.is_dir()


@pytest.mark.parametrize("kind", [*OWN_FOLDER, *SHARED])
def test_nothing_in_use_is_overwritten_by_a_restore(root: Path, kind: str) -> None:
    ref = start(root, kind)
    done = put_away(ref)
    if not ref.path.exists():
        start(root, kind)
    one = opened(ref)
    one.store.save(one.loaded, [SetFields(one.plan.stories[0].id, {"title": "New work"})])
    before = content(root)

    with pytest.raises(SetupError, match="would be overwritten"):
        restore(root, find_archive(root, done.path.name, [ref]), NOW, os.environ)

    assert content(root) == before


def test_templates_nobody_has_touched_make_room(root: Path) -> None:
    ref = start(root, "tasks.json")
    ref.path.write_text(ref.path.read_text().replace("Replace this example", "My story"))
    done = put_away(ref)
    start_plan(Request(root=root, name="login", now=NOW + 99_999), os.environ)

    restore(root, find_archive(root, "login"), NOW, os.environ)

    assert "My story" in ref.path.read_text()
    assert content(ref.folder)["tasks.json"] == (done.path / "tasks.json").read_bytes()
    assert [path.name for path in (root / ".ralph").iterdir() if path.name.startswith(".")] == []


def test_what_is_kept_beside_the_plan_goes_and_comes_back_with_it(root: Path) -> None:
    ref = start(root, "tasks.json")
    one = opened(ref)
    one.store.save(one.loaded, [SetFields("US-001", {"attempts": 3, "state": State.FAILED})])

    put_away(ref)

    assert not (plan_state(ref, os.environ) / "beside.json").exists()
    start(root, "tasks.json")
    assert opened(ref).plan.stories[0].attempts == 0
    put_away(ref, label="second")
    restore(root, find_archive(root, "login"), NOW, os.environ)
    assert opened(ref).plan.stories[0].attempts == 3
    assert opened(ref).plan.stories[0].state is State.FAILED


def test_an_archive_is_never_overwritten(root: Path) -> None:
    names = []
    for _ in range(3):
        names.append(put_away(start(root, "tasks.json")).path.name)

    assert names == [f"{STAMP}-login", f"{STAMP}-login-2", f"{STAMP}-login-3"]


def test_the_number_of_an_archived_prd_is_not_used_again(root: Path) -> None:
    put_away(start(root, "plan.md"))

    assert start_plan(Request(root=root, layout="plan.md", now=NOW), os.environ).ref.folder.name == "PRD-2"


def test_the_label_names_the_archive(root: Path) -> None:
    assert put_away(start(root, "tasks.json"), label="first-try").path.name == f"{STAMP}-first-try"


@pytest.mark.parametrize("label", ["../x", "/x", "a/b", "a\nb", ".x", "x" * 300, "nul", "a b"])
def test_a_label_cannot_leave_the_folder(root: Path, label: str) -> None:
    ref = start(root, "tasks.json")
    before = content(root)

    with pytest.raises(UsageError):
        put_away(ref, label=label)

    assert content(root) == before


@pytest.mark.parametrize("name", ["../../etc", "/etc", "a/b", "", "..", "x\0y", "nope"])
def test_the_name_of_an_archive_cannot_leave_the_folder(root: Path, name: str) -> None:
    put_away(start(root, "tasks.json"))

    with pytest.raises(UsageError):
        find_archive(root, name)


def test_a_short_name_must_be_clear(root: Path) -> None:
    put_away(start(root, "tasks.json"), label="a-login")
    put_away(start(root, "tasks.json"), label="b-login")

    assert find_archive(root, "a-login").name == f"{STAMP}-a-login"
    with pytest.raises(UsageError, match="2 archives match"):
        find_archive(root, "login")


def test_files_of_every_kind_survive(root: Path) -> None:
    ref = start(root, "tasks.json")
    specs = ref.folder / "specs" / "deep"
    specs.mkdir(parents=True)
    (specs / "run.sh").write_bytes(b"#!/bin/sh\n")
    (specs / "run.sh").chmod(0o755)
    (specs / "link").symlink_to("../../prd.md")
    (specs / "broken").symlink_to("/nowhere/at/all")
    (ref.folder / "summary.md").write_text("my own summary\n")
    (ref.folder / "bytes\nname").write_bytes(bytes(range(256)))

    done = put_away(ref)

    kept = done.path / "specs" / "deep"
    assert os.access(kept / "run.sh", os.X_OK)
    assert (kept / "link").readlink() == Path("../../prd.md")
    assert (kept / "broken").readlink() == Path("/nowhere/at/all")
    assert (done.path / "summary.md").read_text() == "my own summary\n"
    assert "Stories done" in (done.path / "summary-2.md").read_text()
    assert (done.path / "bytes\nname").read_bytes() == bytes(range(256))
    restore(root, find_archive(root, "login"), NOW, os.environ)
    assert (specs / "link").readlink() == Path("../../prd.md")
    assert (ref.folder / "summary.md").read_text() == "my own summary\n"
    assert not (ref.folder / "summary-2.md").exists()


def test_a_pipe_in_the_folder_stops_before_anything_is_moved(root: Path) -> None:
    ref = start(root, "tasks.json")
    os.mkfifo(ref.folder / "zzz")

    with pytest.raises(BadData, match="neither a file nor a link"):
        put_away(ref)

    assert (ref.folder / "tasks.json").is_file()
    assert list((root / ".ralph" / "archive").iterdir()) == []


def test_a_full_disk_changes_nothing(root: Path) -> None:
    import resource

    ref = start(root, "tasks.json")
    (ref.folder / "zzz.log").write_bytes(b"x" * 50_000)
    before = content(root)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, limits[1]))
    try:
        with pytest.raises(SetupError, match="nothing was changed"):
            put_away(ref)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    assert content(root) == before
    assert list((root / ".ralph" / "archive").iterdir()) == []


def test_a_broken_plan_is_not_archived(root: Path) -> None:
    ref = start(root, "tasks.json")
    ref.path.write_text("{")

    with pytest.raises(PlanError):
        put_away(ref)

    assert not (root / ".ralph" / "archive").exists()


def test_an_archive_folder_that_leads_out_is_refused(root: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    ref = start(root, "tasks.json")
    (root / ".ralph" / "archive").symlink_to(outside)

    with pytest.raises(SetupError, match="points outside"):
        put_away(ref)

    assert list(outside.iterdir()) == []
    assert archives(root) == []
    assert root / ".ralph" / "archive" not in shelves(root)


def test_a_plan_that_a_run_works_on_stays(root: Path) -> None:
    ref = start(root, "tasks.json")
    with (
        Lock(plan_state(ref, os.environ) / "run.lock").held_by(Owner.here("r1")),
        pytest.raises(LockHeld, match="r1"),
    ):
        put_away(ref)


def test_an_agent_in_a_loop_cannot_put_its_plan_away(root: Path) -> None:
    ref = start(root, "tasks.json")
    with pytest.raises(RalphError, match="an agent in a loop"):
        archive(opened(ref), DATES, label="", keep=False, now=NOW, env={**os.environ, "RALPH_LOOP": "1"})


@pytest.mark.parametrize(
    "changes",
    [
        {"folder": "../outside"},
        {"folder": "/tmp"},
        {"folder": ".git/hooks"},
        {"folder": ".ralph/other"},
        {"folder": ""},
        {"name": "../x"},
        {"name": "archive"},
        {"layout": "nonsense"},
        {"summary": "tasks.json"},
        {"version": 2},
        {"total": "many"},
    ],
)
def test_a_manifest_somebody_edited_cannot_lead_a_restore_astray(root: Path, changes: dict[str, object]) -> None:
    done = put_away(start(root, "tasks.json"))
    manifest = done.path / MANIFEST
    manifest.write_text(json.dumps(json.loads(manifest.read_text()) | changes))
    before = content(root.parent)

    with pytest.raises(RalphError):
        restore(root, find_archive(root, "login"), NOW, os.environ)

    assert content(root.parent) == before


def test_archives_of_other_tools_are_listed_but_not_guessed_at(root: Path) -> None:
    other = root / ".ralph" / "archive" / "2025-01-01-old"
    other.mkdir(parents=True)
    (other / "prd.json").write_text("{}")
    (root / ".ralph" / "archive" / "link").symlink_to("/")
    (root / ".ralph" / "archive" / ".new-x").mkdir()

    found = archives(root)

    assert [(one.name, one.manifest) for one in found] == [("2025-01-01-old", None)]
    with pytest.raises(BadData, match="does not say"):
        restore(root, found[0], NOW, os.environ)


def test_the_summary_tells_states_reviews_and_dates() -> None:
    plan = Plan(
        name="Shop | login",
        branch="ralph/login",
        stories=(
            Story(id="US-1", title="One | two\nthree", state=State.DONE, review=Review(ReviewStatus.APPROVED, 2)),
            Story(id="US-2", title="Four", state=State.FAILED, attempts=5),
            Story(
                id="US-3", title="\x1b[31mFive", review=Review(ReviewStatus.APPROVED, 5, "[AUTO-APPROVED AT CAP] slow")
            ),
        ),
    )

    text = summary(plan, "tasks.json", DATES)

    assert "- Stories done: 1 of 3\n- Stories todo: 1\n- Stories failed: 1\n" in text
    assert "- Started: 2026-12-01T10:00:00+01:00\n- Last change: 2026-12-24T18:00:00+01:00\n" in text
    assert "- Reviews: 7 total, up to 5 for one story\n" in text
    assert "| US-1 | One \\| two three | done | 2 | 0 |\n" in text
    assert "| US-2 | Four | failed | 0 | 5 |\n" in text
    assert "- US-3: [AUTO-APPROVED AT CAP] slow\n" in text
    assert "\x1b" not in text


def test_a_manifest_is_what_it_was_after_a_round_trip(root: Path) -> None:
    done = put_away(start(root, "feature"))

    assert (
        archives(root)[0].manifest
        == done.manifest
        == Manifest(
            layout="feature",
            name="login",
            folder=".ralph/login",
            created=datetime.fromtimestamp(NOW, UTC).isoformat(),
            done=0,
            total=1,
        )
    )


def test_a_killed_archive_leaves_a_complete_copy_or_the_plan(root: Path) -> None:
    """Killed at any system call that changes names, the plan is in its place, or complete in the archive."""
    import sys

    script = (
        "import os, sys, signal\n"
        "sys.argv = ['ralph', 'archive', '--no-commit']\n"
        "left = int(os.environ['KILL_AFTER'])\n"
        "def hear(event, args):\n"
        "    global left\n"
        "    made = event == 'open' and args[2] & os.O_CREAT\n"
        "    if made or event in ('os.rename', 'os.remove', 'os.rmdir', 'os.mkdir'):\n"
        "        left -= 1\n"
        "        if left < 0: os.kill(os.getpid(), signal.SIGKILL)\n"
        "from ralph.cli.main import main\n"
        "import ralph.cli.archive\n"
        "sys.addaudithook(hear)\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    ref = start(root, "tasks.json")
    saved = content(ref.folder)
    outcomes = set()
    for count in range(0, 60, 3):
        env = {**os.environ, "KILL_AFTER": str(count)}
        done = subprocess.run([sys.executable, "-c", script], cwd=root, env=env, check=False, capture_output=True)
        outcomes.add(done.returncode)
        shelved = [content(one.path) for one in archives(root)]
        complete = any(all(one.get(name) == data for name, data in saved.items()) for one in shelved)
        in_place = ref.folder.exists() and content(ref.folder) == saved
        assert in_place or complete, count
        for name, data in saved.items():  # back to the beginning
            (ref.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (ref.folder / name).write_bytes(data)
        if done.returncode == 0:
            break
    assert outcomes == {-9, 0}
