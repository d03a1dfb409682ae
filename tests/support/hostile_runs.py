"""Runs whose plan and agent try to get out of a page, a terminal and a line of metrics. Told, not run."""

from __future__ import annotations

import json
from pathlib import Path

from ralph.core.agent import Text
from ralph.core.events import AgentSaid, PlanSeen, RunStarted
from ralph.core.verdict import Kind
from ralph.host.locks import Owner
from support.told_runs import RUN, ToldRun, seen

IMAGE = "<img src=x onerror=alert(1)>"
PLAN = 'Shop "a\\b"\nnew'
SECRET = 'correct-horse-"battery"-99'
"""The value of SHOP_API_TOKEN, where a test sets it: unknown when the journal was written."""
ANSI = "\x1b[31mred\x1b[0m \x1b]0;title\x07 \u202egnp.exe "


def journal_of(state: Path, run: str = RUN, workspace: str = "shop-1") -> Path:
    return state / workspace / "runs" / run / "events.jsonl"


def tell(state: Path, run: str = RUN, *, is_alive: bool = False) -> ToldRun:
    """A run with a plan of three stories."""
    journal = journal_of(state, run)
    journal.parent.mkdir(parents=True)
    owner = Owner.here(run)
    told = ToldRun(journal)
    told.say(
        RunStarted(
            run=run,
            workspace="/nowhere/shop",
            layout="plan.md",
            plan="/nowhere/shop/plan.md",
            name=PLAN,
            pid=owner.pid if is_alive else 1,
            start=owner.start if is_alive else "never",
            host=owner.host,
            version="1.2.3",
            agent="claude",
            model="sonnet",
            branch="main",
            total=3,
        ),
        PlanSeen(whole=True, stories=(seen("US-001"), seen("US/2 ü"), seen("US-003"))),
    )
    return told


def tell_hostile(state: Path, run: str = RUN) -> ToldRun:
    told = tell(state, run)
    told.begin(1, "US-001", IMAGE)
    told.say(AgentSaid(1, Text(f"{ANSI}the key is {SECRET}")))
    told.judge(1, Kind.REJECTED)
    told.end(1, Kind.REJECTED, title=IMAGE, headline=f"{ANSI}{SECRET}")
    told.iterate(2)
    told.stop()
    return told


def write_log(journal: Path, lines: list[str], iteration: int = 1) -> Path:
    """What a Claude Code session printed."""
    raw = journal.parent / "raw" / f"{iteration:04}-agent.log"
    raw.parent.mkdir(exist_ok=True)
    said = ({"type": "assistant", "message": {"content": [{"type": "text", "text": line}]}} for line in lines)
    raw.write_text("".join(f"{json.dumps(each)}\n" for each in said))
    return raw
