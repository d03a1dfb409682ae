"""`ralph explain schedule`: which stories several workers would start together, and which are held."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Iterable, Iterator
from time import localtime, strftime

from ralph.cli.output import emit_json, say
from ralph.core.errors import UsageError
from ralph.core.events import Record
from ralph.core.exit_codes import ExitCode
from ralph.core.moves import Move, Prove, Retry, SetAside, Stop, Wait
from ralph.core.text import one_line, plural
from ralph.journal.records import read
from ralph.workspace.find import open_ref, store_for
from ralph.workspace.runs import chosen_run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ralph.run.schedule_preview import LastSchedule, Preview

_WORKERS = 4
"""If the settings have only one."""
_MOST_PATHS = 4
_MOST_WAITING = 20


def show_schedule(args: Namespace) -> int:
    from ralph.config.flags import flags_of
    from ralph.run.schedule_preview import preview
    from ralph.run.spec import Launched

    ref, settings = open_ref(args)
    prepared = Launched(ref=ref, settings=settings, plan=store_for(ref, os.environ).load().plan)
    setting = settings.config.parallel
    workers = setting if setting > 1 or "parallel" in flags_of(args) else _WORKERS
    found = preview(prepared, workers, _last_run(args), os.environ)
    if args.json:
        emit_json(found)
    else:
        _show(found)
    return ExitCode.COMPLETE


def _last_run(args: Namespace) -> Iterable[Record]:
    try:
        return read(chosen_run(args, os.environ))
    except UsageError:
        return ()  # there is no run yet


def _show(found: Preview) -> None:
    result = found.scheduled
    count = len(result.start)
    together = " together" if count > 1 else ""
    say(f"{plural(found.workers, 'worker')}: {plural(count, 'story')} would start{together}", "bold")
    width = max((len(one_line(name, 40)) for name in found.titles), default=0)
    for work in result.start:
        name = one_line(work.story, 40) or work.mode.value
        say(f"  start  {name:<{width}}  {one_line(found.titles.get(work.story, ''), 60)}".rstrip(), "green")
        if work.story:
            say(f"         {'':<{width}}  changes {_area(found.areas.get(work.story, ()))}", "dim")
    for held in result.held:
        say(f"  held   {one_line(held.story, 40):<{width}}  {one_line(held.why, 200)}", "yellow")
    for name in found.ready[:_MOST_WAITING]:
        say(f"  next   {one_line(name, 40):<{width}}  when a worker is free")
    if (more := len(found.ready) - _MOST_WAITING) > 0:
        say(f"  next   {more} more", "dim")
    for name, needs in list(found.waiting.items())[:_MOST_WAITING]:
        say(f"  later  {one_line(name, 40):<{width}}  after {one_line(', '.join(needs), 100)}")
    if (more := len(found.waiting) - _MOST_WAITING) > 0:
        say(f"  later  {more} more", "dim")
    if result.move is not None:
        say(f"  then   {one_line(_move(result.move), 300)}")
    if found.last:
        say()
        _show_last(found.last)


def _area(paths: tuple[str, ...]) -> str:
    shown = ", ".join(one_line(path, 60) for path in paths[:_MOST_PATHS])
    more = f" and {len(paths) - _MOST_PATHS} more" if paths[_MOST_PATHS:] else ""
    return f"{shown}{more}" if shown else "(unknown: beside any other story)"


def _show_last(last: LastSchedule) -> None:
    result = last.scheduled
    say(f"Last decision of run {last.run}, at {strftime('%H:%M:%S', localtime(result.at))}:", "bold")
    for what, line in _last_lines(last):
        say(f"  {what:<8} {one_line(line, 300)}")


def _last_lines(last: LastSchedule) -> Iterator[tuple[str, str]]:
    result = last.scheduled
    for each in result.running:
        where = "in the merge queue" if each.is_queued else each.mode.value
        yield "running", f"{each.story or each.mode.value} (iteration {each.iteration}, {where})"
    for work in result.start:
        yield "started", f"{work.story or work.mode.value} ({work.mode.value})"
    for held in result.held:
        yield "held", f"{held.story or 'the run'}: {held.why}"
    if result.move is not None:
        yield "then", _move(result.move)
    if not (result.running or result.start or result.held or result.move):
        yield "started", "nothing"


def _move(move: Move) -> str:
    match move:
        case Stop(reason=reason, detail=detail):
            return f"stop ({reason.value}){f': {detail}' if detail else ''}"
        case Wait(why=why):
            return f"wait: {why}"
        case SetAside(story=story, why=why):
            return f"set {story} aside: {why}"
        case Retry(stories=stories):
            return f"retry {', '.join(stories)}"
        case Prove():
            return "run every check on the final tree"
        case _:
            return f"{move.mode.value} {move.story}".rstrip()
