"""`ralph stream`: several plans at once, each in its own worktree, merged by a person after proof."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from ralph.guard.decision import judge_command
from support.cli import ralph
from support.seed_projects import SeedProject
from support.terminals import Terminal

WORK = 'mkdir -p src && echo "$1" > "src/$1.txt"\n'
CLAIM = """echo '{"claim": "done"}' > "$RALPH_REQUEST_FILE"\n"""


def plan(*stories: str) -> str:
    boxes = "".join(f"- [ ] {name}: Build {name}\n" for name in stories)
    blocks = "".join(f"\n### {name}: Build {name}\n\nVerify: `test -s src/{name}.txt`\n" for name in stories)
    return f"# Shop\n\n## Stories\n\n{boxes}{blocks}"


def shop(tmp_path: Path, agent: str = WORK + CLAIM, **config: object) -> SeedProject:
    files = {f".ralph/PRD-{n}/plan.md": plan(f"US-{n}01") for n in (1, 2)}
    return SeedProject(tmp_path, files, agent, config)


def stream(project: SeedProject, *words: str, code: int = 0) -> str:
    done = project.ralph("stream", *words)
    assert done.code == code, done.out + done.err
    return done.out + done.err


def build(project: SeedProject, name: str) -> str:
    return stream(project, "build", name, "--plain", "--trust")


def listed(project: SeedProject) -> dict[str, dict[str, object]]:
    return {row["stream"]: row for row in json.loads(stream(project, "list", "--json"))}


def until(holds: Callable[[], object], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "timed out"
        time.sleep(0.05)


def start(project: SeedProject, name: str) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-m", "ralph", "stream", "build", name, "--plain", "--trust"]
    return subprocess.Popen(words, cwd=project.root, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def test_a_stream_is_a_worktree_on_its_own_branch_that_git_does_not_see(tmp_path: Path) -> None:
    project = shop(tmp_path)
    assert "created stream PRD-1 on branch ralph/PRD-1" in stream(project, "new", "1")
    tree = project.root / ".ralph/worktrees/PRD-1"
    assert (tree / ".ralph/PRD-1/plan.md").is_file()
    assert project.git("status", "--porcelain") == ""
    assert project.git("-C", str(tree), "symbolic-ref", "--short", "HEAD") == "ralph/PRD-1"
    assert "stream PRD-1 exists already" in stream(project, "new", "PRD-1", code=64)
    row = listed(project)["PRD-1"]
    assert (row["state"], row["done"], row["total"], row["ahead"]) == ("idle", 0, 1, 0)
    assert project.ralph("check", "--prd", "1").code == 0
    assert "there are 2 plans" in project.ralph("status").err  # and not three


def test_two_streams_run_at_the_same_time_and_are_merged(tmp_path: Path) -> None:
    meet = (
        f'touch "{tmp_path}/$1"; until [ -e "{tmp_path}/US-101" ] && [ -e "{tmp_path}/US-201" ]; do sleep 0.1; done\n'
    )
    project = shop(tmp_path, meet + WORK + CLAIM)
    for name in "12":
        stream(project, "new", name)
    runs = [start(project, name) for name in "12"]
    until(lambda: {row["state"] for row in listed(project).values()} != {"idle"})
    assert [run.wait(60) for run in runs] == [0, 0]
    rows = listed(project)
    assert {row["state"] for row in rows.values()} == {"done"}
    assert rows["PRD-2"]["last"] == "complete"
    assert (project.root / ".ralph/locks/PRD-1.lock").is_file()
    told = stream(project, "merge", "--all", "--yes")
    assert told.count("passed   US-101: test -s src/US-101.txt") == 2  # PRD-2 is proven on top of PRD-1
    assert "1 of 1 story done" in told
    assert "feat(US-101): Build US-101  [" in told
    assert project.read("src/US-101.txt") == "US-101\n"
    assert project.read("src/US-201.txt") == "US-201\n"
    assert "[x] US-101" in project.read(".ralph/PRD-1/plan.md")
    assert project.git("status", "--porcelain") == ""
    assert {row["state"] for row in listed(project).values()} == {"merged"}
    for name in "12":
        stream(project, "remove", name)
    assert "No streams." in stream(project, "list")
    assert project.git("branch", "--list", "ralph/*") == ""
    assert not list((project.root / ".ralph/locks").glob("*.lock"))
    assert project.git("worktree", "list").count("\n") == 0


def test_uncommitted_plans_go_along_and_come_back(tmp_path: Path) -> None:
    project = shop(tmp_path)
    project.write(".ralph/PRD-3/plan.md", plan("US-301"))
    project.write(".ralph/PRD-1/plan.md", plan("US-101", "US-102"))
    for name in "13":
        stream(project, "new", name)
        build(project, name)
        stream(project, "merge", name, "--yes")
    assert "[x] US-301" in project.read(".ralph/PRD-3/plan.md")
    assert "[x] US-102" in project.read(".ralph/PRD-1/plan.md")
    assert "[x] US-301" in project.git("show", "HEAD:.ralph/PRD-3/plan.md")


def test_uncommitted_changes_in_the_same_file_stop_a_merge(tmp_path: Path) -> None:
    project = shop(tmp_path, "echo more >> README.md\n" + WORK + CLAIM)
    stream(project, "new", "1")
    build(project, "1")
    project.write("README.md", "# Mine\n")
    head = project.git("rev-parse", "HEAD")
    told = stream(project, "merge", "1", "--yes", code=78)
    assert "uncommitted changes in 1 file that the merge touches: README.md" in told
    assert (project.read("README.md"), project.git("rev-parse", "HEAD")) == ("# Mine\n", head)
    project.git("checkout", "README.md")
    project.write("notes.txt", "mine\n")  # in no touched file
    stream(project, "merge", "1", "--yes")
    assert project.read("notes.txt") == "mine\n"


def test_a_merge_that_is_clean_in_text_but_red_in_checks_is_refused(tmp_path: Path) -> None:
    """Both sides are green alone: the check allows one file in `src`, and each adds one."""
    check = [{"name": "one file", "command": 'test "$(ls src 2>/dev/null | wc -l)" -le 1'}]
    project = shop(tmp_path, checks=check)
    for name in "12":
        stream(project, "new", name)
        build(project, name)
    stream(project, "merge", "1", "--yes")
    head = project.git("rev-parse", "HEAD")
    told = stream(project, "merge", "2", "--yes", code=78)
    assert "the merge of PRD-2 is clean, but `one file` fails on the merged tree" in told
    assert project.git("rev-parse", "HEAD") == head
    assert project.git("status", "--porcelain") == ""
    assert not (project.root / "src/US-201.txt").exists()
    assert project.git("worktree", "list").count("\n") == 2
    assert "skipped PRD-2" in stream(project, "merge", "--all", "--yes", code=1)


def test_a_conflict_is_named_and_nothing_changes(tmp_path: Path) -> None:
    project = shop(tmp_path, 'echo "$1" > README.md\n' + WORK + CLAIM)
    for name in "12":
        stream(project, "new", name)
        build(project, name)
    told = stream(project, "merge", "--all", "--yes", code=1)
    assert "merged ralph/PRD-1 into main" in told
    assert "skipped PRD-2: ralph/PRD-2 conflicts with main in README.md" in told
    assert project.read("README.md") == "US-101\n"
    assert "unmerged" not in project.git("status")


def test_learnings_of_two_streams_are_united(tmp_path: Path) -> None:
    project = shop(tmp_path, 'echo "learned $1" >> .ralph/learnings.md\n' + WORK + CLAIM)
    project.write(".ralph/learnings.md", "# Learnings\n")
    project.git("add", "-A")
    project.git("commit", "-qm", "learnings")
    for name in "12":
        stream(project, "new", name)
        tree = project.root / f".ralph/worktrees/PRD-{name}"
        with (tree / ".ralph/learnings.md").open("a") as file:
            file.write(f"learned {name}\n")
        project.git("-C", str(tree), "commit", "-qam", "learned")
    stream(project, "merge", "--all", "--yes", "--trust")
    assert project.read(".ralph/learnings.md") == "# Learnings\nlearned 1\nlearned 2\n"


def test_unmerged_and_uncommitted_work_is_not_removed(tmp_path: Path) -> None:
    project = shop(tmp_path)
    stream(project, "new", "1")
    build(project, "1")
    tree = project.root / ".ralph/worktrees/PRD-1"
    (tree / "draft.txt").write_text("draft\n")
    told = stream(project, "remove", "1", code=78)
    assert "on no other branch and uncommitted work in draft.txt" in told
    assert "uncommitted work: draft.txt" in stream(project, "merge", "1", "--yes", code=78)
    assert tree.is_dir()
    told = stream(project, "remove", "1", "--force")
    ref = next(word for word in told.split() if word.startswith("refs/ralph/rescue/"))
    assert project.git("show", f"{ref}:draft.txt") == "draft"
    assert project.git("show", f"{ref}:src/US-101.txt") == "US-101"
    assert "stream-PRD-1/" in project.ralph("rescue", "list").out
    assert not tree.exists()
    assert project.git("branch", "--list", "ralph/*") == ""
    stream(project, "new", "1")
    stream(project, "remove", "1")  # nothing in it


def test_a_killed_run_is_recovered_by_build(tmp_path: Path) -> None:
    hang = f'if [ ! -e "{tmp_path}/go" ]; then echo half > half.txt; touch "{tmp_path}/busy"; sleep 60; fi\n'
    project = shop(tmp_path, hang + WORK + CLAIM)
    stream(project, "new", "1")
    run = start(project, "1")
    until((tmp_path / "busy").exists)
    assert listed(project)["PRD-1"]["state"] == "running"
    assert "is running" in stream(project, "merge", "1", "--yes", code=78)
    assert "stream PRD-1 is running" in stream(project, "remove", "1", "--force", code=73)
    again = project.ralph("stream", "build", "1", "--plain", "--trust")
    assert (again.code, "lock held since" in again.err) == (73, True), again.err
    run.send_signal(signal.SIGKILL)
    run.wait(30)
    until(lambda: listed(project)["PRD-1"]["state"] == "killed")
    assert "was killed" in stream(project, "merge", "1", "--yes", code=78)
    assert "may have left work" in stream(project, "remove", "1", code=78)
    (tmp_path / "go").touch()
    assert "recovered" in build(project, "1")
    assert listed(project)["PRD-1"]["state"] == "done"
    assert not (project.root / ".ralph/worktrees/PRD-1/half.txt").exists()


def test_a_second_run_in_the_checkout_is_told_about_streams(tmp_path: Path) -> None:
    project = shop(tmp_path, f'touch "{tmp_path}/busy"; sleep 60\n')
    words = [sys.executable, "-m", "ralph", "build", "1", "--prd", "1", "--plain", "--trust"]
    run = subprocess.Popen(words, cwd=project.root, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        until((tmp_path / "busy").exists)
        done = project.ralph("build", "1", "--prd", "2", "--plain", "--trust")
        assert done.code == 73
        assert "`ralph stream new` lets another plan run at the same time" in done.err
        assert "a run works on PRD-1 in this checkout" in stream(project, "new", "1", code=73)
        stream(project, "new", "2")
    finally:
        run.send_signal(signal.SIGINT)
        run.wait(30)
    assert (project.root / ".ralph/worktrees/PRD-2/README.md").is_file()  # the rollback left it alone
    assert project.git("branch", "--list", "ralph/PRD-2")


def test_stop_ends_the_run_of_one_stream(tmp_path: Path) -> None:
    project = shop(tmp_path, f'touch "{tmp_path}/busy"; sleep 60\n')
    stream(project, "new", "1")
    done = ralph("stream", "build", "1", "--detach", "--trust", cwd=project.root)
    assert done.code == 0, done.err
    until((tmp_path / "busy").exists)
    assert listed(project)["PRD-1"]["state"] == "running"
    assert "works in a worktree" in (told := project.ralph("status", "--prd", "1")).out + told.err
    stream(project, "stop", "1", "--now")
    until(lambda: listed(project)["PRD-1"]["state"] == "idle")


def test_a_feature_in_another_layout_is_a_stream_too(tmp_path: Path) -> None:
    story = {"id": "US-001", "title": "Log in", "acceptanceCriteria": ["it works"], "priority": 1, "passes": False}
    story |= {"reviewStatus": None, "reviewCount": 0, "reviewFeedback": "", "verify": "test -s src/US-001.txt"}
    page = {"project": "shop", "branchName": "ralph/login", "description": "Log in", "userStories": [story]}
    tasks = json.dumps(page)
    project = SeedProject(
        tmp_path, {".ralph/user-login/tasks.json": tasks}, WORK + CLAIM, {"review": {"enabled": False}}
    )
    stream(project, "new", "user-login")
    build(project, "user-login")
    assert listed(project)["user-login"]["branch"] == "ralph/user-login"
    stream(project, "merge", "--yes")
    assert project.read("src/US-001.txt") == "US-001\n"


@pytest.mark.parametrize("words", [("merge", "1", "--yes"), ("remove", "1", "--force"), ("new", "2"), ("build", "1")])
def test_an_agent_cannot_create_merge_or_remove_streams(tmp_path: Path, words: tuple[str, ...]) -> None:
    project = shop(tmp_path)
    stream(project, "new", "1")
    done = project.ralph("stream", *words, env={"RALPH_LOOP": "1"})
    assert done.code == 78
    assert "an agent in a loop cannot" in done.err


@pytest.mark.parametrize("command", ["ralph stream merge 1", "ralph stream remove 1 --force", "ralph stream stop 1"])
def test_the_guard_denies_an_agent_the_commands_for_people(command: str) -> None:
    assert judge_command(command, "/work", {}).denied
    assert not judge_command("ralph stream list", "/work", {}).denied


class Place(NamedTuple):
    root: Path
    env: dict[str, str]


def test_a_merge_asks_on_a_terminal_and_no_is_the_default(tmp_path: Path) -> None:
    project = shop(tmp_path)
    stream(project, "new", "1")
    build(project, "1")
    for key, state in ((b"\n", "done"), (b"y\n", "merged")):
        terminal = Terminal(Place(project.root, dict(os.environ)), "stream", "merge", "1")
        terminal.until("Merge ralph/PRD-1 into main? [y/N]")
        terminal.press(key)
        assert terminal.end() == 0, terminal.plain
        assert listed(project)["PRD-1"]["state"] == state


def test_a_merge_without_a_terminal_needs_yes(tmp_path: Path) -> None:
    project = shop(tmp_path)
    stream(project, "new", "1")
    build(project, "1")
    assert "pass --yes" in stream(project, "merge", "1", code=64)
    assert "no stream 7; streams here: PRD-1" in stream(project, "status", "7", code=64)
    assert os.path.lexists(project.root / ".ralph/worktrees/PRD-1")


def test_installed_dependencies_are_copied_and_a_run_beside_a_stream_says_so(tmp_path: Path) -> None:
    project = shop(tmp_path, checks=[{"name": "tool", "command": "node_modules/.bin/tool"}])
    project.write(".gitignore", "node_modules/\n")
    project.write("package.json", "{}\n")
    project.git("add", "-A")
    project.git("commit", "-qm", "tool")
    project.write("node_modules/.bin/tool", "#!/bin/sh\ntrue\n").chmod(0o755)
    stream(project, "new", "1")
    build(project, "1")
    assert "passed   tool" in stream(project, "merge", "1", "--yes")
    assert "stream PRD-1 has this plan too" in project.run("--prd", "1").err


def test_a_workspace_in_a_subfolder_of_the_repository_has_streams(tmp_path: Path) -> None:
    project = shop(tmp_path)
    project.write("shop/.ralph/config.yaml", project.read(".ralph/config.yaml"))
    project.write("shop/.ralph/PRD-7/plan.md", plan("US-701"))
    project.git("add", "-A")
    project.git("commit", "-qm", "shop")
    stream(project, "new", "7", "-d", "shop")
    stream(project, "build", "7", "-d", "shop", "--plain", "--trust")
    stream(project, "merge", "7", "-d", "shop", "--yes")
    assert project.read("shop/src/US-701.txt") == "US-701\n"
    stream(project, "remove", "7", "-d", "shop")
    assert project.git("status", "--porcelain") == ""
