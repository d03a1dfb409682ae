"""Every budget, with real runs: what is spent is counted, and nothing starts with nothing left."""

from __future__ import annotations

import json
import os
import platform
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ralph.core.events import AgentStarted, Charged, Foreseen, IterationEnded, Noted, Reserved, RunEnded, SpendingSeen
from ralph.core.money import Basis
from ralph.core.moves import Reason
from ralph.core.verdict import Kind
from ralph.host.process.tree import identify
from ralph.journal.ledger import Ledger, Reserve, Settle
from ralph.journal.records import read
from ralph.run.replay import replay
from support.cli import ralph
from support.spenders import Spender, idles, works

THREE = [[works(1, usd=0.4, input=100)], [works(2, usd=0.7, input=200)], [works(3, usd=0.2, input=300)]]


def of(events: list[Any], kind: type) -> list[Any]:
    return [event for event in events if isinstance(event, kind)]


def stopped(project: Spender, number: int = -1) -> RunEnded:
    events = project.events(number)
    path = project.journals()[number]
    assert replay(read(path)).differences == ()
    (end,) = of(events, RunEnded)
    assert isinstance(end, RunEnded)
    return end


def stories_done(project: Spender) -> list[bool]:
    plan = json.loads((project.root / ".ralph/work/prd.json").read_text())
    return [story["passes"] for story in plan["userStories"]]


def test_a_run_stops_when_its_money_is_spent_and_the_next_one_goes_on(tmp_path: Path) -> None:
    project = Spender(tmp_path, THREE)
    ran = project.run("--max-cost", "1")
    assert ran.code == 4, ran.out
    assert "this run's budget of $1.00 (budget.run_usd) is spent: $1.10" in ran.out
    assert stopped(project).reason is Reason.BUDGET
    assert stories_done(project) == [True, True, False]
    reserved = of(project.events(), Reserved)
    assert [event.usd for event in reserved] == [1, 0.6]
    charged = of(project.events(), Charged)
    assert [(event.story, event.usd, event.basis) for event in charged] == [
        ("S-1", 0.4, Basis.REPORTED),
        ("S-2", 0.7, Basis.REPORTED),
    ]
    assert project.run("--max-cost", "1").code == 0
    assert stories_done(project) == [True, True, True]


def test_a_run_stops_when_its_tokens_are_used_up(tmp_path: Path) -> None:
    project = Spender(tmp_path, THREE)
    ran = project.run("--max-tokens", "300")
    assert ran.code == 4, ran.out
    assert "300 tokens (budget.run_tokens) is spent: 300 tokens" in ran.out
    assert stories_done(project) == [True, True, False]


def test_a_story_over_its_budget_is_set_aside_and_the_others_go_on_over_runs(tmp_path: Path) -> None:
    project = Spender(
        tmp_path, [[idles(usd=0.3)], [works(2, usd=0.1)]], budget={"story_usd": 0.5}, max_loops_per_task=0
    )
    ran = project.run()
    assert ran.code == 4, ran.out
    assert "$0.20 left of budget.story_usd do not pay for another session of S-1 (at least $0.30)" in ran.out
    assert stopped(project).reason is Reason.BUDGET
    assert stories_done(project) == [False, True]
    again = project.run()
    assert again.code == 4
    assert of(project.events(), AgentStarted) == []
    assert "another session of S-1" in stopped(project).detail
    assert project.cost("--reset").code == 0
    project.play([[works(1, usd=0.1)]])
    assert project.run().code == 0


def test_a_storys_tokens_are_bounded_too(tmp_path: Path) -> None:
    project = Spender(tmp_path, [[idles(input=90)], [works(2, input=1)]], budget={"story_tokens": 100})
    assert project.run().code == 4
    assert [event.story for event in of(project.events(), IterationEnded)] == ["S-1", "S-2"], (
        "10 tokens are left, and a session took 90"
    )


@pytest.mark.parametrize(
    ("key", "most", "words"),
    [
        ("day_usd", 1, "today's budget of $1.00 (budget.day_usd) is spent: $1.10; it resets tomorrow"),
        ("workspace_usd", 1, "the workspace's budget of $1.00"),
        ("day_tokens", 300, "today's budget of 300 tokens"),
    ],
)
def test_what_earlier_runs_spent_counts_for_the_day_and_the_workspace(
    tmp_path: Path, key: str, most: float, words: str
) -> None:
    project = Spender(tmp_path, THREE, budget={key: most})
    assert project.run("-n", "2").code in (1, 4)
    ran = project.run()
    assert ran.code == 4, ran.out
    assert words in ran.out
    assert stopped(project).reason is Reason.BUDGET
    assert of(project.events(), AgentStarted) == []
    if key.endswith("usd"):
        assert project.cost("--reset").code == 0
        assert project.run().code == (0 if key.startswith("workspace") else 4)


