"""Show the events of a run, from its journal. Without RUN: the last run. With the ID
of a story: its iterations, in all runs."""

from __future__ import annotations

import os
import time
from argparse import ArgumentParser, Namespace
from pathlib import Path

from ralph.cli.arguments import add_workspace
from ralph.cli.output import emit_line, note, paint, say, say_raw
from ralph.cli.plain_view import describe
from ralph.cli.words import clock
from ralph.core.errors import RalphError, UsageError
from ralph.core.events import AnyEvent, Baseline, CheckEnded, IterationEnded, IterationStarted, Record
from ralph.core.evidence import CheckResult
from ralph.host.files import read_bytes
from ralph.journal.records import Follower, read
from ralph.journal.run_state import RunState
from ralph.state.locks import is_alive
from ralph.workspace.runs import chosen_run, chosen_runs

EXAMPLES = """
ralph log                      the last run
ralph log 20260115-0930        a run by its ID or a unique prefix of it
ralph log US-004               the iterations of a story, in all runs
ralph log --follow             until the run ends
ralph log --agent              the transcript of the last session
ralph log --agent 3            the transcript of iteration 3
ralph log --json | jq .event   every record, as JSON
ralph log --check              the full output of the last failing check
ralph log --check pytest       the last failing check with this in its name
"""
_TICK = 0.2


def configure(parser: ArgumentParser) -> None:
    parser.add_argument(
        "run", nargs="?", default="", metavar="RUN|STORY", help="a run's ID or a unique prefix of it, or a story's ID"
    )
    parser.add_argument("-F", "--follow", action="store_true", help="continue until the run ends")
    parser.add_argument("-v", "--verbose", action="store_true", help="also show what the agent did")
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--agent", nargs="?", const="", metavar="ITERATION", help="the transcript of a session (default: the last one)"
    )
    what.add_argument("--check", nargs="?", const="", metavar="NAME", help="the output of the last failing check")
    add_workspace(parser)
    parser.add_argument("--json", action="store_true", help="print the records, one JSON object per line")


def run(args: Namespace) -> int:
    try:
        path = chosen_run(args, os.environ, args.run)
    except UsageError as error:
        if _show_story(args):
            return 0
        error.hint = f"{error.hint}; no run worked on a story with this ID" if args.run else error.hint
        raise
    if args.agent is not None:
        if args.follow:
            raise UsageError(
                "--agent cannot be combined with --follow", hint="`ralph watch -v` shows one while it runs"
            )
        from ralph.cli.transcript import show_transcript

        return show_transcript(read(path), args.agent, as_json=args.json)
    if args.check is not None:
        return _show_output(path, args.check)
    state = RunState()
    if not args.follow:
        for record in read(path):
            _show(record, state, args)
        return 0
    follower = Follower(path)
    while True:
        alive = is_alive(state.started)  # before reading: the run may end in between
        for record in follower.news():
            _show(record, state, args)
        if state.ended is not None:
            return 0
        if not alive:
            note("the run was killed; the next `ralph run` finishes or undoes what it left open")
            return 0
        time.sleep(_TICK)


def _show_story(args: Namespace) -> bool:
    """The iterations of the story that is named instead of a run. False: no run worked on one with this ID."""
    if not args.run or args.follow or args.agent is not None or args.check is not None:
        return False
    is_known = False
    for journal in chosen_runs(args, os.environ):
        state, is_inside, heading = RunState(), False, f"run {journal.parent.name}"
        for record in read(journal):
            if isinstance(record.event, IterationStarted):
                is_inside = record.event.story.lower() == args.run.lower()
                if is_inside and heading and not args.json:
                    say(heading, "bold")
                    heading = ""
            is_known = is_known or is_inside
            _show(record, state, args) if is_inside else state.add(record)
            is_inside = is_inside and not isinstance(record.event, IterationEnded)
    return is_known


def _show_output(journal: Path, name: str) -> int:
    failed = [
        check
        for record in read(journal)
        for check in _checks(record.event)
        if not check.passed and name.lower() in check.name.lower()
    ]
    if not failed:
        raise UsageError(
            f"no check {f'with {name!r} in its name ' if name else ''}has failed in this run",
            hint="`ralph log` shows the checks; `ralph verify` runs them now",
        )
    check = failed[-1]
    note(f"{check.name}: {'timed out' if check.timed_out else f'exit code {check.code}'}")
    try:
        say(read_bytes(Path(check.output)).decode("utf-8", "replace").rstrip("\n"))
    except (RalphError, OSError):  # a step has no log file, and logs may be deleted: the journal has the end
        note("only the end of its output was kept:")
        say(check.tail)
    return 0


def _checks(event: AnyEvent) -> tuple[CheckResult, ...]:
    match event:
        case CheckEnded(result=result):
            return (result,)
        case Baseline(results=results):
            return results
        case _:
            return ()


def _show(record: Record, state: RunState, args: Namespace) -> None:
    state.add(record)
    if args.json:
        emit_line(record)
    elif line := describe(record, state, verbose=args.verbose):
        indented = line.replace("\n", "\n" + " " * len("00:00:00 "))
        say_raw(f"{paint(clock(record.t), 'dim')} {indented}", at_once=args.follow)
