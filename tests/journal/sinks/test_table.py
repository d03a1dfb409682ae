"""Which files each layout has, that they are no work, and real runs that keep them."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from ralph.config.schema import Config, Step
from ralph.core.events import Record
from ralph.core.ports import PlanRef
from ralph.core.verdict import Kind
from ralph.journal.records import read
from ralph.journal.sinks.sink import Sinks
from ralph.journal.sinks.table import make_sinks
from ralph.journal.sinks.workspace_files import WorkspaceFiles
from ralph.plans.registry import LAYOUTS, layout
from ralph.workspace.own_files import bookkeeping
from support.cli import Completed, ralph, ralph_here
from support.told_runs import RUN, ToldRun, files_in, seen

KEPT = {
    "plan.md": {
        ".ralph/PRD-1/progress.md",
        f".ralph/PRD-1/runs/run-{RUN}.log",
        ".ralph/sessions.log",
        ".ralph/activity.log",
        ".ralph/failure-context.log",
    },
    "tasks.json": {".ralph/shop/progress.txt"},
    "feature": {".ralph/shop/progress.txt"},
    "steps": {".ralph/run_state.json", ".ralph/aggregate.json", f".ralph/logs/run-{RUN}.log"},
    "spec.md": {".ralph/progress.md"},
    "snarktank": {"scripts/ralph/progress.txt"},
}
MARKERS = {
    "plan.md": {".ralph/current-story", ".ralph/.checkpoint"},
    "tasks.json": {".ralph-active"},
}
NAMES = {"plan.md": "1", "tasks.json": "shop", "feature": "shop", "steps": "", "spec.md": "", "snarktank": ""}


def reference(name: str, root: Path) -> PlanRef:
    return layout(name).refer(root, NAMES[name])


def sinks_for(name: str, root: Path) -> Sinks:
    ref = reference(name, root)
    return make_sinks(ref, layout(name).locations(ref), WorkspaceFiles(root))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


def tell(run: ToldRun) -> None:
    run.start(seen())
    run.iterate(1, Kind.REJECTED)
    run.iterate(2)
    run.stop()


def test_every_layout_is_meant() -> None:
    assert set(KEPT) == set(LAYOUTS.built_in())


@pytest.mark.parametrize("name", KEPT)
def test_a_layout_has_its_own_files_and_no_others(name: str, root: Path, tmp_path: Path) -> None:
    there: set[str] = set()

    def look(record: Record) -> None:
        there.update(files_in(root))

    sinks = sinks_for(name, root)
    tell(ToldRun(tmp_path / "state" / "events.jsonl", sinks, look))
    assert set(files_in(root)) == KEPT[name]
    assert there == KEPT[name] | MARKERS.get(name, set())
    assert sinks.failures == ()


@pytest.mark.parametrize("name", KEPT)
def test_what_the_sinks_write_is_bookkeeping_and_no_work(name: str, root: Path) -> None:
    ref = reference(name, root)
    ours = bookkeeping(ref, layout(name).locations(ref), root, Config())
    assert [path for path in KEPT[name] | MARKERS.get(name, set()) | rotated(name) if not ours.covers(path)] == []
    assert not ours.covers("src/main.py")


def rotated(name: str) -> set[str]:
    return {".ralph/failure-context.log.1"} if name == "plan.md" else set()


def test_the_marker_of_a_setup_step_is_bookkeeping(root: Path) -> None:
    ref = reference("steps", root)
    config = Config(steps=(Step(type="agent", config={"marker_file": "tools/.ready"}), Step(type="agent")))
    ours = bookkeeping(ref, layout("steps").locations(ref), root, config)
    assert ours.covers("tools/.ready")
    assert not ours.covers("tools/other")


@pytest.mark.parametrize("name", KEPT)
def test_git_ignores_what_a_run_leaves_behind_but_for_the_log_that_agents_read(name: str, root: Path) -> None:
    subprocess.run(["git", "init", "-q", root], check=True)
    assert ralph_here("init", NAMES[name], "--layout", name, cwd=root).code == 0
    log = {path for path in KEPT[name] if "/progress." in path}
    left = (KEPT[name] | MARKERS.get(name, set()) | rotated(name) | {".ralph/WAITING"}) - log
    left |= {".ralph/.setup_done"} if name == "steps" else set()
    told = subprocess.run(
        ["git", "check-ignore", "--stdin"], cwd=root, input="\n".join(left | log), text=True, stdout=-1, check=False
    )
    assert set(told.stdout.splitlines()) == left


def test_a_third_party_layout_has_a_progress_log(root: Path, tmp_path: Path) -> None:
    ref = PlanRef("of-their-own", root, root, root / "plan", "plan")
    sinks = make_sinks(ref, layout("feature").locations(ref), WorkspaceFiles(root))
    tell(ToldRun(tmp_path / "state" / "events.jsonl", sinks))
    assert list(files_in(root)) == ["progress.txt"]
    progress = files_in(root)["progress.txt"].decode()
    assert progress.startswith("# Progress: plan\n")
    assert re.findall("## (.*)", progress) == ["FAILED: iteration 1, US-001", "SUCCESS: iteration 2, US-001"]


@pytest.mark.parametrize("name", KEPT)
@pytest.mark.parametrize("trap", ["link", "broken link", "fifo", "folder"])
def test_a_trap_in_every_place_disturbs_nothing_and_leads_nowhere(
    trap: str, name: str, root: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "target").write_bytes(b"mine")
    places = KEPT[name] | MARKERS.get(name, set())
    for place in places:
        path = root / place
        path.parent.mkdir(parents=True, exist_ok=True)
        match trap:
            case "link":
                path.symlink_to(outside / "target")
            case "broken link":
                path.symlink_to(outside / path.name)
            case "fifo":
                os.mkfifo(path)
            case "folder":
                (path / "inner").mkdir(parents=True)
    sinks = sinks_for(name, root)
    tell(ToldRun(tmp_path / "state" / "events.jsonl", sinks))
    assert files_in(outside) == {"target": b"mine"}
    assert {failure.partition(" ")[0] for failure in sinks.failures} == places


def test_a_workspace_that_is_gone_disturbs_nothing(root: Path, tmp_path: Path) -> None:
    for number, name in enumerate(KEPT):
        sinks = sinks_for(name, root / "gone")
        tell(ToldRun(tmp_path / f"state{number}" / "events.jsonl", sinks))
        assert sinks.failures
    assert files_in(root) == {}


CONFIG = """\
agent: {name: scripted, script: .ralph/script.yaml}
checks:
  - {name: words, command: "! grep -rq BROKEN src"}