def test_yesterdays_money_is_not_todays(tmp_path: Path) -> None:
    project = Spender(tmp_path, THREE, budget={"day_usd": 1})
    assert project.run("-n", "1").code == 1
    ledger = project.ledger()
    lines = [json.loads(line) for line in ledger.read_text().splitlines() if line]
    for line in lines:
        line["t"] -= 24 * 3600
        line["micros"] = 5_000_000 if line["type"] == "settle" else None
    ledger.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert project.run().code == 0


def test_a_worktree_spends_the_same_money(tmp_path: Path) -> None:
    project = Spender(tmp_path, THREE, budget={"day_usd": 1, "workspace_usd": 50})
    assert project.run("--worktree", "-n", "2").code in (1, 4)
    assert stories_done(project) == [False, False, False]
    ran = project.run()
    assert ran.code == 4, ran.out
    assert "today's budget of $1.00" in ran.out
    assert len(list(project.state.glob("*/spending.jsonl"))) == 1
    told = project.cost("--by", "story", "--json").json
    assert {row["name"]: row["usd"] for row in told["rows"]} == {"S-1": 0.4, "S-2": 0.7}


def fake_claude(folder: Path, *lines: dict[str, Any], code: int = 0) -> Path:
    """A program that says these lines of the client's stream, and writes down how it was called."""
    program = folder / "claude"
    said = "".join(json.dumps(line) + "\n" for line in lines)
    program.write_text(
        f"#!/bin/sh\nprintf '%s\\n' \"$*\" >> {folder}/calls\nprintf x >> s1.txt\ncat <<'END'\n{said}END\nexit {code}\n"
    )
    program.chmod(0o755)
    return program


def result(**fields: Any) -> dict[str, Any]:
    return {"type": "result", "subtype": "success", "is_error": False, "result": "ok", "num_turns": 1} | fields


def claude_config(program: Path, **agent: Any) -> dict[str, Any]:
    return {"agent": {"name": "claude", "command": [str(program)], **agent}, "canary": "off", "max_loops_per_task": 0}


def budgets_given(folder: Path) -> list[str]:
    calls = [line.split() for line in (folder / "calls").read_text().splitlines()]
    return [words[words.index("--max-budget-usd") + 1] if "--max-budget-usd" in words else "" for words in calls]


def test_what_is_left_goes_into_the_client(tmp_path: Path) -> None:
    program = fake_claude(tmp_path, result(total_cost_usd=0.123456))
    project = Spender(tmp_path, [[]], **claude_config(program, budget_usd=0.3), budget={"run_usd": 0.5})
    assert project.run("-n", "9").code in (1, 4)
    assert budgets_given(tmp_path)[:3] == ["0.3", "0.3", "0.253"]


def test_a_client_that_uses_up_its_budget_is_judged_by_its_work_and_does_not_loop_for_ever(tmp_path: Path) -> None:
    used_up = result(
        result="",
        subtype="error_max_budget_usd",
        is_error=True,
        terminal_reason="budget_exhausted",
        errors=["Reached maximum budget ($0.5)"],
        total_cost_usd=0.51,
    )
    program = fake_claude(tmp_path, used_up, code=1)
    project = Spender(tmp_path, [[]], **claude_config(program), budget={"run_usd": 0.5})
    ran = project.run()
    assert ran.code == 4, ran.out
    (end,) = of(project.events(), IterationEnded)
    assert end.kind is Kind.PARTIAL
    assert end.headline == "the agent reached its spending limit: Reached maximum budget ($0.5)"
    assert end.commit


