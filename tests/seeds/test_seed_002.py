"""What seed 002 (`requirements.md`, `.ralph/prd.json`, steps in `configs/default.json`) promises, from its own text."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from support.cli import ralph, ralph_here
from support.planners import GIT, Project, plan, story

pytestmark = pytest.mark.usefixtures("git_identity")

# "`default.json` structure" of the seed.
DEFAULT_JSON: dict[str, Any] = {
    "name": "default",
    "steps": [
        {
            "name": "setup",
            "type": "agent",
            "enabled": True,
            "config": {
                "prompt_file": ".ralph/prompts/SETUP_PROMPT.md",
                "prd_file": ".ralph/prd.json",
                "marker_file": ".ralph/.setup_done",
            },
        },
        {
            "name": "run-claude",
            "type": "agent",
            "enabled": True,
            "config": {"prompt_file": ".ralph/prompts/LOOP_PROMPT.md", "prd_file": ".ralph/prd.json"},
        },
        {"name": "git-commit", "type": "git-commit", "enabled": True},
    ],
}
# "`ralph init`: Create project structure", and "File Layout".
STRUCTURE = (
    ".ralph/prd.json",
    ".ralph/requirements.md",
    ".ralph/learnings.md",
    ".ralph/prompts/SETUP_PROMPT.md",
    ".ralph/prompts/LOOP_PROMPT.md",
    ".ralph/configs/default.json",
)
REQUIREMENTS = "# Geo service\n\nA GET /geo endpoint that answers with the country of an address.\n"
SCRIPT = """\
setup: []
stories:
  '*':
    - implement: [{append: {path: app.py, text: "x = 1\\n"}}, claim]
      review: [{verdict: approved}]
