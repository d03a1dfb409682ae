"""What `ralph pause`, `resume` and `stop` share: find the run, send the order, report its effect."""

from __future__ import annotations

import os
import time
from argparse import ArgumentParser, Namespace

from ralph.cli.arguments import add_json, add_workspace
from ralph.cli.output import emit_json, say, warn
from ralph.core.control import Order, Verb
from ralph.core.text import one_line
from ralph.journal.records import Follower
from ralph.journal.run_state import RunState
from ralph.state import inbox
from ralph.workspace.control import ORDERS
from ralph.workspace.find import root_of
from ralph.workspace.runs import ActiveRun, choice_of, the_active_run
from ralph.workspace.trust import refuse_inside_loop

_PATIENCE = 3.0
"""Seconds to wait for the run to react to an order. It polls several times a second."""
_TICK = 0.05


def configure_orders(parser: ArgumentParser) -> None:
    parser.add_argument("--run", metavar="RUN", default="", help="a run's ID or a unique prefix of it")
    add_json(parser)
    add_workspace(parser)


def give(args: Namespace, verb: Verb) -> int:
    refuse_inside_loop(os.environ, f"{verb.value.partition('-')[0]} its own run")
    target = the_active_run(root_of(args, os.environ), choice_of(args), args.run, os.environ)
    before, now, news = RunState(), RunState(), Follower(target.journal)
    for record in news.news():
        before.add(record)
        now.add(record)
    order = inbox.put(target.state / ORDERS, Order(verb=verb, run=target.run, at=time.time()))
    deadline = time.monotonic() + _PATIENCE
    is_taken = False
    while now.ended is None and not (is_taken and _is_settled(verb, now)) and time.monotonic() < deadline:
        time.sleep(_TICK)
        is_taken = not order.exists()  # asked first: what follows from it is written before it is looked for
        for record in news.news():
            now.add(record)
    if now.ended is not None:
        is_taken = is_taken or not order.exists()
        order.unlink(missing_ok=True)
    if args.json:
        emit_json({"run": target.run, "order": verb, "taken": is_taken, "state": _state(now)})
    elif is_taken or now.ended is not None:
        say(_outcome(verb, target, before, now))
    else:
        warn(f"run {target.run} has not reacted yet; the order stays pending")
    return 0


def _is_settled(verb: Verb, now: RunState) -> bool:
    if now.current is not None and verb is not Verb.STOP_NOW:
        return now.wish.after(verb) == now.wish
    if verb is Verb.PAUSE:
        return now.paused_since is not None
    return verb is Verb.RESUME and now.paused_since is None


def _state(now: RunState) -> str:
    if now.ended is not None:
        return "ended"
    if now.paused_since is not None:
        return "paused"
    return "stopping" if now.wish.stop else "pausing" if now.wish.pause else "running"


def _outcome(verb: Verb, target: ActiveRun, before: RunState, now: RunState) -> str:
    run = f"run {target.run}"
    if now.ended is not None:
        return f"{run} has ended: {now.ended.reason.value}"
    busy = (
        f"iteration {now.current.iteration} ({one_line(now.current.story, 40) or now.current.mode.value})"
        if now.current
        else ""
    )
    match verb:
        case Verb.PAUSE if now.paused_since is not None:
            return f"{run} is {'already ' if before.paused_since else ''}paused; `ralph resume` continues it"
        case Verb.PAUSE:
            return f"{run} pauses after {busy or 'this step'}; `ralph resume` cancels the pause"
        case Verb.RESUME:
            return f"{run} {'continues' if before.wish.pause else 'was not paused'}"
        case Verb.STOP:
            return f"{run} stops after {busy or 'this step'}; `ralph stop --now` stops it at once"
        case Verb.STOP_NOW:
            return f"{run} is stopping; the work of its agent is saved and rolled back"
