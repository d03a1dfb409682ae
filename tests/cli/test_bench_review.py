"""`ralph bench review`: reviewers side by side, and the settings that the figures lead to."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import msgspec
import pytest

from ralph.trial.review_bench import Result, Reviewer
from support.cli import ralph_here
from support.clients import CLIENT
from support.plugins import install_acme
from trial.test_review_bench import KNOWING, result


@pytest.fixture
def acme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return install_acme(tmp_path, monkeypatch)


def rows(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    root = tmp_path / "work"
    (root / ".ralph").mkdir(parents=True)
    (root / ".git").mkdir()
    script = tmp_path / "reviewer.py"
    script.write_text(KNOWING)
    command = [sys.executable, str(script), "perfect", "{title}"]
    (root / ".ralph" / "config.yaml").write_text(
        f"# ours\nreview:\n  agent: command\n  command: {command!r}\n".replace("'", '"')
    )
    return root


def config(root: Path) -> str:
    return (root / ".ralph" / "config.yaml").read_text()


@pytest.mark.slow
def test_the_reviewer_of_the_settings_is_measured_and_applied(workspace: Path) -> None:
    few = ("--only", "race", "--only", "placeholder")
    done = ralph_here("bench", "review", "--yes-spend", "--apply", *few, cwd=workspace)
    assert done.code == 0, done.err
    assert rows(done.out)[:4] == [
        "reviewer recall false alarms undecided cost time",
        rows(done.out)[1],
        "defect command",
        "placeholder found",
    ]
    assert rows(done.out)[1].startswith("command 2 of 2 (34%–100%) 0 of 2 (0%–66%) 0 unknown")
    assert "does not show that it tells them apart" in done.err, "two of each are too few to change a setting"
    assert "cap" not in config(workspace)


def pretend(monkeypatch: pytest.MonkeyPatch, results: dict[str, Result]) -> None:
    def measured(reviewer: Reviewer, _: int, **__: object) -> Result:
        found = results[reviewer.name]
        who = {"reviewer": reviewer.name, "agent": reviewer.agent.NAME, "model": reviewer.model, "page": reviewer.page}
        return msgspec.structs.replace(found, **who)

    monkeypatch.setattr("ralph.cli.bench_review.measure", measured)
    monkeypatch.setattr("ralph.cli.bench_review._require_ready", lambda *_, **__: None)


GOOD, FAIR, BLIND = (
    result("x" * 16, "x" + "." * 15),
    result("x" * 12 + "....", "xxxx" + "." * 12),
    result("." * 16, "." * 16),
)


def test_the_best_one_is_set_with_a_cap_and_it_is_told_why(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, {"codex": FAIR, "security@claude/haiku": GOOD})
    names = "codex,security@claude/haiku"
    done = ralph_here("bench", "review", "--yes-spend", "--apply", "--reviewers", names, cwd=workspace)
    assert done.code == 0, done.err
    assert rows(done.out)[3].startswith("all of them together 16 of 16 (81%–100%) 4 of 16")
    assert "security@claude/haiku found 16 of 16 (81%–100%) defects and objected to 1 of 16" in done.err
    assert "review.reviewers: not set -> security@claude/haiku" in done.err
    assert "review.cap: 5 -> 4" in done.err
    assert config(workspace).startswith("# ours\n")
    again = ralph_here("bench", "review", "--yes-spend", "--apply", "--reviewers", names, cwd=workspace)
    assert "the settings say so already" in again.err
    shown = ralph_here("config", "get", "review.reviewers", cwd=workspace)
    assert shown.out.strip() == '["security@claude/haiku"]'
    assert ralph_here("config", "get", "review.cap", cwd=workspace).out.strip() == "4"


def test_another_agent_does_not_inherit_the_command_line(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, {"codex": GOOD})
    done = ralph_here("bench", "review", "--yes-spend", "--apply", "--reviewers", "codex", cwd=workspace)
    assert done.code == 0, done.err
    assert ralph_here("config", "get", "review.agent", cwd=workspace).out.strip() == "codex"
    assert ralph_here("config", "get", "review.command", cwd=workspace).out.strip() == "[]"


def test_nothing_is_set_if_the_user_says_no(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, {"codex": GOOD})
    asked: list[str] = []

    def refuse(question: str) -> bool:
        asked.append(question)
        return False

    monkeypatch.setattr("ralph.cli.bench_review.is_interactive", lambda: True)
    monkeypatch.setattr("ralph.cli.bench_review.ask", refuse)
    before = config(workspace)
    done = ralph_here("bench", "review", "--yes-spend", "--apply", "--reviewers", "codex", cwd=workspace)
    assert (asked, config(workspace)) == (["change these settings?"], before)
    assert "nothing was changed" in done.err


def test_a_reviewer_that_finds_nothing_is_not_set(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, {"codex": BLIND})
    before = config(workspace)
    done = ralph_here("bench", "review", "--yes-spend", "--apply", "--reviewers", "codex", cwd=workspace)
    assert "--apply changed nothing" in done.err
    assert config(workspace) == before


def test_part_of_the_reviews_is_not_passed_off_as_all(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    part = msgspec.structs.replace(GOOD, cases=64, problem="the $5 of --max-cost are spent")
    pretend(monkeypatch, {"codex": part})
    before = config(workspace)
    done = ralph_here("bench", "review", "--yes-spend", "--apply", "--reviewers", "codex", cwd=workspace)
    assert done.code == 1
    assert "codex: 32 of 64 reviews: the $5 of --max-cost are spent" in done.err
    assert "no reviewer gave all of its reviews" in done.err
    assert config(workspace) == before


@pytest.mark.slow
def test_a_scripted_model_objects_by_turns(acme: Path, tmp_path: Path) -> None:
    done = ralph_here("bench", "review", "--reviewers", "quality@acme", "--only", "race", "--json", cwd=tmp_path)
    [found] = done.json
    assert done.code == 0, done.err
    assert (found["reviewer"], found["page"], found["is_scripted"]) == ("quality@acme", "quality", True)
    assert found["recall"]["count"] == found["false_alarms"]["count"] == 1
    assert found["suggested"] == {}


@pytest.mark.parametrize(
    ("arguments", "code", "texts"),
    [
        (("--reviewers", "cluade"), 64, ("unknown reviewer 'cluade'", "@AGENT")),
        (("--reviewers", "claude/"), 64, ("claude/ names no model",)),
        (("--reviewers", "scripted"), 64, ("reviews by a script",)),
        (("--reviewers", "acme", "--only", "typo"), 64, ("unknown kind of defect 'typo'", "off by one")),
        (("--reviewers", "acme", "--rounds", "0"), 64, ("--rounds must be at least 1",)),
        (("--reviewers", "acme", "--max-cost", "0"), 64, ("--max-cost must be more than 0",)),
        (("--reviewers", "acme", "--apply"), 64, ("say nothing", "add --yes-spend")),
        (("--reviewers", "acme", "--yes-spend"), 78, ("Acme does not appear to be logged in", "run `acme login`")),
        (("--reviewers", "quality@claude"), 78, ("claude not found on PATH",)),
        (("--apply", "--yes-spend"), 64, ("--apply needs a workspace",)),
    ],
)
def test_mistakes_are_told_before_the_first_review(
    arguments: tuple[str, ...], code: int, texts: tuple[str, ...], acme: Path, tmp_path: Path
) -> None:
    done = ralph_here("bench", "review", *arguments, cwd=tmp_path, env={"PATH": f"{acme.parent}:/usr/bin:/bin"})
    assert (done.code, done.out) == (code, "")
    assert all(text in done.err for text in texts), done.err
    assert not [*tmp_path.glob("project-*")]


@pytest.mark.client
@pytest.mark.slow
def test_the_real_claude_client_reviews_at_default_settings(tmp_path: Path) -> None:
    program = tmp_path / "bin" / "claude"
    for folder in (program.parent, tmp_path / "here"):
        folder.mkdir()
    program.symlink_to(CLIENT)
    path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    done = ralph_here("bench", "review", "--only", "race", "--json", cwd=tmp_path / "here", env={"PATH": path})
    [found] = done.json
    assert (found["reviewer"], found["problem"], found["undecided"]) == ("claude", "", 0)
    assert found["recall"]["count"] == found["false_alarms"]["count"] == 1
    assert found["cost_usd"] > 0
