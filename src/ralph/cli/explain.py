"""Explain why a run ended and what to do next. Without RUN: the last run.

`ralph explain grades` prints what the grades of proof mean, and
`ralph explain transitions` which state changes of a story are allowed, for
people and for each kind of session."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from itertools import groupby

from ralph.cli.arguments import add_json, add_workspace
from ralph.cli.output import emit_json, paint, say, say_raw
from ralph.cli.plain_view import more_reasons
from ralph.cli.words import STYLES, duration
from ralph.core.errors import UsageError
from ralph.core.events import RunStarted
from ralph.core.exit_codes import ExitCode
from ralph.core.proof import MEANING, Grade
from ralph.core.text import clean, one_line, plural
from ralph.journal.records import read
from ralph.report.explain import Explanation, explain, tail
from ralph.report.transition_table import PEOPLE, table
from ralph.state.locks import is_alive
from ralph.workspace.runs import chosen_run

EXAMPLES = """
ralph explain                  the last run
ralph explain 20260115-0930    a run by a unique prefix of its ID
ralph explain grades           what proven, witnessed, reviewed and unproven mean
ralph explain transitions      the allowed state changes
"""
_BELOW = {
    Grade.PROVEN: "a story with a lower grade is rejected",
    Grade.WITNESSED: "a story with a lower grade is rejected",
    Grade.REVIEWED: "the default: a story that no test shows to be done gets a review session",
    Grade.UNPROVEN: "passing checks are enough; no witness is searched",
}
"""`proof.minimum` → what it does."""


def configure(parser: ArgumentParser) -> None:
    parser.add_argument(
        "what",
        nargs="?",
        default="",
        metavar="RUN",
        help="a run's ID or a unique prefix of it, or a topic: `grades`, `transitions`",
    )
    add_workspace(parser)
    add_json(parser)


def run(args: Namespace) -> int:
    if topic := _TOPICS.get(args.what):
        topic(args.json)
        return ExitCode.COMPLETE
    try:
        records = list(read(chosen_run(args, os.environ, args.what)))
    except UsageError as error:
        error.hint = f"{error.hint}; the topics are {', '.join(_TOPICS)}" if args.what else error.hint
        raise
    started = next((record.event for record in records if isinstance(record.event, RunStarted)), None)
    found = explain(records, is_alive=is_alive(started))
    if args.json:
        emit_json(found)
    else:
        _print(found)
    return ExitCode.COMPLETE


def _print(found: Explanation) -> None:
    how = f"{found.reason} (exit code {found.exit_code})" if found.reason else found.state
    name = f" on {one_line(found.plan, 60)}" if found.plan else ""
    say(f"Run {found.run}{name}: {how}", "bold")
    say(found.why)
    if found.detail:
        say(f"Detail: {one_line(found.detail, 600)}")
    say(f"{found.done} of {plural(found.total, 'story')} done after {duration(found.seconds)}.")
    _print_evidence(found)
    say()
    say_raw(f"{paint('What to do:', 'bold')} {found.next}")


def _print_evidence(found: Explanation) -> None:
    if found.last:
        say()
        say("Last iterations:")
    for past in found.last:
        mark, style = STYLES[past.verdict]
        story = f" {one_line(past.story, 40)}" if past.story else ""
        verdict = paint(f"{mark} {past.verdict.value}", style)
        say_raw(f"  {past.iteration:>3} {past.mode}{story}  {verdict}: {one_line(past.headline, 300)}")
        for reason in more_reasons(past.reasons):
            say(f"      {reason}", style)
    for check in found.failing:
        say()
        say(f"Last failing check: {one_line(check.command, 120)}", "red")
        for line in tail(check):
            say(f"  | {clean(line)[:200]}")
    if found.failing:
        say("`ralph log --check` shows its full output", "dim")
    if found.stuck:
        say()
        say("Stuck stories:")
        for story, why in found.stuck.items():
            say(f"  {one_line(story, 40)}: {one_line(why, 200)}")
    if found.reason != "complete":
        say()
        some = found.counters[:1] + tuple(each for each in found.counters[1:] if each.count)
        counted = (f"{each.what} {each.count}{f' of {each.most}' if each.most else ''}" for each in some)
        say(f"Counters: {'; '.join(counted)}")
    if found.rescues:
        say("Rejected work is kept:")
        for ref in found.rescues:
            say(f"  `ralph rescue show {one_line(ref.removeprefix('refs/ralph/rescue/'), 100)}`")


def _grades(as_json: bool) -> None:
    if as_json:
        emit_json([{"grade": grade, "meaning": MEANING[grade], "minimum": _BELOW[grade]} for grade in Grade])
        return
    say("How well a story is proven, best first:", "bold")
    for grade in Grade:
        say(f"  {grade.value:<10} {MEANING[grade]}")
    say()
    say("proof.minimum (`ralph run --proof-minimum GRADE`) is the least grade of a story that is done:", "bold")
    for grade in Grade:
        say(f"  {grade.value:<10} {_BELOW[grade]}")
    say()
    say("`ralph proof STORY` shows the evidence for a story; docs/proof.md describes the procedure.")


def _transitions(as_json: bool) -> None:
    changes = table()
    if as_json:
        emit_json(changes)
        return
    for by, group in groupby(changes, key=lambda change: change.by):
        what = "the state of a story, by `ralph task`" if by == PEOPLE else "reviewStatus, by an agent"
        say(f"{by}: {what}", "bold")
        for change in group:
            word = paint("legal  ", "green") if change.legal else paint("illegal", "red")
            told = change.condition or change.why
            say_raw(f"  {change.old:>17} → {change.new:<17} {word}  {paint(told, 'dim')}".rstrip())
        say()


_TOPICS: dict[str, Callable[[bool], None]] = {"grades": _grades, "transitions": _transitions}
