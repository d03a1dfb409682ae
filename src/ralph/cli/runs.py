"""`ralph runs`: list the runs, show statistics, replay one."""

from __future__ import annotations

import os
import time
from argparse import Namespace
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from ralph.cli.output import emit_json, paint, say, say_raw, warn
from ralph.core.errors import BadData
from ralph.core.events import CLOSED_LATER
from ralph.core.exit_codes import ExitCode
from ralph.core.text import one_line, plural
from ralph.journal.records import read
from ralph.journal.run_state import RunState
from ralph.journal.statistics import Effort, Figures, Tally
from ralph.state.locks import is_alive
from ralph.views.words import duration, money
from ralph.workspace.runs import chosen_run, chosen_runs

_MOST_CRITERIA = 5


def review_lines(figures: Figures) -> Iterator[str]:
    """The lines for the summary of a run. None without reviews."""
    reviews = figures.reviews
    if not reviews.count:
        return
    found = figures.findings
    rated = f" ({counts(found.severities)})" if found.count else ""
    yield f"{plural(reviews.count, 'review')}, {_at_first(figures)}, {plural(found.count, 'finding')}{rated}"
    if figures.review.calls and figures.work.calls:
        yield f"review: {_spent(figures.review)}; work: {_spent(figures.work)}"


def lines(figures: Figures) -> Iterator[str]:
    done = f"{plural(figures.finished, 'story')} finished" + (
        f", {figures.given_up} failed" if figures.given_up else ""
    )
    yield f"{plural(figures.runs, 'run')}, {plural(figures.iterations, 'iteration')}, {done}"
    if figures.attempts:
        spread = ", ".join(f"{count} with {tried}" for tried, count in figures.attempts.items())
        yield f"{'attempts':<10} {figures.attempts_per_story:.1f} per story: {spread}"
    if figures.verdicts:
        yield f"{'verdicts':<10} {counts(figures.verdicts)}"
    yield from _reviewed(figures)
    yield from _table(figures)


def _reviewed(figures: Figures) -> Iterator[str]:
    reviews, found = figures.reviews, figures.findings
    if not reviews.count and not reviews.not_believed:
        yield f"{'reviews':<10} none"
        return
    each = f", {reviews.per_story:.1f} per story" if reviews.stories else ""
    doubt = f"; {reviews.not_believed} more rejected as unreliable" if reviews.not_believed else ""
    yield f"{'reviews':<10} {reviews.count}{each}, {_at_first(figures)}{doubt}"
    if found.count:
        fates = f"; {counts(found.fates)}" if found.fates else ""
        yield f"{'findings':<10} {found.count}: {counts(found.severities)}{fates}"
    for criterion, count in list(found.criteria.items())[:_MOST_CRITERIA]:
        yield f"{'':<10} {count} about: {one_line(criterion, 80)}"


def _at_first(figures: Figures) -> str:
    reviews = figures.reviews
    if not reviews.stories:
        return "no story settled"
    its = "its" if reviews.stories == 1 else "their"
    share = f" ({reviews.at_first / reviews.stories:.0%})" if reviews.stories > 1 else ""
    return f"{reviews.at_first} of {plural(reviews.stories, 'story')} approved in {its} first review{share}"


def _table(figures: Figures) -> Iterator[str]:
    if not figures.effort:
        return
    yield ""
    yield f"{'':<14} {'sessions':>8} {'time':>11} {'tokens':>11} {'money':>13}"
    for mode, effort in figures.effort.items():
        took, cost = duration(effort.seconds), money(effort.usd, effort.is_estimated, effort.unknown)
        yield f"{mode:<14} {effort.calls:>8} {took:>11} {effort.tokens:>11,} {cost:>13}"
    review, work = figures.review, figures.work
    if review.calls and work.calls:
        cells = [
            _ratio(review.calls, work.calls),
            _ratio(review.seconds, work.seconds),
            _ratio(review.tokens, work.tokens),
            _ratio(review.usd or 0, work.usd or 0),
        ]
        yield f"{'review to work':<14} {cells[0]:>8} {cells[1]:>11} {cells[2]:>11} {cells[3]:>13}"


def _ratio(part: float, whole: float) -> str:
    return f"{part / whole:.2f}" if whole else "–"


def _spent(effort: Effort) -> str:
    parts = [plural(effort.calls, "session"), duration(effort.seconds)]
    if effort.tokens:
        parts.append(f"{effort.tokens / 1000:.1f}k tokens")
    if effort.usd is not None:
        parts.append(money(effort.usd, effort.is_estimated, effort.unknown))
    return ", ".join(parts)


def counts(named: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {one_line(name, 30)}" for name, count in named.items())


def document(figures: Figures) -> dict[str, Any]:
    """The figures for `--json`, with those computed from the others."""
    reviews = figures.reviews
    found: dict[str, Any] = msgspec.to_builtins(figures, str_keys=True)
    found["attempts_per_story"] = round(figures.attempts_per_story, 3)
    found["reviews"]["per_story"] = round(reviews.per_story, 3)
    found["reviews"]["first_time_rate"] = round(reviews.at_first / reviews.stories, 3) if reviews.stories else None
    return found


def list_runs(args: Namespace) -> int:
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
        workers = f", {plural(int(str(row['workers'])), 'worker')}" if row["workers"] else ""
        facts = f"{row['done']}/{row['total']} stories, {iterations}{workers}, {row['took']}, {row['cost']}"
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
        "cost_is_estimated": state.is_estimated,
        "cost": money(state.cost_usd, state.is_estimated),
        "commits": len(state.commits),
        "workers": len(state.parallel.known),
        "returned": state.returned,
        "red_merged": state.red_merged,
    }


def show_stats(args: Namespace) -> int:
    tally = Tally()
    for path in [chosen_run(args, os.environ, args.run)] if args.run else chosen_runs(args, os.environ):
        try:
            for record in read(path):
                tally.add(record)
        except BadData as error:
            warn(str(error))
    figures = tally.figures()
    if args.json:
        emit_json(document(figures))
    elif not figures.runs:
        say("No runs yet.")
    else:
        for line in lines(figures):
            say(line)
    return 0


def replay_run(args: Namespace) -> int:
    from ralph.run.replay import replay

    path = chosen_run(args, os.environ, args.run)
    name, replayed = path.parent.name, replay(read(path))
    if args.json:
        emit_json({"run": name, "decisions": replayed.decisions, "verdicts": replayed.verdicts,
                   "differences": replayed.differences})  # fmt: skip
    else:
        for difference in replayed.differences:
            say(f"record {difference.seq}: {difference.what} was {difference.then}, would be {difference.now}")
        same = f"{plural(replayed.decisions, 'decision')} and {plural(replayed.verdicts, 'verdict')}"
        say(f"{name}: {same}, {len(replayed.differences)} differ")
    return ExitCode.UNFINISHED if replayed.differences else ExitCode.COMPLETE