def test_tokens_without_a_cost_are_counted_at_list_prices(tmp_path: Path) -> None:
    used = {"claude-sonnet-5-5": {"inputTokens": 100_000, "outputTokens": 50_000, "cacheReadInputTokens": 1_000_000}}
    program = fake_claude(tmp_path, result(modelUsage=used))
    project = Spender(tmp_path, [[]], **claude_config(program), budget={"run_usd": 0.8})
    ran = project.run("-n", "5")
    assert ran.code == 4, ran.out
    (charged,) = of(project.events(), Charged)
    assert (charged.usd, charged.basis, charged.model) == (0.8, Basis.ESTIMATED, "claude-sonnet-5-5")
    assert "~$0.80 for 1 iteration" in project.cost().out


def test_a_model_without_a_price_is_told_once_and_its_tokens_are_bounded(tmp_path: Path) -> None:
    used = {"strange-model": {"inputTokens": 600, "outputTokens": 0}}
    program = fake_claude(tmp_path, result(modelUsage=used))
    project = Spender(tmp_path, [[]], **claude_config(program), budget={"run_usd": 5, "run_tokens": 1000})
    ran = project.run("-n", "9")
    assert ran.code == 4, ran.out
    assert ran.out.count("the cost of strange-model is unknown") == 1
    assert "1,000 tokens (budget.run_tokens) is spent: 1,200 tokens" in ran.out
    told = project.cost("--json").json["total"]
    assert (told["usd"], told["unknown"]) == (0, 2)
    assert project.cost().out.startswith("unknown for 2 iterations")


def test_ones_own_prices_count(tmp_path: Path) -> None:
    program = fake_claude(tmp_path, result(modelUsage={"strange-model": {"inputTokens": 1_000_000, "outputTokens": 0}}))
    project = Spender(tmp_path, [[]], **claude_config(program), budget={"run_usd": 2, "prices": ".ralph/prices.yaml"})
    (project.root / ".ralph/prices.yaml").write_text("models: {strange-*: {input: 3, output: 9}}\n")
    assert project.run("-n", "3").code == 4
    assert [event.usd for event in of(project.events(), Charged)] == [3]
    (project.root / ".ralph/prices.yaml").write_text("models: {strange: {input: cheap}}\n")
    wrong = project.run()
    assert wrong.code == 65
    assert "prices.yaml" in wrong.err
    assert "not a valid price file" in wrong.err


def test_a_session_that_is_ended_before_its_result_is_charged_for_what_was_read(tmp_path: Path) -> None:
    usage = {"input_tokens": 1_000_000, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}
    message = {"id": "m", "model": "claude-sonnet-5-5", "content": [{"type": "text", "text": "so"}], "usage": usage}
    begun = {"type": "system", "subtype": "init", "model": "claude-sonnet-5-5"}
    said = {"type": "assistant", "message": message, "parent_tool_use_id": None}
    program = fake_claude(tmp_path, begun, said, code=1)
    project = Spender(tmp_path, [[]], **claude_config(program), budget={"run_usd": 2})
    assert project.run("-n", "3").code == 4
    (charged,) = of(project.events(), Charged)
    assert (charged.usd, charged.basis, charged.tokens) == (2, Basis.ESTIMATED, 1_000_000)


@pytest.mark.parametrize("cost", [-5, 1e300])
def test_nonsense_for_a_cost_neither_fills_a_budget_nor_empties_it(tmp_path: Path, cost: Any) -> None:
    program = fake_claude(tmp_path, result(total_cost_usd=cost))
    project = Spender(tmp_path, [[]], **claude_config(program), budget={"run_usd": 2, "day_usd": 3})
    assert project.run("-n", "1").code == 1
    (charged,) = of(project.events(), Charged)
    assert (charged.usd, charged.basis) == (None, Basis.UNKNOWN)
    assert Ledger(project.ledger().parent).refresh().ever.micros == 0


def test_a_run_that_is_killed_before_its_session_says_anything_has_an_unknown_cost(tmp_path: Path) -> None:
    project = Spender(tmp_path, [[{"implement": [{"sleep": 60}]}]], budget={"day_usd": 2})
    command = [sys.executable, "-m", "ralph", "run", "--plain"]
    with subprocess.Popen(
        command, cwd=project.root, env={**os.environ, **project.env}, stdout=subprocess.DEVNULL
    ) as run:
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline and '"AgentStarted"' not in _text(project):
            time.sleep(0.05)
        run.send_signal(signal.SIGKILL)
    book = Ledger(project.ledger().parent).refresh()
    assert [(line.story, line.micros) for line in book.open] == [("S-1", 1_000_000)]
    project.play([[works(1, usd=0.1)]])
    ran = project.run()
    assert ran.code == 0, ran.out
    assert "was killed during a session whose cost is unknown" in ran.out
    book = Ledger(project.ledger().parent).refresh()
    assert book.open == ()
    assert (book.ever.micros, book.ever.unknown) == (100_000, 1), "not the $1.00 that were set aside"
    told = project.cost().out
    assert "$0.10 +? for 2 iterations in 2 runs" in told
    assert "1 iteration of unknown cost, not included" in told


