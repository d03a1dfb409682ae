"""Show the circuit breakers of a run, of its stories and of its steps, and why one
tripped.

The next run starts with every breaker closed. `ralph run --reset-circuit` or
`ralph task reopen ID` retries stories that were set aside."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace

from ralph.cli.arguments import add_json, add_workspace
from ralph.cli.output import emit_json, say
from ralph.core.exit_codes import ExitCode
from ralph.core.limits import OnStuck
from ralph.core.text import one_line
from ralph.engine.circuit import Position
from ralph.journal.records import read
from ralph.report.explain import Circuits, Counters, circuits
from ralph.workspace.runs import chosen_run

EXAMPLES = """
ralph circuit                 the current run, or the last one
ralph circuit 20260115-0930   a run by a unique prefix of its ID
ralph circuit --json          for scripts
"""


def configure(parser: ArgumentParser) -> None:
    parser.add_argument("run", nargs="?", default="", metavar="RUN", help="a run's ID or a unique prefix of it")
    add_workspace(parser)
    add_json(parser)


def run(args: Namespace) -> int:
    found = circuits(read(chosen_run(args, os.environ, args.run)))
    if args.json:
        emit_json(found)
        return ExitCode.COMPLETE
    say(f"run {found.run}, {f'ended: {found.ended}' if found.ended else 'not ended'}", "bold")
    _show("the run", found.whole, _of_the_run(found))
    for name, counters in found.stories.items():
        _show(one_line(name, 40), counters, _of_a_story(counters, found))
    for name, counters in found.steps.items():
        _show(f"step {one_line(name, 40)}", counters, [])
    _tell_rules(found)
    return ExitCode.COMPLETE


def _of_the_run(found: Circuits) -> list[str]:
    """When stuck stories are set aside, the run counts those stories instead of attempts."""
    same = _count("same error", found.whole.same_error, found.same_error_threshold)
    if found.on_stuck is OnStuck.NEXT:
        return [_count("stories set aside in a row", found.set_aside_in_a_row, found.no_progress_threshold), same]
    return [_count("no progress", found.whole.no_progress, found.no_progress_threshold), same]


def _of_a_story(counters: Counters, found: Circuits) -> list[str]:
    if not counters.same_error:  # it was set aside, and its counts went with it
        return []
    return [
        _count("no progress", counters.no_progress, found.no_progress_threshold),
        _count("same error", counters.same_error, found.same_error_threshold),
    ]


def _show(name: str, counters: Counters, facts: list[str]) -> None:
    told = counters.why or (f"last: {counters.error}" if counters.error else "")
    line = ", ".join([counters.position.value, *facts])
    style = "red" if counters.position is Position.OPEN else ""
    say(f"  {name:<12} {line}{f' — {one_line(told, 200)}' if told else ''}", style)


def _count(what: str, count: int, most: int) -> str:
    return f"{what} {count}/{most}" if most else f"{what} {count} (no limit)"


def _tell_rules(found: Circuits) -> None:
    if found.died_at_once:
        say(f"  agents that exited at once, in a row: {found.died_at_once}/{found.crash_loop_threshold}")
    then = "is set aside and the run continues" if found.on_stuck is OnStuck.NEXT else "stops the run"
    say(f"  a story that trips {then} (circuit_breaker.on_stuck)", "dim")
