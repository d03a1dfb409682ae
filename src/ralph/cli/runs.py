"""List the runs of this workspace, newest first, and how each of them ended."""

from __future__ import annotations

import os
import time
from argparse import ArgumentParser, Namespace

from ralph.cli.arguments import add_json, add_workspace
from ralph.cli.output import emit_json, paint, say, say_raw, warn
from ralph.cli.words import duration, money
from ralph.core.errors import BadData
from ralph.core.events import CLOSED_LATER
from ralph.core.text import one_line, plural
from ralph.journal.records import read
from ralph.journal.run_state import RunState
from ralph.state.locks import is_alive
from ralph.workspace.runs import chosen_runs

EXAMPLES = """
ralph runs                     the last 20
ralph runs -f user-login -n 5  the last five of one plan
ralph runs --json              for scripts
"""


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("-n", "--number", type=int, default=20, metavar="N", help="how many runs (default: 20)")
    add_workspace(parser)
    add_json(parser)


def run(args: Namespace) -> int:
    rows = []
    for path in reversed(chosen_runs(args, os.environ)[-max(args.number, 1) :]):
        state = RunState()
        try:
            for record in read(path):
                state.add(record)
        except BadData as error:
            warn(str(error))
        rows.append(_row(path.parent.name, state))
    if args.json:
        emit_json(rows)
        return 0
    if not rows:
        say("No runs yet.")
    for row in rows:
        end = str(row["reason"] or ("running" if row["running"] else "killed"))
        end = "killed" if row["detail"] == CLOSED_LATER else end
        style = "green" if end == "complete" else "yellow"
        iterations = plural(int(str(row["iterations"])), "iteration")
        facts = f"{row['done']}/{row['total']} stories, {iterations}, {row['took']}, {row['cost']}"
        say_raw(f"{row['run']}  {paint(f'{end:<14}', style)} {facts}  {one_line(str(row['name']), 40)}")
    return 0


def _row(name: str, state: RunState) -> dict[str, object]:
    started = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(state.started_at)) if state.started else None
    return {
        "run": name,
        "name": state.started.name if state.started else "",
        "started": started,
        "seconds": round(state.now - state.started_at, 1),
        "took": duration(state.now - state.started_at),
        "reason": state.ended.reason.value if state.ended else None,
        "running": state.ended is None and is_alive(state.started),
        "detail": state.ended.detail if state.ended else "",
        "done": state.done,
        "total": state.total,
        "iterations": state.count,
        "tokens": state.tokens.total,
        "cost_usd": state.cost_usd,
        "cost": money(state.cost_usd),
        "commits": len(state.commits),
    }
