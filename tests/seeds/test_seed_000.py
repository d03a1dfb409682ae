"""What seed 000 (`.ralph/PRD-N/plan.md`, hooks, rollback) promises, starting from its own text."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from ralph.core.changes import SetFields
from ralph.core.plan import State
from ralph.guard.decision import judge_command
from ralph.journal.sinks.logs import agent_output
from ralph.plans import plan_md
from support.seed_projects import SeedProject

# The seed's own search: grep -m1 '^\s*-\s*\[ \].*US-[0-9]\+' "$PLAN_PATH"
PLAN = """\
# Shop

## Stories

- [x] US-001: Log in
- [ ] (P1) US-006: Log out
- [ ] **High** US-007 - Reset the password
- [ ] Remember me (US-008)
- [ ] Test US-001 again
- [ ] Write the release notes

### US-006: Log out

**Acceptance Criteria:**

- [ ] works after US-001
"""


def test_an_id_anywhere_in_a_checkbox_line_makes_it_a_story() -> None:
    stories = plan_md.parse(PLAN.encode(), "plan.md").stories
    assert [(story.id, story.title) for story in stories] == [
        ("US-001", "Log in"),
        ("US-006", "Log out"),
        ("US-007", "Reset the password"),
        ("US-008", "Remember me"),
    ]
    assert stories[1].criteria == ("works after US-001",)


def test_such_a_story_is_ticked_and_renamed_in_its_place() -> None:
    done = plan_md.edit(PLAN.encode(), [SetFields("US-006", {"state": State.DONE, "title": "Sign out"})]).decode()
    assert "- [x] (P1) US-006: Sign out\n" in done
    done = plan_md.edit(PLAN.encode(), [SetFields("US-008", {"state": State.DONE, "title": "Stay"})]).decode()
    assert "- [x] Stay (US-008)\n" in done


def test_an_open_checkbox_that_is_no_story_is_a_warning(tmp_path: Path) -> None:
    done = SeedProject(tmp_path, {".ralph/PRD-1/plan.md": PLAN}).ralph("check")
    warned = [line for line in done.out.splitlines() if "[not-a-story]" in line]
    told = "warning[not-a-story]: this open checkbox is not a story, so no run works on it:"
    assert warned == [
        f".ralph/PRD-1/plan.md:9: {told} Test US-001 again",
        f".ralph/PRD-1/plan.md:10: {told} Write the release notes",
    ], done.out


@pytest.mark.parametrize("command", ["git merge feature", "git -C . merge --no-ff feature", "git pull origin feature"])
def test_a_merge_on_main_is_refused_like_one_that_names_main(tmp_path: Path, command: str) -> None:
    """`git merge` to main/master - use `ralph stream merge` instead."""
    project = SeedProject(tmp_path, {"src/a.py": "a = 1\n"})
    project.git("branch", "feature")
    assert judge_command(f"git checkout main && {command}", str(project.root), {}).category == "git-merge"
    assert judge_command(command, str(project.root), {}).category == "git-merge"
    assert judge_command(f"cd src && {command}", str(project.root), {}).category == "git-merge"
    project.git("worktree", "add", "-q", str(tmp_path / "tree"), "feature")
    assert not judge_command(command, str(tmp_path / "tree"), {}).denied
    assert not judge_command("git merge origin/main", str(project.root), {}).denied


STORY = {
    "id": "US-001",
    "title": "Log in",
    "acceptanceCriteria": ["it works"],
    "priority": 1,
    "passes": False,
    "reviewStatus": None,
    "reviewCount": 0,
    "reviewFeedback": "",
    "verify": "test -s src/US-001.txt",
}
CLAIM = """echo '{"claim": "done"}' > "$RALPH_REQUEST_FILE"\n"""
WORK = 'mkdir -p src && echo "$1" > "src/$1.txt"\n'


def shop(**stories: str) -> str:
    """A plan whose stories have a check each, which `WORK` satisfies."""
    titles = {name.replace("_", "-"): title for name, title in stories.items()}
    boxes = "".join(f"- [ ] {name}: {title}\n" for name, title in titles.items())
    blocks = (f"\n### {name}: {title}\n\nVerify: `test -s src/{name}.txt`\n" for name, title in titles.items())
    return f"# Shop\n\n## Stories\n\n{boxes}{''.join(blocks)}"


ONE = shop(US_001="Log in")


def test_the_run_log_holds_all_that_the_agent_printed(tmp_path: Path) -> None:
    """`runs/run-TIMESTAMP.log`: Full agent output."""
    long = "a line of more than two hundred characters " * 10
    agent = WORK + f'echo "{long}"\nfor i in $(seq 2000); do echo "line $i"; done\n'
    project = SeedProject(tmp_path, {".ralph/PRD-1/plan.md": ONE}, agent)
    assert project.run().code == 0
    (log,) = (project.root / ".ralph/PRD-1/runs").glob("run-*.log")
    text = log.read_text()
    assert long.strip() in text
    assert all(f"    | line {number}\n" in text for number in range(1, 2001))


def test_a_run_log_says_what_its_cap_left_out(tmp_path: Path) -> None:
    raw = tmp_path / "0001-agent.log"
    raw.write_text("".join(f"line {number}\n" for number in range(1000)))
    assert agent_output(raw)[0] == "line 0"
    lines = agent_output(raw, cap=1000)
    assert lines[0] == f"(output is longer than 1,000 bytes; the beginning is left out; see {raw})"
    assert lines[-1] == "line 999"
    assert len(lines) < 130


def test_sessions_log_loses_no_entry(tmp_path: Path) -> None:
    """`incomplete:US-XXX:timestamp:stop_reason`: several in the same second are several lines."""
    config = {"max_loops_per_task": 4, "circuit_breaker": {"no_progress_threshold": 0, "same_error_threshold": 0}}
    project = SeedProject(tmp_path, {".ralph/PRD-1/plan.md": ONE}, "exit 3\n", config)
    project.run("--max-iterations", "4")
    ended = [event for event in project.ended() if event.story]
    lines = project.read(".ralph/sessions.log").splitlines()
    assert len(lines) == len(ended) >= 3
    assert all(re.fullmatch(r"incomplete:US-001:\d+:crashed", line) for line in lines), lines


@pytest.mark.parametrize("ignore", ["", "*.pyc\n"])
def test_markers_and_logs_never_get_into_a_commit(tmp_path: Path, ignore: str) -> None:
    """Also not into the one that an agent makes with `git add -A` while they are there."""
    agent = WORK + "test -f .ralph/.checkpoint && test -f .ralph/current-story || exit 9\n"
    agent += 'echo x >> .ralph/session.log\ngit add -A && git commit -qm "by the agent: $1"\n'
    plan = shop(US_001="Log in", US_002="Log out")
    files = {".ralph/PRD-1/plan.md": plan} | ({".gitignore": ignore} if ignore else {})
    project = SeedProject(tmp_path, files, agent)
    done = project.run()
    assert done.code == 0, done
    committed = set(project.git("log", "--all", "--name-only", "--format=").split())
    assert "src/US-002.txt" in committed
    tracked = {name for name in committed if name.startswith(".ralph")}
    assert tracked == {".ralph/config.yaml", ".ralph/PRD-1/plan.md", ".ralph/PRD-1/progress.md"}
    assert project.git("status", "--porcelain") == ""
    assert ignore == (project.read(".gitignore") if ignore else "")


def test_the_marker_of_seed_001_never_gets_into_a_commit(tmp_path: Path) -> None:
    tasks = {"project": "shop", "branchName": "main", "description": "", "userStories": [STORY]}
    agent = WORK + "test -f .ralph-active || exit 9\ngit add -A && git commit -qm mine\n"
    project = SeedProject(tmp_path, {"ralph/tasks.json": json.dumps(tasks)}, CLAIM + agent)
    done = project.run("--skip-review")
    assert done.code == 0, done
    committed = project.git("log", "--all", "--name-only", "--format=").split()
    assert "src/US-001.txt" in committed
    assert not {".ralph-active", "ralph/request.json"} & set(committed)