"""
SCRIPT = """\
stories:
  "*":
    - implement:
        - run: cp -r .ralph-active .ralph/current-story .ralph/.checkpoint .ralph/run_state.json src/ 2>/dev/null; true
        - write: {path: src/word.txt, text: "BROKEN\\n"}
        - claim: done
    - implement:
        - write: {path: src/word.txt, text: "word\\n"}
        - claim: done
"""
PLAN_MD = "# Plan\n\n- [ ] US-001: Say a word\n\n### US-001: Say a word\n\nIn a file.\n"
STEPS = {"project": "words", "tasks": [{"id": "US-001", "title": "Say a word", "status": "todo"}]}


class Workspace:
    """A repository with a plan of one story, whose first attempt fails. Nothing is ignored."""

    def __init__(self, folder: Path, plan: str, text: str) -> None:
        self.root = folder / "project"
        for name, content in {
            plan: text,
            ".ralph/config.yaml": CONFIG,
            ".ralph/script.yaml": SCRIPT,
            "src/zero.txt": "0\n",
        }.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        self.git("init", "-q", "-b", "main")
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "the project")

    def git(self, *arguments: str) -> str:
        identity = ("-c", "user.name=Ada", "-c", "user.email=ada@example.test")
        done = subprocess.run(["git", *identity, *arguments], cwd=self.root, capture_output=True, check=True, text=True)
        return done.stdout

    def run(self) -> Completed:
        return ralph("run", "--plain", "--trust", cwd=self.root)

    def changed_by(self, subject: str) -> set[str]:
        commit = self.git("log", "--format=%H", f"--grep={subject}").split()[0]
        return set(self.git("show", "--format=", "--name-only", commit).split())

    def journal(self) -> Path:
        return sorted(Path(os.environ["RALPH_STATE_HOME"]).glob("*/runs/*/events.jsonl"))[-1]

    def text(self, place: str) -> str:
        return next(self.root.glob(place)).read_text()


def plan_md(folder: Path) -> Workspace:
    return Workspace(folder, ".ralph/PRD-1/plan.md", PLAN_MD)


def test_no_log_and_no_marker_becomes_part_of_a_story_or_is_undone_with_it(tmp_path: Path) -> None:
    workspace = plan_md(tmp_path)
    done = workspace.run()
    assert done.code == 0, done
    assert workspace.changed_by("feat(US-001)") == {".ralph/PRD-1/plan.md", "src/word.txt"}
    rescue = workspace.git("for-each-ref", "--format=%(refname)", "refs/ralph/rescue").split()[0]
    assert set(workspace.git("diff", "--name-only", f"{rescue}^", rescue).split()) == {
        "src/word.txt",
        "src/current-story",
        "src/.checkpoint",
    }
    progress = workspace.text(".ralph/PRD-1/progress.md")
    assert (progress.count("## FAILED: iteration 1"), progress.count("## SUCCESS: iteration 2")) == (1, 1)
    log = workspace.text(".ralph/PRD-1/runs/run-*.log")
    assert (log.count("agent ended"), log.count("run ended: complete")) == (2, 1)
    assert workspace.text(".ralph/sessions.log").count("\n") == 1
    assert workspace.text(".ralph/activity.log").count("prompt_length=") == 2
    assert workspace.text(".ralph/failure-context.log").count("===") == 1


def test_the_state_of_a_steps_run_is_no_part_of_a_story_either(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path, ".ralph/prd.json", json.dumps(STEPS, indent=2))
    done = workspace.run()
    assert done.code == 0, done
    assert workspace.changed_by("feat(US-001)") == {".ralph/prd.json", "src/word.txt"}
    assert json.loads(workspace.text(".ralph/run_state.json"))["status"] == "completed"
    aggregate = json.loads(workspace.text(".ralph/aggregate.json"))
    assert (aggregate["calls"], aggregate["tasks"]["done"]) == (2, 1)
    rescue = workspace.git("for-each-ref", "--format=%(refname)", "refs/ralph/rescue").split()[0]
    working = json.loads(workspace.git("show", f"{rescue}:src/run_state.json"))
    assert (working["current_task"]["id"], working["loop_count"]) == ("US-001", 1)


@pytest.mark.parametrize("had_written", [True, False])
def test_a_killed_runs_last_entry_is_there_once_after_the_next_run(had_written: bool, tmp_path: Path) -> None:
    """Killed right after the record of the last iteration: before its entries were written, or after."""
    workspace = plan_md(tmp_path)
    assert workspace.run().code == 0
    places = [".ralph/PRD-1/progress.md", ".ralph/activity.log"]
    whole = [workspace.text(place) for place in places]
    journal = workspace.journal()
    lines = journal.read_bytes().splitlines(keepends=True)
    ended = [number for number, line in enumerate(lines, 1) if b'"type":"IterationEnded"' in line]
    journal.write_bytes(b"".join(lines[: ended[-1]]))
    journal.with_suffix(".head").unlink()
    if not had_written:
        for place, text in zip(places, whole, strict=True):
            entry = text.rindex("\n## ") if place.endswith(".md") else text.rindex("\n", 0, -1) + 1
            (workspace.root / place).write_text(text[:entry])
    assert workspace.run().code == 0
    assert [workspace.text(place) for place in places] == whole
    assert sum(1 for _ in read(journal)) == ended[-1] + 1


def test_a_run_says_what_it_could_not_write_and_ends_as_well_as_ever(tmp_path: Path) -> None:
    workspace = plan_md(tmp_path)
    (workspace.root / ".ralph" / "PRD-1" / "progress.md").mkdir()
    done = workspace.run()
    assert done.code == 0, done
    assert "PRD-1/progress.md could not be written: a folder is in its place" in done.out + done.err