"""
AGENT = "agent: {name: scripted, script: .ralph/script.yaml}\n"


def git(root: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=root, check=True, capture_output=True, text=True).stdout


def test_init_new_makes_the_project_folder_with_the_repository_of_the_code_inside(tmp_path: Path) -> None:
    """`myproject/  # Created by ralph init` with `.ralph/` and `myproject/.git/` ("Application code (nested)")."""
    done = ralph_here("init", "myproject", "--new", "--layout", "steps", cwd=tmp_path)
    assert done.code == 0, done.err
    root = tmp_path / "myproject"
    for path in STRUCTURE:
        assert (root / path).is_file(), path
    assert (root / "myproject" / ".git").is_dir()
    assert json.loads((root / ".ralph/configs/default.json").read_text())["steps"][1]["name"] == "run-claude"
    other = ralph_here("init", "shop", "--new", cwd=tmp_path)
    assert other.code == 0
    assert (tmp_path / "shop/.git").is_dir()
    again = ralph_here("init", "shop", "--new", cwd=tmp_path)
    assert again.code == 64
    assert "exists and is not empty" in again.err
    assert "--new needs the name" in ralph_here("init", "--new", cwd=tmp_path).err


def test_a_new_project_runs_its_first_task(tmp_path: Path) -> None:
    first = ("--story", "Serve geo", "--criterion", "app.py is there")
    assert ralph_here("init", "myproject", "--new", "--layout", "steps", *first, cwd=tmp_path).code == 0
    root = tmp_path / "myproject"
    (root / ".ralph/script.yaml").write_text(SCRIPT.replace("app.py", "myproject/app.py"))
    config = root / ".ralph/config.yaml"
    config.write_text(config.read_text() + AGENT + "checks: ['test ! -e broken.txt']\n")
    done = ralph("run", "--trust", cwd=root)
    assert done.code == 0, done.out + done.err
    assert json.loads((root / ".ralph/prd.json").read_text())["tasks"][0]["status"] == "done"
    assert "Serve geo" in git(root / "myproject", "log", "--format=%s")


def test_plain_init_reads_requirements_md(tmp_path: Path) -> None:
    """ "1. Parse requirements.md  2. Call Claude (opus) to analyze requirements → generate tasks"."""
    project = Project(tmp_path)
    (project.root / "requirements.md").write_text(REQUIREMENTS)
    (project.root / ".ralph").mkdir()
    (project.root / ".ralph/config.yaml").write_text("layout: steps\n")
    done = ralph_here("init", cwd=project.root, env=project.env)
    assert done.code == 0, done.err
    assert (project.root / ".ralph/requirements.md").read_text() == REQUIREMENTS
    assert "ralph plan" in done.out, "nobody is there to ask whether an agent may be called"

    project.plays(plan(story("a", "Answer GET /geo")))
    planned = ralph_here("plan", "--no-input", cwd=project.root, env=project.env)
    assert planned.code == 0, planned.err
    assert "GET /geo endpoint" in project.prompt(1)
    assert [task["title"] for task in project.tasks(".ralph/prd.json")["tasks"]] == ["Answer GET /geo"]


def test_init_with_plan_generates_the_tasks_at_once(tmp_path: Path) -> None:
    project = Project(tmp_path)
    (project.root / "requirements.md").write_text(REQUIREMENTS)
    project.plays(plan(story("a", "Answer GET /geo")))
    done = ralph_here("init", "--layout", "steps", "--plan", "--no-input", cwd=project.root, env=project.env)
    assert done.code == 0, done.err
    assert [task["title"] for task in project.tasks(".ralph/prd.json")["tasks"]] == ["Answer GET /geo"]


@pytest.fixture
def service(tmp_path: Path) -> Path:
    root = tmp_path / "service"
    root.mkdir()
    git(root, "init", "-q", "-b", "main")
    assert ralph_here("init", "--layout", "steps", "--story", "Serve geo", "--no-checks", cwd=root).code == 0
    (root / ".ralph/configs/default.json").write_text(json.dumps(DEFAULT_JSON, indent=2))
    (root / ".ralph/script.yaml").write_text(SCRIPT)
    config = root / ".ralph/config.yaml"
    config.write_text(config.read_text() + AGENT + "checks: ['test ! -e broken.txt']\n")
    git(root, "add", "-A")
    git(root, "commit", "-qm", "start")
    return root


def write_pipeline(root: Path, **changes: Any) -> None:
    steps = [step | {"config": step.get("config", {}) | changes} for step in DEFAULT_JSON["steps"][:2]]
    (root / ".ralph/configs/default.json").write_text(json.dumps({"name": "default", "steps": steps}, indent=2))


def test_prd_file_may_point_elsewhere(service: Path) -> None:
    (service / "plans").mkdir()
    (service / ".ralph/prd.json").rename(service / "plans/geo.json")
    text = json.dumps(DEFAULT_JSON).replace(".ralph/prd.json", "plans/geo.json")
    (service / ".ralph/configs/default.json").write_text(text)
    git(service, "add", "-A")
    git(service, "commit", "-qm", "move the plan")
    assert ralph_here("check", cwd=service).code == 0
    done = ralph("run", "--trust", cwd=service)
    assert done.code == 0, done.out + done.err
    assert json.loads((service / "plans/geo.json").read_text())["tasks"][0]["status"] == "done"
    assert not (service / ".ralph/prd.json").exists()
    assert "done" in ralph_here("status", cwd=service).out


def test_a_pipeline_without_git_commit_does_not_block_the_next_run(service: Path) -> None:
    write_pipeline(service)
    head = git(service, "rev-parse", "HEAD")
    assert ralph("run", "--trust", cwd=service).code == 0
    assert "app.py" in git(service, "status", "--porcelain")
    assert ralph_here("task", "add", "Serve more", cwd=service).code == 0
    again = ralph("run", "--trust", cwd=service)
    assert "uncommitted" not in again.err
    assert again.code == 0, again.err
    assert (service / "app.py").read_text() == "x = 1\nx = 1\n"
    assert git(service, "rev-parse", "HEAD") == head


@pytest.mark.parametrize(
    ("program", "told"),
    [
        ("#!/bin/sh\necho 'cannot find libc' >&2\nexit 1\n", "claude cannot start"),
        ("#!/no/such/interpreter\n", "claude cannot start"),
        ("#!/bin/sh\necho '2.1.300 (Claude Code)'\n", ""),
    ],
    ids=["crashes", "no interpreter", "works"],
)
def test_preflight_starts_the_client(service: Path, tmp_path: Path, program: str, told: str) -> None:
    """ "Claude binary is available and runnable"."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "claude").write_text(program)
    (programs / "claude").chmod(0o755)
    env = {**GIT, "PATH": f"{programs}:/usr/bin:/bin", "RALPH_AGENT_NAME": "claude", "RALPH_TRUST": "1"}
    done = ralph_here("preflight", "--json", cwd=service, env=env)
    [finding] = [line for line in done.json["findings"] if line["topic"] == "agent"]
    if told:
        assert (finding["level"], done.code) == ("fail", 78)
        assert told in finding["text"]
    else:
        assert finding["text"].startswith("claude 2.1.300")
        assert finding["level"] == "ok"
