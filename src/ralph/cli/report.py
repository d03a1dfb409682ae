"""`ralph report`: show what a run did: stories, commits, cost, questions."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from ralph.cli.output import emit_bytes, emit_json, note, paint, say_raw, warn
from ralph.cli.show import MARKS, fit, line_width, mark
from ralph.core.errors import BadData, RalphError, UsageError
from ralph.core.events import Record, RunStarted
from ralph.core.exit_codes import ExitCode
from ralph.core.plan import State
from ralph.core.proof import Grade
from ralph.core.review import OPEN_FINDINGS
from ralph.core.text import one_line
from ralph.host.files import write_bytes
from ralph.host.redaction import redact
from ralph.journal.records import damage, read
from ralph.report.report import STATES, Report, StoryReport, make_report
from ralph.state.locks import is_alive
from ralph.views.columns import progress_bar
from ralph.views.report_html import as_html
from ralph.views.report_lines import facts, headline, proof_lines, story_facts, why, worker_bar, worker_facts
from ralph.views.report_markdown import as_markdown
from ralph.views.run_view import RunView
from ralph.views.worker_lines import clash_line
from ralph.workspace.find import open_settings, root_of
from ralph.workspace.runs import choice_of, run_to_watch

_MOST_COMMITS = 8
_MOST_REJECTED = 10
_MOST_WORKERS = 32
_BAR = 30
"""Columns of the bar that shows a worker's time."""
_MARKS = {
    "done": State.DONE,
    OPEN_FINDINGS: State.DONE,
    "unproven": State.BLOCKED,
    "failed": State.FAILED,
    "blocked": State.BLOCKED,
}


def run(args: Namespace) -> int:
    target = run_to_watch(root_of(args, os.environ), choice_of(args), args.run, os.environ)
    records: list[Record] = []
    try:
        for record in read(target.journal):
            records.append(record)
    except BadData as error:  # what stands before the damage is still worth reading
        warn(str(error))
    started = next((record.event for record in records if isinstance(record.event, RunStarted)), None)
    alive = is_alive(started)
    if not alive and (damaged := damage(target.journal)):
        warn(damaged)
    report = make_report(records, is_alive=alive, env=os.environ, allow_hosts=_allow_hosts(args))
    if args.json:
        emit_json(report.document())
    elif args.html is not None:
        _write(args.html, as_html(report, RunView(target.journal).catch_up()))
    elif args.markdown is not None:
        _write(args.markdown, as_markdown(report))
    else:
        for line in screen(report, line_width()):
            say_raw(line)
    return ExitCode.COMPLETE


def _allow_hosts(args: Namespace) -> tuple[str, ...]:
    """Settings that cannot be read do not keep a report from being shown."""
    with suppress(RalphError):
        return open_settings(args)[2].config.sandbox.allow_hosts
    return ()


def _write(name: str, text: str) -> None:
    text = redact(text)
    if name == "-":
        emit_bytes(text.encode("utf-8", "replace"))
        return
    path = Path(name)
    if not name.strip() or path.is_dir() or not path.parent.is_dir():
        raise UsageError(
            f"cannot write the report to {one_line(repr(name), 100)}",
            hint="name a file in an existing folder",
        )
    try:
        write_bytes(path, text.encode("utf-8", "replace"))
    except OSError as error:
        raise UsageError(
            f"cannot write {one_line(name, 100)}: {error.strerror or error}", hint="name another file"
        ) from None
    note(f"wrote {one_line(name, 200)}")


def screen(report: Report, room: int | None) -> Iterator[str]:
    end = report.explanation
    style = "green bold" if end.reason == "complete" else "yellow bold"
    yield paint(headline(report), style)
    yield f"{progress_bar(end.done, end.total)}  {fit(end.why, room and room - 32)}"
    if end.detail:
        yield fit(end.detail, room)
    if report.look_first:
        yield ""
        yield paint("Look at first", "bold")
        for line in report.look_first:
            yield _line(f"- {line}", 2, room)
    if report.questions:
        yield ""
        yield paint("Questions for you", "bold")
        for question in report.questions:
            yield _line(f"{question.story or '-'}  {question.text}", 2, room)
            yield paint(f'      ralph answer {one_line(question.story, 40) or "-"} "…"', "dim")
    for state in STATES:
        if stories := [story for story in report.stories if story.state == state]:
            yield ""
            yield paint(f"{state.capitalize()} ({len(stories)})", "bold")
            for story in stories:
                yield from _story(story, room)
    if report.clashes:
        yield ""
        yield paint("Returned by the merge queue", "bold")
        for clash in report.clashes[-_MOST_REJECTED:]:
            yield paint(_line(clash_line(clash), 2, room), "yellow")
        if len(report.clashes) > _MOST_REJECTED:
            yield f"  and {len(report.clashes) - _MOST_REJECTED} earlier"
    if report.rejected:
        yield ""
        yield paint("Rejected attempts", "bold")
        for one in report.rejected[-_MOST_REJECTED:]:
            yield _line(f"{one.story} iteration {one.iteration}, {one.kind}: {one.reason}", 2, room)
            for reason in one.reasons:
                yield _line(reason, 6, room)
            gone = "dropped" if one.is_missing else f"ralph rescue show {one_line(one.name, 80)}"
            yield paint(f"      {gone}", "dim")
        if len(report.rejected) > _MOST_REJECTED:
            yield f"  and {len(report.rejected) - _MOST_REJECTED} earlier: `ralph rescue list`"
    if report.refused_hosts:
        yield ""
        yield paint("Hosts that the sandbox refused", "bold")
        for host in report.refused_hosts:
            yield _line(host.line, 2, room)
            yield paint(f"      {host.allow}", "dim")
    yield from _workers(report, room)
    yield ""
    for name, value in facts(report):
        yield f"{name:<10} {one_line(value, 400)}"


def _workers(report: Report, room: int | None) -> Iterator[str]:
    if not report.workers:
        return
    yield ""
    yield f"{paint('Workers', 'bold')}  {paint('█ working  ▒ proving a merged tree  · idle', 'dim')}"
    for worker in report.workers[:_MOST_WORKERS]:
        bar = paint(worker_bar(worker, report, _BAR), "cyan")
        yield f"  {worker.worker:>3} {bar} {fit(worker_facts(worker, name=False), room and room - _BAR - 7)}"
    if len(report.workers) > _MOST_WORKERS:
        yield f"  … {len(report.workers) - _MOST_WORKERS} more"


def _line(text: str, indent: int, room: int | None) -> str:
    return " " * indent + fit(text, room and max(room - indent, 20))


def _story(story: StoryReport, room: int | None) -> Iterator[str]:
    sign = mark(_MARKS.get(story.state, State.TODO))
    yield f"  {sign} {fit(f'{story.id} {story.title}', room and room - 4)}"
    if told := story_facts(story):
        yield paint(_line(told, 6, room), "dim")
    if shown := why(story):
        yield paint(_line(shown, 6, room), MARKS[_MARKS.get(story.state, State.TODO)][1])
    for line in (*proof_lines(story), *(f"changed tests or checks: {doubt}" for doubt in story.doubts)):
        yield paint(_line(line, 6, room), "yellow" if story.grade == Grade.UNPROVEN else "dim")
    for commit in story.commits[-_MOST_COMMITS:]:
        yield _line(f"{commit.id[:9]} {commit.subject}{commit.remark}", 6, room)
    if len(story.commits) > _MOST_COMMITS:
        yield f"      and {len(story.commits) - _MOST_COMMITS} earlier"
