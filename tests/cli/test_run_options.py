"""Every option of the systems that Ralph comes from is understood, and does what it did there."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from ralph.cli.main import parser_of
from ralph.config.flags import flags_of
from support.cli import Completed, ralph_here
from support.loops import CONFIG, LoopProject, Scenario, run_ralph

GOOD = "stories:\n  '*':\n    - implement: [{append: {path: src/x.txt, text: x}}, claim]\n"


@pytest.mark.parametrize(
    ("line", "settings"),
    [
        ("-n 3 -t 10 -r 5 -f login -p mine.md -v", {"max_iterations": 3, "timeout": 600.0, "rate_limit_per_hour": 5}),
        ("--max-iterations 3 --timeout 90s --rate-limit 0", {"timeout": 90.0, "rate_limit_per_hour": 0}),
        ("--feature login --prompt mine.md --verbose", {"feature": "login", "prompt": "mine.md"}),
        ("--no-archive --reset-circuit --dry-run", {"archive.on_complete": False}),
        ("--dangerously-skip-permissions", {"permissions": "skip"}),
        ("--ralph-dir ralph -d . -m opus --no-sandbox", {"ralph_dir": "ralph", "agent.model": "opus"}),
        ("--skip-review --review-cap 2", {"review.when": "never", "review.cap": 2}),
        ("--config fast --model sonnet --once", {"agent.model": "sonnet"}),
    ],
)
def test_the_options_of_the_seeds_are_settings(line: str, settings: dict[str, Any]) -> None:
    given = flags_of(parser_of("run").parse_args(line.split()))
    assert {key: given.get(key) for key in settings} == settings


def project(tmp_path: Path, stories: int = 3, script: str = GOOD, layout: str = "plan.md") -> LoopProject:
    first = "1." if layout == "spec.md" else "US-00"
    titles = {f"{first}{n}": f"Say {n}" for n in range(1, stories + 1)}
    return LoopProject.make(tmp_path / "made", Scenario(layout, titles, script, [], config=CONFIG))


def here(made: LoopProject, *arguments: str, **env: str) -> Completed:
    """Without a process of its own: for what does not come to a run."""
    return ralph_here(*arguments, cwd=made.root, env={**made.env, **env})


@pytest.mark.parametrize(
    ("arguments", "env"),
    [
        (("2", "--prd=1"), {}),
        ((), {"MAX_ITERATIONS": "2", "PRD_NUMBER": "1"}),
        (("--prd", "1"), {"MAX_ITERATIONS": "9", "MAX_ALLOWED_ITERATIONS": "2"}),
        (("2",), {"MAX_ITERATIONS": "1"}),
    ],
)
def test_build_takes_the_arguments_and_variables_of_its_seed(
    tmp_path: Path, arguments: tuple[str, ...], env: dict[str, str]
) -> None:
    made = project(tmp_path)
    done = run_ralph(made, "build", "--json", *arguments, **env)
    assert done.code == 1, done.err
    events = [json.loads(line)["event"] for line in done.out.splitlines()]
    assert sum(event["type"] == "IterationEnded" for event in events) == 2


def test_the_variables_of_build_are_nothing_to_run(tmp_path: Path) -> None:
    done = run_ralph(project(tmp_path, 1), "run", "--json", MAX_ITERATIONS="1000", TIMEOUT_AGENT="0")
    assert json.loads(done.out.splitlines()[0])["event"]["max_iterations"] == 5, "one story, five attempts"


@pytest.mark.parametrize("number", ["0", "-1", "../../etc", "1/..", "1;ls", "٣"])
def test_a_number_of_a_prd_leads_nowhere_else(tmp_path: Path, number: str) -> None:
    made = project(tmp_path, 1)
    assert here(made, "build", f"--prd={number}").code == 64
    assert here(made, "build", PRD_NUMBER=number).code == 65
    assert not made.journals()


@pytest.mark.parametrize("flag", ["--quiet", "--verbose"])
def test_one_way_of_showing_is_enough(tmp_path: Path, flag: str) -> None:
    assert here(project(tmp_path, 1), "run", "--json", flag).code == 64


def test_quiet_says_only_how_it_ended(tmp_path: Path) -> None:
    done = run_ralph(project(tmp_path, 1), "run", "--quiet")
    assert done.out.splitlines()[1].startswith("[████████████████████] 1/1  every story is done")


def test_verbose_shows_what_the_agent_does(tmp_path: Path) -> None:
    made = project(tmp_path, 1)
    assert "Edit src/x.txt" in run_ralph(made, "run", "--plain", "--verbose").out
    assert "Edit src/x.txt" not in run_ralph(made, "log").out
    assert "Edit src/x.txt" in run_ralph(made, "log", "--verbose").out


@pytest.mark.parametrize("layout", ["plan.md", "tasks.json", "steps", "feature", "spec.md"])
def test_a_dry_run_shows_everything_and_touches_nothing(tmp_path: Path, layout: str) -> None:
    made = project(tmp_path, 1, layout=layout)
    before = everything(made.folder)
    done = here(made, "run", "--dry-run")
    assert "\nagent      may: whatever the agent `scripted` permits itself" in done.out
    assert done.code == 0, done.err
    for words in (
        "story      .* Say 1",
        "mode       implement",
        "command    .*",
        "checks     sh check.sh",
        "--- prompt .*",
    ):
        assert re.search(f"^{words}$", done.out, re.MULTILINE), words
    assert everything(made.folder) == before


def everything(folder: Path) -> dict[str, tuple[int, bytes]]:
    found = sorted(folder.rglob("*"))
    return {str(p): (p.lstat().st_mtime_ns, p.read_bytes() if p.is_file() else b"") for p in found}
