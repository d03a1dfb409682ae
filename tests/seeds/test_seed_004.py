"""What seed 004 (`.ralph/spec.md`, beads, stop files) promises, starting from its own text."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ralph.core.exit_codes import ExitCode
from support.seed_projects import SeedProject

# The seed's own example of a spec, with a check of each step's own.
SPEC = """\
# Spec

- [ ] **1.1** Create database schema [TASK-abc]
  - Verify: `test -s src/1.1.txt`
- [ ] **1.2** Add validation logic [TASK-def]
  - Verify: `test -s src/1.2.txt`
- [ ] **1.R** Review: tests pass, no bugs [TASK-ghi]
"""
CHECKS = {"checks": [{"name": "sound", "command": "! grep -rqs BROKEN src"}]}
CLAIM = """echo '{"claim": "done"}' > "$RALPH_REQUEST_FILE"\n"""
WORK = 'mkdir -p src && echo "$1" > "src/$1.txt"\n'
LOOK = 'printf "\\n- ran the tests of the phase: all pass\\n" >> .ralph/progress.md\n'
AGENT = f'case "$1" in *.R) {LOOK};; *) {WORK};; esac\n'.replace("\n;;", " ;;") + CLAIM


def ticked(project: SeedProject) -> list[str]:
    return [line[3] for line in project.read(".ralph/spec.md").splitlines() if line.startswith("- [")]


def test_a_review_step_is_done_with_evidence_in_the_progress_log(tmp_path: Path) -> None:
    """`**1.R** Review: tests pass, no bugs`; "Log evidence in progress log"."""
    project = SeedProject(tmp_path, {".ralph/spec.md": SPEC}, AGENT, CHECKS)
    done = project.run()
    assert done.code == 0, done
    assert ticked(project) == ["x", "x", "x"]
    assert [event.story for event in project.ended()] == ["1.1", "1.2", "1.R"]
    assert "- ran the tests of the phase: all pass" in project.git("show", "HEAD:.ralph/progress.md")


@pytest.mark.parametrize("step", ["- [ ] **1.1** Review: no bugs\n", "- [ ] **1.1** Look closely\n  - Mode: review\n"])
def test_any_step_whose_mode_is_review_needs_no_change(tmp_path: Path, step: str) -> None:
    project = SeedProject(tmp_path, {".ralph/spec.md": f"# Spec\n\n{step}"}, LOOK + CLAIM, CHECKS)
    assert project.run().code == 0
    assert ticked(project) == ["x"]


def test_a_review_step_without_evidence_or_with_failing_checks_is_not_done(tmp_path: Path) -> None:
    spec = {".ralph/spec.md": "# Spec\n\n- [ ] **1.R** Review: tests pass\n", "src/a.txt": "fine\n"}
    (tmp_path / "one").mkdir()
    project = SeedProject(tmp_path / "one", spec, CLAIM, CHECKS)
    project.run("--max-iterations", "1")
    assert ticked(project) == [" "]
    assert project.ended()[0].headline.startswith("a review step needs evidence")
    (tmp_path / "two").mkdir()
    failing = {"checks": [{"name": "sound", "command": "! grep -qs 'all pass' .ralph/progress.md"}]}
    project = SeedProject(tmp_path / "two", spec, LOOK + CLAIM, failing)
    project.run("--max-iterations", "1")
    assert ticked(project) == [" "]
    assert "failed with exit code 1" in project.ended()[0].headline


# Beads: "The sync verification script blocks completion until both systems agree."

TRACKED = ("TASK-abc", "TASK-def", "TASK-ghi")


def with_beads(folder: Path, agent: str, *, closed: str = "", tool: bool = True, **config: Any) -> SeedProject:
    """A project whose three steps have a bead each, and `br` on PATH."""
    (folder / "bin").mkdir()
    if tool:
        shutil.copy(Path(__file__).parents[1] / "support" / "beads" / "br", folder / "bin" / "br")
    issues = [{"id": name, "title": name, "status": "closed" if name == closed else "open"} for name in TRACKED]
    files = {
        ".ralph/spec.md": SPEC,
        ".beads/stand-in.json": json.dumps(issues),
        ".beads/issues.jsonl": "".join(json.dumps(issue) + "\n" for issue in issues),
        ".beads/.gitignore": "stand-in.json\n",
        ".gitignore": ".beads-calls\n",
    }
    return SeedProject(folder, files, agent, CHECKS | config)


def beads_of(project: SeedProject) -> dict[str, str]:
    lines = project.read(".beads/issues.jsonl").splitlines()
    return {issue["id"]: issue["status"] for issue in map(json.loads, lines)}


def path_of(project: SeedProject) -> dict[str, str]:
    return {"PATH": f"{project.folder / 'bin'}:{os.environ['PATH']}"}


def test_the_loop_closes_the_bead_of_an_accepted_step_in_its_commit(tmp_path: Path) -> None:
    project = with_beads(tmp_path, AGENT)
    done = project.run(env=path_of(project))
    assert done.code == 0, done
    assert beads_of(project) == dict.fromkeys(TRACKED, "closed")
    first = project.git("log", "--format=%H", "--grep=1.1", "--reverse").split()[0]
    assert '"TASK-abc", "title": "TASK-abc", "status": "closed"' in project.git("show", f"{first}:.beads/issues.jsonl")
    assert '"TASK-def", "title": "TASK-def", "status": "open"' in project.git("show", f"{first}:.beads/issues.jsonl")
    assert project.git("status", "--porcelain") == ""
    assert project.ralph("verify-sync", env=path_of(project)).code == 0


def test_a_bead_that_the_agent_closed_too_soon_is_open_again(tmp_path: Path) -> None:
    lie = "br close TASK-abc --reason=done --json >/dev/null\nmkdir -p src && echo BROKEN > src/a.txt\n" + CLAIM
    project = with_beads(tmp_path, lie, max_loops_per_task=1)
    project.run("--max-iterations", "1", env=path_of(project))
    assert project.ended()[0].kind.value == "rejected"
    assert beads_of(project)["TASK-abc"] == "open"


def test_a_run_is_not_complete_while_a_bead_disagrees(tmp_path: Path) -> None:
    """A step was ticked by hand, and nobody closed its bead."""
    project = with_beads(tmp_path, AGENT)
    project.write(".ralph/spec.md", SPEC.replace("[ ] **1.1**", "[x] **1.1**"))
    project.write("src/1.1.txt", "1.1\n")
    project.git("add", "-A")
    project.git("commit", "-qm", "do and tick 1.1 by hand")
    done = project.run(env=path_of(project))
    assert done.code == 1, done
    assert "1.1: done in the spec, but the bead TASK-abc is open" in done.out
    assert not (project.root / ".ralph/COMPLETE").exists()
    tool = [str(project.folder / "bin" / "br"), "close", "TASK-abc", "--reason=done", "--json"]
    subprocess.run(tool, cwd=project.root, check=True, capture_output=True)
    project.git("add", "-A")
    done = project.run(env=path_of(project))
    assert done.code == 0, done
    assert (project.root / ".ralph/COMPLETE").exists()


def test_without_a_beads_tool_the_spec_alone_counts(tmp_path: Path) -> None:
    project = with_beads(tmp_path, AGENT, tool=False)
    assert project.run(env=path_of(project)).code == 0
    assert beads_of(project)["TASK-abc"] == "open"


# Stop files: "`.ralph/WAITING`: Human needed".

ASKS = {
    "WAITING": 'echo "Which database?" > .ralph/WAITING\n',
    "the request file": """echo '{"ask": "Which database?"}' > "$RALPH_REQUEST_FILE"\n""",
}
ANSWERS = {
    "removing WAITING": lambda project: (project.root / ".ralph/WAITING").unlink(),
    "ralph answer 1.1": lambda project: project.ralph("answer", "1.1", "PostgreSQL"),
    "ralph answer -": lambda project: project.ralph("answer", "-", "PostgreSQL"),
}


@pytest.mark.parametrize("how", ANSWERS)
@pytest.mark.parametrize("asks", ASKS)
def test_an_answer_unblocks_the_step_that_asked_and_it_is_still_the_first(tmp_path: Path, asks: str, how: str) -> None:
    agent = f"if [ ! -f {tmp_path}/asked ]; then touch {tmp_path}/asked; {ASKS[asks]}exit 0; fi\n{AGENT}"
    project = SeedProject(tmp_path, {".ralph/spec.md": SPEC}, agent, CHECKS)
    assert project.run().code == ExitCode.WAITING
    assert [event.story for event in project.ended()] == ["1.1"]
    assert project.read(".ralph/WAITING").strip() == "Which database?"
    assert project.run().code == ExitCode.WAITING, "the file stops the loop until somebody has answered"
    ANSWERS[how](project)
    assert not (project.root / ".ralph/WAITING").exists()
    done = project.run()
    assert done.code == 0, done
    assert [event.story for event in project.ended()] == ["1.1", "1.2", "1.R"]


def test_push_after_story_pushes_the_last_commit_too_and_says_so(tmp_path: Path) -> None:
    """ "The session commits, pushes, and exits"."""
    project = SeedProject(tmp_path, {".ralph/spec.md": SPEC}, AGENT, CHECKS)
    remote = tmp_path / "remote.git"
    project.git("init", "-q", "--bare", str(remote))
    project.git("remote", "add", "origin", str(remote))
    done = project.run("--push", "after-story")
    assert done.code == 0, done
    assert project.git("ls-remote", str(remote), "main").split()[0] == project.git("rev-parse", "HEAD")
    assert f"pushed to origin: {project.git('log', '-1', '--format=%h %s')}" in done.out + done.err


def test_ralph_setup_creates_the_epic_and_the_tasks_where_there_are_beads(tmp_path: Path) -> None:
    """`/ralph-setup`: "Create beads epic + tasks". The commands of the page are the tool's own."""
    project = SeedProject(tmp_path, {})
    assert project.ralph("plugin", "write", str(tmp_path / "plugin")).code == 0
    (page,) = (tmp_path / "plugin").rglob("*ralph-setup*/SKILL.md")
    text = page.read_text()
    commands = [line.strip() for line in text.splitlines() if line.strip().startswith("br ")]
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    shutil.copy(Path(__file__).parents[1] / "support" / "beads" / "br", bin_folder / "br")
    env = {**os.environ, "PATH": f"{bin_folder}:{os.environ['PATH']}"}
    for command in commands:
        filled = command.replace("EPIC", "shop-1").replace("TASK", "shop-2")
        done = subprocess.run(["sh", "-c", filled], cwd=project.root, env=env, capture_output=True, check=False)
        assert done.returncode == 0, (command, done.stderr)
    assert [command.split()[1] for command in commands] == ["init", "create", "create", "dep", "show"]
    issues = [json.loads(line) for line in project.read(".beads/issues.jsonl").splitlines()]
    assert [issue["issue_type"] for issue in issues] == ["epic", "task"]
    assert "ralph plan sync" in text