def _text(project: Spender) -> str:
    return "".join(path.read_text() for path in project.state.glob("*/runs/*/events.jsonl"))


def test_a_run_that_was_killed_after_its_session_is_charged_what_that_cost(tmp_path: Path) -> None:
    project = Spender(tmp_path, THREE, budget={"workspace_usd": 5})
    assert project.run("-n", "1").code == 1
    ledger = project.ledger()
    kept = [line for line in ledger.read_text().splitlines() if line and '"settle"' not in line]
    ledger.write_text("\n".join(kept).replace(f'"pid":{_pid(kept)}', '"pid":999999999') + "\n")
    assert project.run("-n", "1").code == 1
    settled = [line for line in _lines(ledger) if isinstance(line, Settle)]
    assert [(line.story, line.micros, line.basis) for line in settled] == [
        ("S-1", 400_000, Basis.REPORTED),
        ("S-2", 700_000, Basis.REPORTED),
    ]


def _pid(lines: list[str]) -> int:
    (reserve,) = [json.loads(line) for line in lines if '"reserve"' in line]
    return int(reserve["pid"])


def _lines(path: Path) -> list[Any]:
    return [
        msgspec.json.decode(line, type=Reserve | Settle) for line in path.read_bytes().splitlines() if _counts(line)
    ]


def _counts(line: bytes) -> bool:
    return b'"reserve"' in line or b'"settle"' in line


def test_what_another_run_has_set_aside_is_waited_for(tmp_path: Path) -> None:
    """Its process is this one, which is alive; then it gives back what it did not need."""
    project = Spender(tmp_path, [[works(1, usd=0.1)]], budget={"day_usd": 2})
    assert project.cost("--reset").code == 0
    ledger = Ledger(project.ledger().parent)
    me = identify(os.getpid())
    assert me is not None
    held = Reserve(
        id="other/1/1",
        t=time.time(),
        run="other",
        plan="p",
        micros=2_000_000,
        pid=me.pid,
        start=me.start,
        host=platform.node(),
    )
    ledger.append(held)
    command = [sys.executable, "-m", "ralph", "run", "--plain"]
    out = subprocess.PIPE
    with subprocess.Popen(command, cwd=project.root, env={**os.environ, **project.env}, stdout=out) as run:
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline and '"WaitStarted"' not in _text(project):
            time.sleep(0.05)
        run.send_signal(signal.SIGINT)
        said = run.communicate(timeout=30)[0].decode()
    assert "the rest of today's budget, $2.00, is reserved by other runs" in said
    assert of(project.events(), AgentStarted) == []
    ledger.append(Settle(id="other/1/1", t=time.time(), run="other", plan="p", micros=300_000))
    assert project.run().code == 0
    (seen, *_) = of(project.events(), SpendingSeen)
    assert (seen.elsewhere.day.micros, seen.elsewhere.held.micros) == (300_000, 0)
    (reserved,) = of(project.events(), Reserved)
    assert reserved.usd == 0.85


def test_torn_and_foreign_lines_of_the_ledger_spoil_no_other(tmp_path: Path) -> None:
    project = Spender(tmp_path, THREE, budget={"day_usd": 1})
    assert project.run("-n", "1").code == 1
    with project.ledger().open("ab") as stream:
        stream.write(b'{"type":"settle","id":"torn')
    ran = project.run()
    assert ran.code == 4, ran.out
    assert Ledger(project.ledger().parent).refresh().ever.micros == 1_100_000
    again = project.run()
    assert "1 line of " in again.out
    assert "could not be read; the amount is not counted" in again.out


def test_a_ledger_that_cannot_be_written_stops_a_run_with_a_budget_and_no_other(tmp_path: Path) -> None:
    project = Spender(tmp_path, THREE)
    assert project.run("-n", "1").code == 1
    ledger = project.ledger()
    ledger.unlink()
    ledger.mkdir()
    assert project.run("-n", "1").code == 1
    assert of(project.events(), IterationEnded)
    refused = project.run("--max-cost", "5")
    assert refused.code == 78, refused.out
    assert "budgets cannot be enforced without the ledger" in refused.err
    assert of(project.events(), AgentStarted) == []


