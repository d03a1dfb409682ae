"""`ralph bench`: compare agents on one small project."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Iterator

from ralph.agents.registry import AGENTS
from ralph.agents.registry import agent as find_agent
from ralph.cli.agents import session_for
from ralph.cli.output import emit_json, note, paint, say_raw, warn
from ralph.core.agent_traits import login_of, traits_of
from ralph.core.errors import SetupError, UsageError
from ralph.core.exit_codes import ExitCode
from ralph.core.fallback import parts
from ralph.core.ports import Agent
from ralph.host.process.table import require_process_control
from ralph.state.places import home
from ralph.trial.bench import Score, run_bench
from ralph.trial.stage import rehearsal_of
from ralph.workspace.trust import refuse_inside_loop

_HEAD = ("agent", "stories", "false claims caught", "calls", "tokens", "cost", "time")


def compare(args: Namespace) -> int:
    require_process_control()
    refuse_inside_loop(os.environ, "compare agents")
    if not args.max_cost > 0:
        raise UsageError("--max-cost must be more than 0")
    chosen = [_chosen(word, spend=args.yes_spend) for word in dict.fromkeys(args.agents)]
    if not args.json:
        how = "the real services; this costs money" if args.yes_spend else "a scripted model: only clients are compared"
        note(f"three stories for each agent, on {how}")
    scores = []
    for agent, model in chosen:
        if not args.json:
            note(f"{agent.NAME}/{model} …" if model else f"{agent.NAME} …")
        score = run_bench(agent, model, max_cost=args.max_cost if args.yes_spend else None)
        scores.append(score)
        if score.problem and not args.json:
            warn(f"{agent.NAME}: {score.problem}; its folder was kept: {score.kept}")
    if args.json:
        emit_json(scores)
    else:
        for line in _table(scores):
            say_raw(line)
        if not args.yes_spend and any(score.cost_usd is None for score in scores):
            note("a scripted model has no price, so a cost is only known where the client names one")
    return ExitCode.COMPLETE if all(score.done == score.stories for score in scores) else ExitCode.UNFINISHED


def _chosen(word: str, *, spend: bool) -> tuple[Agent, str]:
    """Everything that can be wrong is told before the first agent starts."""
    name, model = parts(word, AGENTS.names())
    if word.endswith("/"):
        raise UsageError(f"{word} names no model", hint=f"{word[:-1]}, or {word}MODEL")
    agent = find_agent(name or word.partition("/")[0])
    if name == "command":
        raise UsageError(
            "the agent `command` has no client of its own to compare",
            hint="docs/agents.md tells how to write an adapter",
        )
    require_ready(agent, spend=spend)
    return agent, model


def require_ready(agent: Agent, *, spend: bool) -> None:
    """That the client is installed, and logged in or able to use a scripted model."""
    if not spend:
        rehearsal_of(agent, "http://127.0.0.1:9")
    agent.find(session_for(), os.environ.get("PATH", ""))
    if not spend:
        return
    traits, login = traits_of(agent), login_of(agent, os.environ, home(os.environ))
    if login.is_known and not login.by:
        raise SetupError(f"{agent.TITLE} does not appear to be logged in", hint=traits.log_in)
    if not traits.reports_usage:
        warn(f"{agent.TITLE} reports no tokens and no cost, so --max-cost cannot limit it")


def _table(scores: list[Score]) -> Iterator[str]:
    rows = [_HEAD, *(_row(score) for score in scores)]
    wide = [max(len(row[at]) for row in rows) for at in range(len(_HEAD))]
    for number, row in enumerate(rows):
        line = "  ".join(cell.ljust(wide[at]) if at == 0 else cell.rjust(wide[at]) for at, cell in enumerate(row))
        yield paint(line, "bold") if number == 0 else line


def _row(score: Score) -> tuple[str, ...]:
    cost = "unknown" if score.cost_usd is None else f"{'~' if score.is_estimated else ''}${score.cost_usd:.4f}"
    return (
        f"{score.agent}/{score.model}" if score.model else score.agent,
        f"{score.done} of {score.stories}",
        str(score.false_claims),
        "unknown" if score.calls is None else str(score.calls),
        f"{score.tokens:,}" if score.reports_usage else "unknown",
        cost,
        f"{score.seconds:.1f} s",
    )
