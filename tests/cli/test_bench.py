"""`ralph bench`: agents side by side on one small project."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from ralph.trial import bench
from ralph.trial.model import serve
from ralph.trial.stage import REQUEST
from ralph.trial.tool_calls import in_shell
from support.cli import ralph_here
from support.clients import CLIENT
from support.plugins import install_acme

HEAD = "agent stories false claims caught calls tokens cost time"


@pytest.fixture
def acme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    return install_acme(tmp_path, monkeypatch)


def score(**values: Any) -> bench.Score:
    known: dict[str, Any] = {
        "agent": "acme",
        "model": "",
        "done": 3,
        "stories": 3,
        "false_claims": 1,
        "sessions": 4,
        "calls": 11,
    }
    more = {"tokens": 1320, "reports_usage": True, "cost_usd": 0.011, "seconds": 20.84, "code": 0}
    return bench.Score(**(known | more | values))


def rows(text: str) -> list[str]:
    return [" ".join(line.split()) for line in text.splitlines()]


def test_what_is_estimated_is_marked_and_what_is_not_known_is_not_invented(
    acme: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scores = {
        "": score(),
        "m": score(model="m", cost_usd=0.0036, is_estimated=True),
        "n": score(model="n", cost_usd=None, calls=None, reports_usage=False, tokens=0),
        "o": score(model="o", done=1, code=5, problem="it broke", kept="/folder"),
    }
    monkeypatch.setattr("ralph.cli.bench.run_bench", lambda _, model, **__: scores[model])
    done = ralph_here("bench", "acme", "acme/m", "acme/n", "acme/o", "acme", cwd=tmp_path)
    assert rows(done.out) == [
        HEAD,
        "acme 3 of 3 1 11 1,320 $0.0110 20.8 s",
        "acme/m 3 of 3 1 11 1,320 ~$0.0036 20.8 s",
        "acme/n 3 of 3 1 unknown unknown unknown 20.8 s",
        "acme/o 1 of 3 1 11 1,320 $0.0110 20.8 s",
    ]
    assert done.code == 1
    assert "acme: it broke; its folder was kept: /folder" in done.err


@pytest.mark.slow
def test_agents_are_compared_on_the_same_stories(acme: Path, tmp_path: Path) -> None:
    """The same client twice: it reports the cost of its own model, the other is estimated."""
    done = ralph_here("bench", "acme", "acme/gpt-5", cwd=tmp_path)
    assert done.code == 0, done.out + done.err
    head, first, second = rows(done.out)
    assert head == HEAD
    assert first.startswith("acme 3 of 3 1 11 1,320 $0.0110 ")
    assert second.startswith("acme/gpt-5 3 of 3 1 11 1,320 ~$0.0036 ")
    assert "on a scripted model: only clients are compared" in done.err
    assert not [*tmp_path.glob("ralph-bench-*")]


@pytest.mark.slow
@pytest.mark.defaults
def test_real_services_are_used_with_the_login_and_the_network_of_the_user(
    acme: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A service on loopback takes their place. The first story is claimed before it is done."""
    turns: list[dict[str, Any]] = []
    for task in (None, *bench.TASKS):
        files = [[REQUEST, '{"claim": "done"}'], *([[task.file, task.solution]] if task else [])]
        turns += [*({"run": in_shell("write", file)} for file in files), {"say": "Done."}]
    server, address = serve(turns, tmp_path / "requests.jsonl")
    env = {"ACME_BASE_URL": address, "ACME_API_KEY": "x"}
    done = ralph_here("bench", "acme", "--yes-spend", "--max-cost", "2", cwd=tmp_path, env=env)
    server.shutdown()
    server.server_close()
    assert done.code == 0, done.out + done.err
    assert rows(done.out)[1].startswith("acme 3 of 3 1 11 1,320 $0.0110 ")
    assert "the real services; this costs money" in done.err


@pytest.mark.slow
def test_an_agent_that_fails_is_told_with_its_folder(acme: Path, tmp_path: Path) -> None:
    text = acme.read_text()
    acme.write_text(text.replace("done = subprocess.run(command", "done = subprocess.run('true'"))
    done = ralph_here("bench", "acme/scripted", "--json", cwd=tmp_path)
    [found] = done.json
    assert done.code == 1
    assert (found["agent"], found["model"], found["done"], found["stories"]) == ("acme", "scripted", 0, 3)
    assert found["cost_usd"] is None
    assert found["problem"]
    assert (Path(found["kept"]) / "output").is_file()


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
    for folder in (program.parent, tmp_path / "here"):
        folder.mkdir()
    program.symlink_to(CLIENT)
    path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    [found] = ralph_here("bench", "claude", "--json", cwd=tmp_path / "here", env={"PATH": path}).json
    assert (found["done"], found["false_claims"], found["problem"]) == (3, 1, "")
    assert found["cost_usd"] > 0
    assert not found["is_estimated"]
