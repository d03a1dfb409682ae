"""`ralph bench`: agents side by side on one small project."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from ralph.trial import bench
from support.cli import ralph_here
from support.clients import CLIENT
from support.plugins import install_acme

HEAD = "agent stories false claims caught calls tokens cost time"


@pytest.fixture
def acme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return install_acme(tmp_path, monkeypatch)


@pytest.mark.slow
def test_agents_are_compared_in_a_table(acme: Path, tmp_path: Path) -> None:
    """The same client thrice: with a cost of its own, with one from list prices, and with none."""
    done = ralph_here("bench", "acme", "acme/gpt-5", "acme/scripted", "acme", cwd=tmp_path)
    assert done.code == 0, done.out + done.err
    head, *rows = [line.split() for line in done.out.splitlines()]
    assert " ".join(head) == HEAD
    three, seconds = ["3", "of", "3"], [row[-2:] for row in rows]
    assert [row[:-2] for row in rows] == [
        ["acme", *three, "1", "11", "1,320", "$0.0110"],
        ["acme/gpt-5", *three, "1", "11", "1,320", "~$0.0036"],
        ["acme/scripted", *three, "1", "11", "1,320", "unknown"],
    ]
    assert all(unit == "s" and float(number) > 0 for number, unit in seconds)
    assert "on a scripted model: only clients are compared" in done.err
    assert not [*tmp_path.glob("ralph-bench-*")]


@pytest.mark.slow
def test_an_agent_that_fails_is_told_with_its_folder(acme: Path, tmp_path: Path) -> None:
    text = acme.read_text()
    acme.write_text(text.replace("done = subprocess.run(command", "done = subprocess.run('true'"))
    done = ralph_here("bench", "acme", "--json", cwd=tmp_path)
    [score] = done.json
    assert done.code == 1
    assert (score["done"], score["stories"], score["agent"]) == (0, 3, "acme")
    assert score["problem"]
    assert (Path(score["kept"]) / "output").is_file()


@pytest.mark.parametrize(
    ("arguments", "code", "texts"),
    [
        (("cluade/haiku",), 64, ("unknown agent 'cluade'", "did you mean claude?")),
        (("command",), 64, ("no client of its own",)),
        (("scripted",), 64, ("cannot be pointed at a scripted model",)),
        (("acme", "--max-cost", "0"), 64, ("--max-cost must be more than 0",)),
        (("acme", "--yes-spend"), 78, ("Acme does not appear to be logged in", "run `acme login`")),
        (("acme", "claude"), 78, ("claude not found on PATH", "npm install -g @anthropic-ai/claude-code")),
    ],
)
def test_mistakes_are_told_before_the_first_agent_starts(
    arguments: tuple[str, ...], code: int, texts: tuple[str, ...], acme: Path, tmp_path: Path
) -> None:
    path = f"{acme.parent}:/usr/bin:/bin"
    done = ralph_here("bench", *arguments, cwd=tmp_path, env={"PATH": path})
    assert (done.code, done.out) == (code, "")
    assert all(text in done.err for text in texts), done.err
    assert not [*tmp_path.glob("ralph-bench-*")]


def test_no_agent_is_a_mistake(tmp_path: Path) -> None:
    assert ralph_here("bench", cwd=tmp_path).code == 64


@pytest.mark.parametrize("task", bench.TASKS, ids=lambda task: task.file)
def test_the_scripted_solution_meets_the_check_and_nothing_does_not(
    task: bench.Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: dict[str, object] = {}
    exec(task.solution, made)
    module, _, _ = task.file.partition(".")
    call = task.check.partition("; ")[2]
    exec(call, {module: made[module]})
    with pytest.raises(AssertionError):
        exec(call, {module: lambda *_: None})


@pytest.mark.client
@pytest.mark.slow
def test_the_real_claude_client(tmp_path: Path) -> None:
    program = tmp_path / "bin" / "claude"
    program.parent.mkdir()
    program.symlink_to(CLIENT)
    path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    [score] = ralph_here("bench", "claude", "--json", cwd=tmp_path, env={"PATH": path}).json
    assert (score["done"], score["false_claims"], score["problem"]) == (3, 1, "")
    assert score["cost_usd"] > 0
    assert not score["is_estimated"]