def test_nothing_is_set_aside_or_told_where_no_budget_is_set(tmp_path: Path) -> None:
    project = Spender(tmp_path, THREE)
    assert project.run().code == 0
    assert of(project.events(), Reserved) == of(project.events(), SpendingSeen) == []
    assert [event.usd for event in of(project.events(), Charged)] == [0.4, 0.7, 0.2]
    assert not [event for event in of(project.events(), Noted) if "cost" in event.text]


def test_a_run_tells_what_it_foresees_and_learns_from_what_came(tmp_path: Path) -> None:
    project = Spender(tmp_path, [[works(n, usd=0.5)] for n in range(1, 8)])
    ran = project.run("-n", "5")
    assert "forecast: no data yet (needs 3 finished stories, 0 so far)" in ran.out
    first, *_, last = of(project.events(), Foreseen)
    assert (first.stories, first.samples, last.stories, last.samples) == (7, 0, 2, 5)
    assert last.iterations == (2, 2)
    assert last.usd == (1, 1)
    again = project.run()
    assert again.code == 0
    assert "forecast: 2 iterations" in again.out
    assert "from 5 stories of this workspace" in again.out
    assert "No story is open" in project.cost("--forecast").out
    told = project.cost("--forecast", "--json").json
    assert told["kept"] == {"runs": 1, "within_half": 1, "within_most": 1}


def test_a_run_that_can_hardly_finish_within_its_budget_stops_if_it_is_to(tmp_path: Path) -> None:
    budget = {"least_chance": 0.5, "run_usd": 3}
    project = Spender(tmp_path, [[works(n, usd=0.5)] for n in range(1, 8)], budget=budget)
    ran = project.run()
    assert ran.code == 4, ran.out
    assert stopped(project).reason is Reason.OUT_OF_REACH
    assert stories_done(project) == [True] * 5 + [False] * 2
    assert "the chance to finish within the budget is 0%" in ran.out


def test_money_spent_in_vain_makes_it_less_likely(tmp_path: Path) -> None:
    tries = [*([works(n, usd=0.5)] for n in range(1, 6)), [idles(usd=0.6)], [works(7, usd=0.5)]]
    project = Spender(tmp_path, tries, max_loops_per_task=0, budget={"least_chance": 0.5, "workspace_usd": 90})
    assert project.run("-n", "5").code == 1
    assert project.run("--max-cost", "2").code == 4
    assert stopped(project).reason is Reason.OUT_OF_REACH
    assert len(of(project.events(), IterationEnded)) == 2
    assert [event.chance for event in of(project.events(), Foreseen)] == [1, 1, 0]


def test_a_dry_run_shows_the_limit_the_client_would_get_and_when_nothing_is_left(tmp_path: Path) -> None:
    program = fake_claude(tmp_path, result(total_cost_usd=0.75))
    project = Spender(tmp_path, [[]], **claude_config(program, budget_usd=9), budget={"day_usd": 2, "story_usd": 0.7})
    assert "--max-budget-usd 0.7\n" in project.run("--dry-run").out
    assert "--max-budget-usd 0.5\n" in project.run("--dry-run", "--max-cost", "0.5").out
    assert not list(project.state.glob("*/spending.*"))
    assert project.run().code == 4
    assert "Nothing to work on: budget" in project.run("--dry-run").out


def test_workers_share_the_budget_of_the_run(tmp_path: Path) -> None:
    project = Spender(tmp_path, THREE)
    ran = ralph("run", "--plain", "--max-cost", "9", "--parallel", "3", cwd=project.root, env=project.env)
    assert ran.code == 0, ran.out
    held: dict[str, float] = {}
    spent = 0.0
    for event in project.events():
        if isinstance(event, Reserved):
            assert event.usd is not None
            held[event.id] = event.usd
            assert spent + sum(held.values()) <= 9
        elif isinstance(event, Charged):
            held.pop(event.id)
            spent += event.usd or 0
    assert held == {}
    first = [event.usd for event in of(project.events(), Reserved)]
    assert first[0] == 3, "a third of it"
    assert replay(read(project.journals()[-1])).differences == ()
