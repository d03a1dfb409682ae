"""A person works in the same tree while the loop runs, or before it restarts after a crash. Nothing is lost."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from ralph.core.events import AgentStarted, IterationEnded
from ralph.core.verdict import Kind
from support.loops import CONFIG, LoopProject, Scenario, finish, run_ralph, start_ralph
from support.processes import wait_for

BAD = "[{write: {path: src/one.txt, text: BROKEN}}, {sleep: 6}, {write: {path: src/more.txt, text: more}}, claim]"
QUICK = "[{write: {path: src/one.txt, text: one}}, claim]"
GOOD = "[{write: {path: src/one.txt, text: one}}, {sleep: 6}, {write: {path: src/more.txt, text: more}}, claim]"


def made(tmp_path: Path, script: str, config: str = CONFIG) -> LoopProject:
    text = f"stories:\n  US-001:\n    - implement: {script}\n"
    scenario = Scenario("tasks.json", {"US-001": "Say one"}, text, [], config=config)
    return LoopProject.make(tmp_path / "made", scenario)


def in_the_quiet(project: LoopProject) -> None:
    """Wait until the agent has written its first file and, for the client, the model is thinking."""
    wait_for((project.root / "src/one.txt").exists)
    time.sleep(2)


def commit_by_hand(project: LoopProject, name: str, text: str = "by hand\n") -> str:
    project.write(name, text)
    project.git("add", name)
    project.git("commit", "-q", "-m", f"by hand: {name}", "--", name)
    return project.git("rev-parse", "HEAD")


def ended(project: LoopProject) -> list[IterationEnded]:
    return [event for event in project.events() if isinstance(event, IterationEnded)]


@pytest.mark.parametrize("script", [BAD, GOOD], ids=["rejected", "accepted"])
def test_files_and_commits_of_a_person_stay(tmp_path: Path, script: str) -> None:
    project = made(tmp_path, script)
    project.git("branch", "other")
    process = start_ralph(project, "run", "--plain", "--once")
    in_the_quiet(project)
    commit = commit_by_hand(project, "docs/mine.md")
    project.git("branch", "-f", "other", commit)
    project.write("src/idea.txt", "half an idea\n")
    project.write("src/zero.txt", "changed by hand\n")
    done = finish(process)
    assert (project.root / "src/idea.txt").read_text() == "half an idea\n", done.out
    assert (project.root / "src/zero.txt").read_text() == "changed by hand\n", done.out
    assert (project.root / "docs/mine.md").read_text() == "by hand\n"
    assert commit in project.git("rev-list", "main").splitlines()
    assert sorted(project.git("status", "--porcelain", "--", "src", "docs").splitlines()) == [
        " M src/zero.txt",
        "?? src/idea.txt",
    ]
    assert "src/idea.txt" in done.out
    assert project.git("rev-parse", "other") == commit, done.out
    assert "refs/heads/other stays where it was moved to" in done.out
    assert f"kept commit {commit[:9]} on main" in done.out
    (event,) = ended(project)
    if script is BAD:
        assert event.kind is Kind.REJECTED
        assert not (project.root / "src/one.txt").exists()
        assert "feat(" not in project.git("log", "--format=%s", "main")
    else:
        assert event.kind is Kind.ACCEPTED, done.out
        assert "src/idea.txt" not in project.git("show", "--name-only", "--format=", event.commit)
        assert "docs/mine.md" not in project.git("show", "--name-only", "--format=", event.commit)
        assert project.git("show", f"{event.commit}:src/one.txt") == "one"


@pytest.mark.parametrize("script", [BAD, GOOD], ids=["rejected", "accepted"])
def test_settings_that_a_person_commits_during_a_session_stay(tmp_path: Path, script: str) -> None:
    project = made(tmp_path, script)
    settings = project.root / ".ralph/config.yaml"
    process = start_ralph(project, "run", "--plain", "--once")
    in_the_quiet(project)
    commit = commit_by_hand(project, ".ralph/config.yaml", f"{settings.read_text()}# by hand\n")
    done = finish(process)
    assert settings.read_text().endswith("# by hand\n"), done.out
    assert project.git("diff", "--name-only", commit, "main", "--", ".ralph/config.yaml") == ""
    assert "restored .ralph/config.yaml" not in done.out


def test_commits_of_the_agent_are_still_undone(tmp_path: Path) -> None:
    script = (
        "[{write: {path: src/one.txt, text: BROKEN}}, {run: git add -A src && git commit -qm mine}, {sleep: 3}, claim]"
    )
    project = made(tmp_path, script)
    done = run_ralph(project, "run", "--plain", "--once")
    (event,) = ended(project)
    assert event.kind is Kind.REJECTED, done.out
    assert project.git("rev-list", "--grep=^mine", "main") == ""
    assert project.git("show", f"{event.rescue}:src/one.txt") == "BROKEN"


def test_a_commit_on_top_of_the_agents_stops_the_run(tmp_path: Path) -> None:
    script = (
        "[{run: echo BROKEN > src/one.txt; git add src; git commit -qm mine -- src}, {sleep: 6}, "
        "{write: {path: src/more.txt, text: more}}, claim]"
    )
    project = made(tmp_path, script)
    process = start_ralph(project, "run", "--plain")
    in_the_quiet(project)
    commit = commit_by_hand(project, "docs/mine.md")
    done = finish(process)
    assert done.code == 3, done.out + done.err
    assert "there are commits on top of the agent's that may be yours" in done.out
    assert commit in project.git("rev-list", "main").splitlines()
    (event,) = ended(project)
    assert project.git("show", f"{event.rescue}:src/one.txt") == "BROKEN"
    assert "stopped: shared-tree" in done.out


def test_a_commit_while_the_checks_run_is_not_reverted(tmp_path: Path) -> None:
    project = made(tmp_path, "[{write: {path: src/one.txt, text: one}}, claim]")
    project.write("check.sh", "touch ../checking; sleep 3\n")
    project.git("commit", "-qam", "slow check")
    process = start_ralph(project, "run", "--plain", "--once", "--allow-broken-checks")
    wait_for(lambda: (project.root / "src/one.txt").exists() and (project.folder / "checking").exists())
    (project.folder / "checking").unlink(missing_ok=True)
    time.sleep(1.5)
    commit = commit_by_hand(project, "docs/mine.md")
    done = finish(process)
    (event,) = ended(project)
    assert event.kind is Kind.ACCEPTED, done.out
    assert project.git("show", "main:docs/mine.md") == "by hand", done.out
    assert project.git("show", "main:src/one.txt") == "one"
    assert commit in project.git("rev-list", "main").splitlines()


def kill(project: LoopProject, process: subprocess.Popen[bytes], *, also_agent: bool = True) -> None:
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    if also_agent:
        agents = [event for event in project.events() if isinstance(event, AgentStarted)]
        os.kill(agents[-1].pid, signal.SIGKILL)


def test_what_a_person_did_after_a_crash_stays_and_is_not_committed_with_the_story(tmp_path: Path) -> None:
    project = made(tmp_path, GOOD)
    process = start_ralph(project)
    in_the_quiet(project)
    kill(project, process)
    time.sleep(8)
    commit = commit_by_hand(project, "docs/mine.md")
    project.write("src/idea.txt", "half an idea\n")
    refused = run_ralph(project)
    assert refused.code == 78, refused.out
    assert "src/idea.txt" in refused.err
    assert "recovered: undid iteration 1 (US-001), which was interrupted" in refused.err + refused.out
    assert project.git("rev-parse", "main") == commit
    assert not (project.root / "src/one.txt").exists()
    assert (project.root / "src/idea.txt").read_text() == "half an idea\n"
    project.git("add", "src/idea.txt")
    project.git("commit", "-qm", "an idea", "--", "src/idea.txt")
    done = run_ralph(project)
    assert done.code == 0, done.out + done.err
    feat = ended(project)[-1].commit
    assert "src/idea.txt" not in project.git("show", "--name-only", "--format=", feat)
    assert commit in project.git("rev-list", "main").splitlines()


def test_what_a_person_does_right_after_a_crash_stays(tmp_path: Path) -> None:
    """The moment at which the watchdog has ended the agent is known."""
    project = made(tmp_path, GOOD)
    process = start_ralph(project)
    in_the_quiet(project)
    kill(project, process, also_agent=False)
    wait_for(lambda: any(project.state.glob("*/runs/*/agents-ended")))
    time.sleep(0.2)
    commit = commit_by_hand(project, "docs/mine.md")
    project.write("src/idea.txt", "half an idea\n")
    project.write("src/zero.txt", "changed by hand\n")
    refused = run_ralph(project)
    assert refused.code == 78, refused.out + refused.err
    assert project.git("rev-parse", "main") == commit
    assert (project.root / "src/idea.txt").read_text() == "half an idea\n"
    assert (project.root / "src/zero.txt").read_text() == "changed by hand\n"
    assert not (project.root / "src/one.txt").exists()


def test_a_commit_beside_an_agent_that_outlived_its_loop_is_not_removed(tmp_path: Path) -> None:
    project = made(tmp_path, GOOD.replace("sleep: 6", "sleep: 60"))
    process = start_ralph(project)
    in_the_quiet(project)
    kill(project, process, also_agent=False)
    commit = commit_by_hand(project, "docs/mine.md")
    asked = run_ralph(project)
    assert asked.code == 3, asked.out + asked.err
    assert commit[:9] in asked.err
    assert commit in project.git("rev-list", "main").splitlines()
    assert project.processes() == []
    rescue = ended(project)[-1].rescue
    assert project.git("show", f"{rescue}:src/one.txt") == "one"
    assert rescue in asked.err
    assert not (project.root / "src/one.txt").exists()
    project.write(".ralph/script.yaml", f"stories:\n  US-001:\n    - implement: {QUICK}\n")
    project.git("commit", "-qm", "script", "--", ".ralph/script.yaml")
    again = run_ralph(project)
    assert again.code == 0, again.out + again.err
    assert commit in project.git("rev-list", "main").splitlines()


def test_edits_of_the_plan_by_a_person_are_merged(tmp_path: Path) -> None:
    project = made(tmp_path, GOOD)
    process = start_ralph(project, "run", "--plain", "--once")
    in_the_quiet(project)
    project.plan.write_text(project.plan.read_text().replace("the word is there", "the word is there, twice"))
    done = finish(process)
    (event,) = ended(project)
    assert event.kind is Kind.ACCEPTED, done.out
    assert "your changes to the plan during the iteration are kept" in done.out
    text = project.plan.read_text()
    assert "the word is there, twice" in text
    assert '"passes": true' in text
    assert "restored" not in done.out


def test_settings_that_a_person_edits_meanwhile_are_restored_and_said_to_be_so_once(tmp_path: Path) -> None:
    project = made(tmp_path, GOOD)
    settings = (project.root / ".ralph/config.yaml").read_text()
    process = start_ralph(project, "run", "--plain", "--once")
    in_the_quiet(project)
    project.write(".ralph/config.yaml", f"{settings}# mine\n")
    done = finish(process)
    assert (project.root / ".ralph/config.yaml").read_text() == settings
    [notice] = [text for text in ended(project)[0].notices if "config.yaml" in text]
    copy = notice.rpartition("; the changed version is in ")[2]
    assert Path(copy).read_text() == f"{settings}# mine\n"
    assert copy in done.out, "on the screen in full"


@pytest.mark.parametrize("script", [BAD, GOOD], ids=["rejected", "accepted"])
def test_every_save_of_an_editor_is_kept(tmp_path: Path, script: str) -> None:
    """A person saves the plan many times, by a rename as most editors do, until the run is over."""
    project = made(tmp_path, script.replace("sleep: 6", "sleep: 3"))
    process = start_ralph(project, "run", "--plain", "--once")
    wait_for((project.root / "src/one.txt").exists)
    saved = 0
    while process.poll() is None:
        text = project.plan.read_text()
        new = text.replace('"description": "Words.', f'"description": "Words. save{saved} ')
        temporary = project.plan.with_name("tasks.json~")
        temporary.write_text(new)
        temporary.replace(project.plan)
        saved += 1
        time.sleep(0.05)
    finish(process)
    kept = project.plan.read_text() + "".join(path.read_text() for path in project.state.glob("*/runs/*/plan-*.json"))
    missing = [n for n in range(saved) if f"save{n} " not in kept.replace('"', " ").replace("Words", " ")]
    assert saved > 30
    assert len(missing) <= 1, (saved, missing)
